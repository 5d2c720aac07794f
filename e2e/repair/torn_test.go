package repair_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// exportedLines exports the table of a store. It returns the line of each record, by the record's
// key.
func exportedLines(t *testing.T, store *dynamo.Store) map[storetest.Key]string {
	t.Helper()
	lines := map[storetest.Key]string{}
	for _, line := range storetest.Export(t, store, 1) {
		var rec struct {
			Item struct{ PK, SK struct{ S string } }
		}
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		lines[storetest.Key{PK: rec.Item.PK.S, SK: rec.Item.SK.S}] = line
	}
	return lines
}

// mutate sends n random mutations of all kinds.
func mutate(t *testing.T, url string, fixture workload.Fixture, clients *workload.ClientState, from, n int) {
	t.Helper()
	names := append([]string{"placeOrder", "placeOrder", "placeOrder", "confirmOrder", "confirmOrder", "shipOrder", "shipOrder", "deliverOrder", "cancelOrder"}, workload.MutationNames()...)
	client := workload.NewClient()
	t.Cleanup(client.HTTP.CloseIdleConnections)
	for i := range n {
		source := rand.New(rand.NewPCG(5, uint64(from+i)))
		m := clients.Mutation(workload.StepGenerator{Fixture: fixture, IntN: source.IntN}.Next(names[source.IntN(len(names))], fmt.Sprintf("step-%d", from+i)))
		a, _, err := client.SendWithRetries(t.Context(), func() string { return url }, m, 1)
		if err != nil {
			t.Fatalf("%s %v: %v", m.Field, m.Input, err)
		}
		if a.Succeeded() {
			clients.Update(m, a)
		}
	}
}

// tear returns a torn export: each record comes from one of two exports of the same table. There
// are several ways to choose the export: by record, by partition, or the later one for most
// records.
func tear(before, after map[storetest.Key]string, random *rand.Rand) string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b storetest.Key) int {
		return strings.Compare(a.PK+" "+a.SK, b.PK+" "+b.SK)
	})
	way, share := random.IntN(3), random.Float64()
	ofPartition := map[string]bool{}
	var torn strings.Builder
	for _, k := range keys {
		var later bool
		switch way {
		case 0:
			later = random.Float64() < share
		case 1:
			later = random.Float64() >= 0.03
		default:
			chosen, ok := ofPartition[k.PK]
			if !ok {
				chosen = random.Float64() < share
				ofPartition[k.PK] = chosen
			}
			later = chosen
		}
		if later {
			torn.WriteString(after[k])
		} else {
			torn.WriteString(before[k])
		}
	}
	return torn.String()
}

// An export beside a server is torn: some records are older than others. One repair makes the
// imported records consistent, nothing that it writes prevents another of its repairs, and all
// counts equal the raw records.
func TestTornExportsAreRepaired(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		fixture := workload.Fixture{Customers: 2, Products: 8, Warehouses: 3, Employees: 3, Stock: 80}
		source := storetest.NewTable(t, db, dynamo.Options{})
		storetest.LoadDataset(t, source, fixture.Dataset(t))
		url, clients := workload.Serve(t, source, io.Discard), workload.NewClientState()
		const mutations = 300
		mutate(t, url, fixture, clients, 0, mutations)
		before := exportedLines(t, source)
		mutate(t, url, fixture, clients, mutations, mutations)
		after := exportedLines(t, source)
		seeds := longtest.Size(6, 100)
		if !storetest.IsEmbedded(t) {
			seeds = 10
		}
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
				storetest.Import(t, r.Store, tear(before, after, rand.New(rand.NewPCG(uint64(seed), 0))), bulk.ImportOptions{})
				inconsistencies, summary := r.Check(check.Options{Repair: true, Segments: 4})
				for _, d := range inconsistencies {
					if !d.Repaired && !d.ByHand {
						t.Errorf("not repaired: %+v", d)
					}
				}
				if summary.UnrepairedCount() > summary.ByHand || summary.Unverified > 0 {
					t.Errorf("the repair left %d inconsistencies, %d of them to repair by hand, and did not verify %d records", summary.UnrepairedCount(), summary.ByHand, summary.Unverified)
				}
				again, left := r.Check(check.Options{})
				for _, d := range again {
					if !d.ByHand {
						t.Errorf("left after the repair: %+v", d)
					}
				}
				if left.UnrepairedCount() != summary.UnrepairedCount() || left.Unverified > 0 {
					t.Errorf("the repair left %d inconsistencies, but the next check found %d, and did not verify %d records", summary.UnrepairedCount(), left.UnrepairedCount(), left.Unverified)
				}
				problems, err := storetest.AuditCounters(context.Background(), db, r.Name, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range problems {
					t.Errorf("recount: %s", p)
				}
			})
		}
	})
}
