// Package crash_test kills and stops real servers under load. Clients repeat their requests with
// their idempotency keys, so they see only a pause. A simulation (e2e/simulation) does this in one
// process, with the embedded store.
package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo"
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

// place returns the request n of a client, which places an order.
func place(client, n int) workload.Mutation {
	return workload.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": fmt.Sprintf("c%d", client), "items": []map[string]any{{"sku": fmt.Sprintf("p%d", n%3), "quantity": 1}}, "idempotencyKey": fmt.Sprintf("client-%d-order-%d", client, n),
	}}
}

// The server is killed again and again while it places orders. Each idempotency key creates one order,
// and always returns its first response.
func TestServerKilledUnderLoad(t *testing.T) {
	kills := longtest.Size(4, 20)
	instance := dynamolocal.Shared(t)
	binary := workload.BuildServer(t, "../..")
	db, table := instance.Client(), "crash"
	storetest.LoadDataset(t, storetest.NewTable(t, db, dynamo.Options{Table: table}), workload.Fixture{Customers: clients, Products: 3, Warehouses: 1, Stock: 1_000_000}.Dataset(t))
	environment := workload.ServerEnvironment(t, table, instance.Endpoint())
	address, client := workload.NewServerAddress(), workload.NewClient()
	var closed atomic.Bool
	var responses, repeated atomic.Int64
	placed := make([][]workload.Response, clients)
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			for n := 0; !closed.Load(); n++ {
				a, times, err := client.SendWithRetries(context.Background(), address.WaitURL, place(i, n), attempts)
				if err != nil || !a.Succeeded() {
					t.Errorf("client %d: %v, %v", i, a, err)
					return
				}
				placed[i] = append(placed[i], a)
				responses.Add(1)
				repeated.Add(int64(min(times-1, 1)))
			}
		})
	}
	source := rand.New(rand.NewPCG(23, 1))
	for range kills {
		p := workload.StartServer(t, binary, environment)
		until := responses.Load() + source.Int64N(30)
		address.Set(p.URL)
		for responses.Load() < until && !t.Failed() {
			runtime.Gosched()
		}
		for range source.IntN(2000) {
			runtime.Gosched()
		}
		// Clear the URL first, so that clients do not connect to a dead server.
		address.Set("")
		p.Kill(t)
	}
	last := workload.StartServer(t, binary, environment)
	defer last.Kill(t)
	closed.Store(true)
	address.Set(last.URL)
	running.Wait()
	t.Logf("%d kills, %d responses, %d requests sent more than once", kills, responses.Load(), repeated.Load())
	if repeated.Load() < int64(kills)/2 {
		t.Errorf("only %d requests were interrupted by %d kills: the test does not cover kills", repeated.Load(), kills)
	}
	before := storetest.AssertConsistent(t, db, table, 1)
	orders := map[string]bool{}
	for i, answers := range placed {
		for n, a := range answers {
			orders[a.Record().ID] = true
			if again, err := client.Send(context.Background(), last.URL, place(i, n)); err != nil || again.String() != a.String() {
				t.Errorf("client %d, order %d: the first response was %v, the repeated response is %v, %v", i, n, a, again, err)
			}
		}
	}
	after := storetest.AssertConsistent(t, db, table, 1)
	if n := int(responses.Load()); len(orders) != n || len(before.Orders) != n || len(before.IdempotencyRecords) != n || len(after.Records) != len(before.Records) {
		t.Errorf("%d responses contain %d orders; the table has %d orders with %d idempotency keys, and %d records became %d",
			n, len(orders), len(before.Orders), len(before.IdempotencyRecords), len(before.Records), len(after.Records))
	}
}
