// Package crash_test kills and stops real servers under load. Clients repeat their requests with
// their idempotency keys, so they see only a pause. A simulation (e2e/simulation) does this in one
// process, with the embedded store.
package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

const (
	clients = 8
	// attempts is the maximum number of attempts per request. After each kill of the server, each
	// client needs one or a few more attempts.
	attempts = 10_000
)

var fixture = workload.Fixture{Customers: clients, Products: 3, Warehouses: 1, Stock: 1_000_000}

// place returns the request n of a client, which places an order.
func place(client, n int) workload.Mutation {
	return workload.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": fmt.Sprintf("c%d", client), "items": []map[string]any{{"sku": fmt.Sprintf("p%d", n%3), "quantity": 1}}, "idempotencyKey": fmt.Sprintf("client-%d-order-%d", client, n),
	}}
}

// shop is how a server finds its table, and how the test reads the table while no server runs.
type shop struct {
	environment, arguments []string
	audit                  func(*testing.T) *storetest.AuditResult
}

func shopInDynamoDB(t *testing.T) shop {
	instance := dynamolocal.Shared(t)
	db, table := instance.Client(), "crash"
	storetest.LoadDataset(t, storetest.NewTable(t, db, dynamo.Options{Table: table}), fixture.Dataset(t))
	return shop{workload.ServerEnvironment(t, table, instance.Endpoint()), nil, func(t *testing.T) *storetest.AuditResult { return storetest.AssertConsistent(t, db, table, 1) }}
}

func shopInFile(t *testing.T) shop {
	const table = "ordergraph"
	path := filepath.Join(t.TempDir(), "orders.db")
	open := func(t *testing.T) (*dynamodb.Client, func()) {
		store, err := embedded.Open(path, embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return store.Client(), func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	db, closeFile := open(t)
	storetest.LoadDataset(t, storetest.NewTable(t, db, dynamo.Options{Table: table}), fixture.Dataset(t))
	closeFile()
	return shop{[]string{}, []string{"-data", path}, func(t *testing.T) *storetest.AuditResult {
		file, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := file.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				t.Errorf("the file is damaged: %v", err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		db, closeFile := open(t)
		defer closeFile()
		return storetest.AssertConsistent(t, db, table, 1)
	}}
}

// A server is killed again and again while it places and cancels orders. No acknowledged change is lost or
// made twice, no change is made in part, and each idempotency key always returns its first response.
func TestServerKilledUnderLoad(t *testing.T) {
	for name, newShop := range map[string]func(*testing.T) shop{"DynamoDB Local": shopInDynamoDB, "file": shopInFile} {
		t.Run(name, func(t *testing.T) { killUnderLoad(t, newShop(t)) })
	}
}

// sent is a mutation with its first response.
type sent struct {
	workload.Mutation
	workload.Response
}

func killUnderLoad(t *testing.T, s shop) {
	kills := longtest.Size(4, 50)
	binary := workload.BuildServer(t, "../..")
	address, client := workload.NewServerAddress(), workload.NewClient()
	var closed atomic.Bool
	var responses, repeated atomic.Int64
	all := make([][]sent, clients)
	send := func(i int, m workload.Mutation) (sent, bool) {
		a, times, err := client.SendWithRetries(context.Background(), address.WaitURL, m, attempts)
		if err != nil || !a.Succeeded() {
			t.Errorf("client %d: %v, %v", i, a, err)
			return sent{}, false
		}
		responses.Add(1)
		repeated.Add(int64(min(times-1, 1)))
		all[i] = append(all[i], sent{m, a})
		return all[i][len(all[i])-1], true
	}
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			for n, ok := 0, true; ok && !closed.Load(); n++ {
				var placed sent
				if placed, ok = send(i, place(i, n)); ok && n%4 == 0 {
					_, ok = send(i, workload.Mutation{Field: "cancelOrder", Input: map[string]any{"orderId": placed.Record().ID, "expectedVersion": 1, "idempotencyKey": fmt.Sprintf("client-%d-cancellation-%d", i, n)}})
				}
			}
		})
	}
	source := rand.New(rand.NewPCG(23, 1))
	for range kills {
		p := workload.StartServer(t, binary, s.environment, s.arguments...)
		until := responses.Load() + source.Int64N(30)
		address.Set(p.URL)
		for responses.Load() < until && !t.Failed() {
			runtime.Gosched()
		}
		for range source.IntN(2000) { // the kill hits any step of a request
			runtime.Gosched()
		}
		// Clear the URL first, so that clients do not connect to a dead server.
		address.Set("")
		p.Kill(t)
	}
	last := workload.StartServer(t, binary, s.environment, s.arguments...)
	closed.Store(true)
	address.Set(last.URL)
	running.Wait()
	last.Kill(t)
	t.Logf("%d kills, %d responses, %d requests sent more than once", kills, responses.Load(), repeated.Load())
	if repeated.Load() < int64(kills)/2 {
		t.Errorf("only %d requests were interrupted by %d kills: the test does not cover kills", repeated.Load(), kills)
	}
	check := exec.Command(binary, append([]string{"check"}, s.arguments...)...)
	check.Env = s.environment
	if out, err := check.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "\nclean\n") {
		t.Errorf("ordergraph check: %v: %s", err, out)
	}

	before := s.audit(t)
	last = workload.StartServer(t, binary, s.environment, s.arguments...)
	orders := map[string]sent{} // the last change of each order
	for i, mutations := range all {
		for _, m := range mutations {
			if other, ok := orders[m.Record().ID]; ok && m.Field == "placeOrder" {
				t.Errorf("order %s is the result of the keys %s and %s", m.Record().ID, other.IdempotencyKey(), m.IdempotencyKey())
			}
			orders[m.Record().ID] = m
			if again, err := client.Send(context.Background(), last.URL, m.Mutation); err != nil || again.String() != m.String() {
				t.Errorf("client %d, %s: the first response was %v, the repeated response is %v, %v", i, m.IdempotencyKey(), m.Response, again, err)
			}
		}
	}
	last.Kill(t)
	after := s.audit(t)
	if n := int(responses.Load()); len(before.Orders) != len(orders) || len(before.IdempotencyRecords) != n || len(after.Records) != len(before.Records) {
		t.Errorf("%d responses contain %d orders; the table has %d orders with %d idempotency keys, and %d records became %d",
			n, len(orders), len(before.Orders), len(before.IdempotencyRecords), len(before.Records), len(after.Records))
	}
	for id, m := range orders {
		found, want := after.Records[storetest.Key{PK: "ORDER#" + id, SK: "#METADATA"}], m.Record()
		if found == nil {
			t.Errorf("order %s was acknowledged, but does not exist", id)
		} else if status := strings.ToUpper(found.Text("status")); status != want.Status || found.Int("version") != want.Version {
			t.Errorf("order %s is %s in version %d, want %s in version %d", id, status, found.Int("version"), want.Status, want.Version)
		}
	}
}
