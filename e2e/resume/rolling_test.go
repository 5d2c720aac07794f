package resume_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
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

var rounds = flag.Int("rounds", longtest.Size(1, 15), "number of times that a server is stopped and started again")

// The load during a rolling update. Each client sends one request per tick.
const (
	buyers, readers = 4, 4
	tick            = 50 * time.Millisecond
	// roundTime is the maximum time to stop and restart one server.
	roundTime = time.Minute
)

// During a rolling update, two servers behind a load balancer receive SIGTERM one after the other,
// and are started again. Clients notice nothing: each response has status 200 and no errors. Each
// order is placed once. Each subscriber receives every event once and in order.
func TestRollingUpdate(t *testing.T) {
	instance := dynamolocal.Private(t)
	binary := workload.BuildServer(t, "../..")
	s := &fixture{db: instance.Client(), table: "rolling", http: workload.NewClient()}
	w := workload.Fixture{Customers: customers, Products: customers, Warehouses: 1, Stock: 1_000_000_000}
	store := storetest.NewTable(t, s.db, dynamo.Options{Table: s.table})
	if err := store.EnableStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, w.Dataset(t))
	environment := append(workload.ServerEnvironment(t, s.table, instance.Endpoint()), "ORDERGRAPH_SHUTDOWN_DELAY=1s")

	ctx, stop := context.WithTimeout(t.Context(), time.Duration(*rounds+2)*roundTime)
	defer stop()
	b := newBalancer(t)
	var servers [2]*workload.Process
	start := func(i int) {
		servers[i] = workload.StartServer(t, binary, environment)
		b.set(t, i, servers[i].URL)
		if err := b.waitReady(ctx, i); err != nil {
			t.Fatalf("server %d is not ready: %v", i, err)
		}
	}
	defer func() {
		for _, p := range servers {
			if p != nil {
				p.Kill(t)
			}
		}
	}()
	for i := range servers {
		start(i)
	}

	for c := range customers {
		s.buy(t, b, fmt.Sprintf("c%d", c), fmt.Sprintf("first-%d", c))
	}
	placed, owner := s.timelines(t)
	var subscribers []*subscriber
	began := map[*subscriber]string{}
	var following sync.WaitGroup
	defer following.Wait()
	defer stop()
	for _, e := range placed {
		for _, subject := range [][3]string{{"customerOrders", "customerId", owner[e.OrderID]}, {"orderUpdated", "id", e.OrderID}} {
			f := newSubscriber(subject[0]+" "+subject[2], subject[0], subject[1], subject[2], e.ID, func() string { return b.URL })
			subscribers, began[f] = append(subscribers, f), e.ID
			following.Go(func() { f.run(ctx) })
		}
	}
	for _, f := range subscribers {
		if err := f.wait(ctx, func() bool { return f.connected > 0 }); err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
	}

	var load sync.WaitGroup
	var reads atomic.Int64
	var placedOrders sync.Map // the IDs of the acknowledged orders
	loading, endLoad := context.WithCancel(ctx)
	defer load.Wait()
	defer endLoad()
	for i := range buyers {
		load.Go(func() {
			eachTick(loading, func(n int) {
				customer := fmt.Sprintf("c%d", (i+n)%customers)
				if id := s.buy(t, b, customer, fmt.Sprintf("buyer-%d-%d", i, n)); id != "" {
					if _, twice := placedOrders.LoadOrStore(id, true); twice {
						t.Errorf("two requests have placed the order %s", id)
					}
				}
				if n%20 == 0 {
					s.changeAddress(t, func() string { return b.URL }, placed[i%customers].OrderID)
				}
			})
		})
	}
	for i := range readers {
		load.Go(func() {
			eachTick(loading, func(int) {
				s.read(t, b, fmt.Sprintf("c%d", i%customers))
				reads.Add(1)
			})
		})
	}
	before := time.Now()
	for round := range *rounds {
		i := round % len(servers)
		log, err := servers[i].Terminate(t)
		if err != nil || strings.Contains(log, `"level":"ERROR"`) {
			t.Errorf("round %d: the server ended with %v: %s", round, err, log)
		}
		start(i)
		if t.Failed() {
			return
		}
	}
	took := time.Since(before)
	endLoad()
	load.Wait()

	events, owner := s.timelines(t)
	orders := 0
	for id := range owner {
		if _, ok := placedOrders.Load(id); ok {
			orders++
		} else if !slices.ContainsFunc(placed, func(u update) bool { return u.OrderID == id }) {
			t.Errorf("order %s was placed, but no client knows it", id)
		}
	}
	acknowledged, delivered, connections := 0, 0, 0
	placedOrders.Range(func(any, any) bool { acknowledged++; return true })
	if orders != acknowledged {
		t.Errorf("%d orders were acknowledged, but the table has %d of them", acknowledged, orders)
	}
	for _, f := range subscribers {
		want := expectedUpdates(f, began[f], events, owner)
		if len(want) > 0 {
			if err := f.wait(ctx, func() bool { return f.after >= want[len(want)-1].ID }); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
		if err := f.checkUpdates(want); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		f.mu.Lock()
		delivered, connections = delivered+len(want), connections+f.connected
		f.mu.Unlock()
	}
	b.mu.Lock()
	if len(b.failures) > 0 {
		t.Errorf("%d requests failed at the balancer, such as: %v", len(b.failures), b.failures[0])
	}
	t.Logf("%d stops in %s: %d orders and %d queries, %d connections refused; %d subscribers received %d events on %d connections",
		*rounds, took.Round(time.Millisecond), acknowledged, reads.Load(), b.refused, len(subscribers), delivered, connections)
	b.mu.Unlock()
	if connections < len(subscribers)+*rounds {
		t.Errorf("%d connections of %d subscribers after %d stops: the test covers too little", connections, len(subscribers), *rounds)
	}
	storetest.AssertConsistent(t, s.db, s.table, 1)
}

// eachTick calls f once per tick with the numbers 0, 1, 2 and so on, until ctx ends.
func eachTick(ctx context.Context, f func(n int)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f(n)
		}
	}
}

// buy places an order with one request, which must succeed. It returns the ID of the order.
func (s *fixture) buy(t *testing.T, b *balancer, customer, key string) string {
	a, err := s.http.Send(context.Background(), b.URL, workload.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": customer, "items": []map[string]any{{"sku": "p" + customer[1:], "quantity": 1}}, "idempotencyKey": key,
	}})
	if err != nil || !a.Succeeded() {
		t.Errorf("placeOrder: %v, %v", a, err)
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, a.Record().ID)
	return a.Record().ID
}

// read sends one query, which must succeed.
func (s *fixture) read(t *testing.T, b *balancer, customer string) {
	body, err := json.Marshal(map[string]string{"query": fmt.Sprintf(`{ customer(id: %q) { name orders(first: 5) { nodes { id items { nodes { product { name } } } } } } }`, customer)})
	if err != nil {
		t.Error(err)
		return
	}
	response, err := s.http.HTTP.Post(b.URL, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Errorf("query: %v", err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.HasPrefix(text, []byte(`{"data":{"customer":{"name"`)) || bytes.Contains(text, []byte(`"errors"`)) {
		t.Errorf("query: status %d, %s, %v", response.StatusCode, text, err)
	}
}
