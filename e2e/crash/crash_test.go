// Package crash_test repeatedly kills the server under load. Clients repeat their requests with
// their idempotency keys, so they see only a pause.
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
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

// answeredMutation is a mutation with its first response.
type answeredMutation struct {
	workload.Mutation
	response workload.Response
}

// clientLoad simulates clients that place, confirm, ship and cancel orders and adjust stock. Each
// request has its own idempotency key. The clients run until closed is set.
type clientLoad struct {
	address *workload.ServerAddress
	client  *workload.Client
	// closed makes clients start no new mutation.
	closed atomic.Bool
	// responses counts the responses.
	responses atomic.Int64
	sent      atomic.Int64
	// repeated counts the requests that were sent more than once.
	repeated atomic.Int64
}

// attempts is the maximum number of attempts per request. After each kill of the server, each
// client needs one or a few more attempts.
const attempts = 10_000

func (l *clientLoad) send(t *testing.T, m workload.Mutation) workload.Response {
	a, n, err := l.client.SendWithRetries(context.Background(), l.address.WaitURL, m, attempts)
	if err != nil {
		t.Errorf("%s %v: %v", m.Field, m.Input, err)
	}
	l.sent.Add(int64(n))
	l.responses.Add(1)
	if n > 1 {
		l.repeated.Add(1)
	}
	return a
}

// run simulates one client.
func (l *clientLoad) run(t *testing.T, number int, w workload.Fixture) []answeredMutation {
	var log []answeredMutation
	source := rand.New(rand.NewPCG(23, uint64(number)))
	do := func(field string, input map[string]any) workload.Response {
		input["idempotencyKey"] = fmt.Sprintf("client-%d-request-%d", number, len(log))
		m := workload.Mutation{Field: field, Input: input}
		a := l.send(t, m)
		log = append(log, answeredMutation{m, a})
		return a
	}
	for !l.closed.Load() {
		var items []map[string]any
		for range 1 + source.IntN(4) {
			items = append(items, map[string]any{"sku": fmt.Sprintf("p%d", source.IntN(w.Products)), "quantity": 1 + source.IntN(3)})
		}
		placed := do("placeOrder", map[string]any{"customerId": fmt.Sprintf("c%d", source.IntN(w.Customers)), "items": items})
		if !placed.Succeeded() {
			t.Errorf("placeOrder returned user errors: %v", placed)
			return log
		}
		order := map[string]any{"orderId": placed.Record().ID}
		input := func(name string, value any) map[string]any {
			return map[string]any{"orderId": order["orderId"], name: value}
		}
		switch source.IntN(4) {
		case 0:
			do("cancelOrder", input("note", "no longer wanted"))
		case 1:
			do("confirmOrder", input("expectedVersion", 1))
			ship := input("warehouseId", fmt.Sprintf("w%d", source.IntN(w.Warehouses)))
			ship["withoutAddress"] = true
			do("shipOrder", ship)
		case 2:
			do("confirmOrder", order)
			do("cancelOrder", input("expectedVersion", 2))
		default:
			do("adjustInventory", map[string]any{"sku": fmt.Sprintf("p%d", source.IntN(w.Products)), "warehouseId": fmt.Sprintf("w%d", source.IntN(w.Warehouses)), "delta": 1 + source.IntN(3)})
		}
	}
	return log
}

// The server is killed again and again under load. Each idempotency key creates one order, and
// always returns its first response.
func TestServerKilledUnderLoad(t *testing.T) {
	kills := longtest.Size(6, 40)
	instance := dynamolocal.Shared(t)
	binary := workload.BuildServer(t, "../..")
	db, table := instance.Client(), "crash"
	w := workload.Fixture{Customers: 10, Products: 8, Warehouses: 2, Employees: 3, Stock: 1_000_000}
	storetest.LoadDataset(t, storetest.NewTable(t, db, dynamo.Options{Table: table}), w.Dataset(t))
	environment := workload.ServerEnvironment(t, table, instance.Endpoint())

	l := &clientLoad{address: workload.NewServerAddress(), client: workload.NewClient()}
	const clients = 8
	logs := make([][]answeredMutation, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { logs[i] = l.run(t, i, w) })
	}
	source := rand.New(rand.NewPCG(23, 1_000_000))
	var starting time.Duration
	for range kills {
		before := time.Now()
		p := workload.StartServer(t, binary, environment)
		starting += time.Since(before)
		until := l.responses.Load() + source.Int64N(30)
		l.address.Set(p.URL)
		for l.responses.Load() < until && !t.Failed() {
			runtime.Gosched()
		}
		for range source.IntN(2000) {
			runtime.Gosched()
		}
		// Clear the URL first, so that clients do not connect to a dead server.
		l.address.Set("")
		p.Kill(t)
	}
	last := workload.StartServer(t, binary, environment)
	defer last.Kill(t)
	l.closed.Store(true)
	l.address.Set(last.URL)
	wg.Wait()
	t.Logf("%d kills, %d responses, %d requests sent more than once, %d attempts; a start takes %v",
		kills, l.responses.Load(), l.repeated.Load(), l.sent.Load(), starting/time.Duration(kills))
	if l.repeated.Load() < int64(kills)/2 {
		t.Errorf("only %d requests were interrupted by %d kills: the test does not cover kills", l.repeated.Load(), kills)
	}

	orders, done := map[string]string{}, 0
	for _, log := range logs {
		for _, r := range log {
			if !r.response.Succeeded() {
				// No mutation may fail: the warehouses are full, and only one client changes an order.
				t.Errorf("%s %v returned user errors: %v", r.Field, r.Input, r.response)
			}
			done++
			if id := r.response.Record().ID; r.Field == "placeOrder" {
				if other := orders[id]; other != "" {
					t.Errorf("order %s is the result of the keys %s and %s", id, other, r.IdempotencyKey())
				}
				orders[id] = r.IdempotencyKey()
			}
		}
	}
	audited := storetest.AssertConsistent(t, db, table, 1)
	if len(audited.Orders) != len(orders) || len(audited.IdempotencyRecords) != done {
		t.Errorf("the table has %d orders and %d idempotency keys, want %d and %d", len(audited.Orders), len(audited.IdempotencyRecords), len(orders), done)
	}
	for _, id := range audited.Orders {
		if orders[id] == "" {
			t.Errorf("order %s is in the table, but no response returned it", id)
		}
	}

	for i := range clients {
		wg.Go(func() {
			for _, r := range logs[i] {
				again, err := l.client.Send(context.Background(), last.URL, r.Mutation)
				if err != nil || again.String() != r.response.String() {
					t.Errorf("%s %s: the first response was %v, the repeated response is %v, %v", r.Field, r.IdempotencyKey(), r.response, again, err)
				}
			}
		})
	}
	wg.Wait()
	after := storetest.AssertConsistent(t, db, table, 1)
	if len(after.Records) != len(audited.Records) {
		t.Errorf("after repeating all requests, the table has %d records, want %d", len(after.Records), len(audited.Records))
	}
	t.Logf("%d orders, %d keys", len(orders), done)
}
