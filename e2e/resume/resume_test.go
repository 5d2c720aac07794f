// Package resume_test repeatedly kills a server while clients subscribe to orders through it. Each
// client connects again and resumes after its last update. Each client must receive every event
// once, in order.
package resume_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

var changes = flag.Int("changes", longtest.Size(60, 500), "number of changes while a server is repeatedly killed")

// The size of the fixture.
const (
	customers = 6
	// ordersEach is the number of initial orders of each customer.
	ordersEach = 8
	// clients is the number of clients that change orders. Half of the clients use the server that is
	// killed.
	clients = 8
	// timeLimit is the maximum time of a test. The limit detects a test that hangs.
	timeLimit = 2 * time.Minute
	// attempts is the maximum number of attempts per request. After each kill of the server, each
	// client needs one or a few more attempts.
	attempts = 10_000
)

// fixture is a table with its known orders.
type fixture struct {
	db    *dynamodb.Client
	table string
	http  *workload.Client

	mu     sync.Mutex
	orders []string
	// changes counts the changes. uniqueValues counts the requests that contain a unique value.
	changes, uniqueValues atomic.Int64
}

func (s *fixture) randomOrder(source *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders[source.IntN(len(s.orders))]
}

// send sends a mutation until it gets a response. It returns nil for user errors.
func (s *fixture) send(t *testing.T, serverURL func() string, field string, input map[string]any) *workload.Record {
	a, _, err := s.http.SendWithRetries(context.Background(), serverURL, workload.Mutation{Field: field, Input: input}, attempts)
	if err != nil {
		t.Errorf("%s %v: %v", field, input, err)
	}
	if err != nil || !a.Succeeded() {
		return nil
	}
	record := a.Record()
	return &record
}

func (s *fixture) placeOrder(t *testing.T, serverURL func() string, customer string) *workload.Record {
	o := s.send(t, serverURL, "placeOrder", map[string]any{
		"customerId": customer, "items": []map[string]any{{"sku": "p0", "quantity": 1}}, "idempotencyKey": fmt.Sprintf("order-%d", s.uniqueValues.Add(1)),
	})
	if o == nil {
		t.Errorf("customer %s could not place an order", customer)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, o.ID)
	return o
}

// changeAddress sets a new shipping address of an order. The order must not have been shipped. If
// the request is repeated, the server makes no second change.
func (s *fixture) changeAddress(t *testing.T, serverURL func() string, order string) *workload.Record {
	return s.send(t, serverURL, "updateShippingAddress", map[string]any{"orderId": order, "shippingAddress": map[string]any{
		"recipient": "Ann", "line1": fmt.Sprintf("%d High St", s.uniqueValues.Add(1)), "city": "Leeds", "countryCode": "GB",
	}})
}

// changeOrder changes an order in one of several ways.
func (s *fixture) changeOrder(t *testing.T, source *rand.Rand, serverURL func() string) *workload.Record {
	order := s.randomOrder(source)
	input := func(name string, value any) map[string]any {
		return map[string]any{"orderId": order, name: value}
	}
	switch n := source.IntN(100); {
	case n < 1:
		return s.placeOrder(t, serverURL, fmt.Sprintf("c%d", source.IntN(customers)))
	case n < 11:
		return s.send(t, serverURL, "setOrderItem", map[string]any{"orderId": order, "sku": "p1", "quantity": 1 + source.IntN(1000)})
	case n < 12:
		field := []string{"confirmOrder", "deliverOrder", "cancelOrder"}[source.IntN(3)]
		return s.send(t, serverURL, field, input("idempotencyKey", fmt.Sprintf("move-%d", s.uniqueValues.Add(1))))
	default:
		return s.changeAddress(t, serverURL, order)
	}
}

// runClient simulates one client that changes orders until total changes were made. It calls notify
// after each change.
func (s *fixture) runClient(t *testing.T, number int, total int64, serverURL func() string, notify func()) {
	source := rand.New(rand.NewPCG(29, uint64(number)))
	for s.changes.Load() < total && !t.Failed() {
		if s.changeOrder(t, source, serverURL) != nil {
			s.changes.Add(1)
			notify()
		}
	}
}

// timelines returns the events of all orders in the table, sorted by ID, and the customer of each
// order.
func (s *fixture) timelines(t *testing.T) (events []update, owner map[string]string) {
	t.Helper()
	audited, err := storetest.Audit(t.Context(), s.db, s.table, 1)
	if err != nil {
		t.Fatal(err)
	}
	owner = map[string]string{}
	for k, r := range audited.Records {
		order, ok := strings.CutPrefix(k.PK, "ORDER#")
		switch id, event := strings.CutPrefix(k.SK, "EVENT#"); {
		case ok && event:
			events = append(events, update{id, order})
		case ok && k.SK == "#METADATA":
			owner[order] = r.Text("customerId")
		}
	}
	slices.SortFunc(events, func(a, b update) int { return cmp.Compare(a.ID, b.ID) })
	return events, owner
}

// expectedUpdates returns the events that a subscriber must receive if it began after the event
// began.
func expectedUpdates(f *subscriber, began string, events []update, owner map[string]string) []update {
	var want []update
	for _, e := range events {
		if e.ID > began && (f.field == "orderUpdated" && e.OrderID == f.id || f.field == "customerOrders" && owner[e.OrderID] == f.id) {
			want = append(want, e)
		}
	}
	return want
}

// Two servers use one table, and clients change orders through both. One server is repeatedly
// killed and restarted. Subscribers of orders and customers at that server reconnect and resume
// after their last update. They receive every event once and in order. Subscribers at the other
// server receive the same without reconnecting. Changes by other software are delivered, too,
// without an event ID.
func TestResume(t *testing.T) {
	instance := dynamolocal.Shared(t)
	binary := workload.BuildServer(t, "../..")
	s := &fixture{db: instance.Client(), table: "resume", http: workload.NewClient()}
	w := workload.Fixture{Customers: customers, Products: 2, Warehouses: 1, Stock: 1_000_000_000}
	store := storetest.NewTable(t, s.db, dynamo.Options{Table: s.table})
	if err := store.EnableStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, w.Dataset(t))
	environment := workload.ServerEnvironment(t, s.table, instance.Endpoint())
	steady := workload.StartServer(t, binary, environment)
	defer func() { steady.Kill(t) }()
	killed, killedAddress := workload.StartServer(t, binary, environment), workload.NewServerAddress()
	defer func() { killed.Kill(t) }()
	killedAddress.Set(killed.URL)
	steadyURL := func() string { return steady.URL }

	for range ordersEach {
		for c := range customers {
			s.placeOrder(t, steadyURL, fmt.Sprintf("c%d", c))
		}
	}
	placed, owner := s.timelines(t)
	if len(placed) != customers*ordersEach {
		t.Fatalf("%d events, want one for each of %d orders", len(placed), customers*ordersEach)
	}

	ctx, stop := context.WithTimeout(t.Context(), timeLimit+time.Duration(*changes)*100*time.Millisecond)
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { stop(); killedAddress.Set(steady.URL) }() // no subscriber waits for a server
	began := map[*subscriber]string{}
	var subscribers []*subscriber
	follow := func(server, field, argument, id, after string, serverURL func() string) {
		f := newSubscriber(fmt.Sprintf("%s(%s) at the %s server", field, id, server), field, argument, id, after, serverURL)
		subscribers, began[f] = append(subscribers, f), after
		running.Go(func() { f.run(ctx) })
	}
	first := map[string]string{}
	for i, e := range placed {
		if first[owner[e.OrderID]] == "" {
			first[owner[e.OrderID]] = e.ID
		}
		switch {
		case i%3 == 0:
			follow("killed", "orderUpdated", "id", e.OrderID, e.ID, killedAddress.WaitURL)
		case i%12 == 1:
			follow("steady", "orderUpdated", "id", e.OrderID, e.ID, steadyURL)
		}
	}
	for c, id := range first {
		follow("killed", "customerOrders", "customerId", c, id, killedAddress.WaitURL)
		follow("killed", "customerOrders", "customerId", c, id, killedAddress.WaitURL)
		follow("steady", "customerOrders", "customerId", c, id, steadyURL)
	}

	start := time.Now()
	total := int64(*changes)
	var work sync.WaitGroup
	// killedChanges has capacity for every change at the server that is killed, so that clients never
	// block.
	killedChanges := make(chan struct{}, *changes+clients)
	for i := range clients {
		serverURL, notify := steadyURL, func() {}
		if i%2 == 1 {
			serverURL, notify = killedAddress.WaitURL, func() { killedChanges <- struct{}{} }
		}
		work.Go(func() { s.runClient(t, i, total, serverURL, notify) })
	}
	go func() { work.Wait(); close(killedChanges) }()
	source := rand.New(rand.NewPCG(29, 1_000_000))
	kills, changesAtKilled, nextKill := 0, 0, 1+source.IntN(20)
	// Each server process is killed after some changes were made through it.
	for range killedChanges {
		if changesAtKilled++; changesAtKilled < nextKill {
			continue
		}
		// Clear the URL first, so that clients do not connect to a dead server.
		killedAddress.Set("")
		killed.Kill(t)
		killed = workload.StartServer(t, binary, environment)
		killedAddress.Set(killed.URL)
		kills++
		nextKill = changesAtKilled + 1 + source.IntN(20)
	}
	took := time.Since(start)
	if t.Failed() {
		return
	}

	// Change each subscribed order once more. When that event has arrived, all earlier events have
	// arrived.
	for _, f := range subscribers {
		if f.field == "orderUpdated" && s.changeAddress(t, steadyURL, f.id) == nil {
			t.Logf("order %s is final and cannot change", f.id)
		}
	}
	for c := range first {
		s.placeOrder(t, killedAddress.WaitURL, c)
	}
	events, owner := s.timelines(t)
	delivered, connected := 0, 0
	for _, f := range subscribers {
		want := expectedUpdates(f, began[f], events, owner)
		last := began[f]
		if len(want) > 0 {
			last = want[len(want)-1].ID
		}
		if err := f.wait(ctx, func() bool { return f.after >= last }); err != nil {
			t.Errorf("%s did not receive %s: %v", f.name, last, err)
		}
		if err := f.checkUpdates(want); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		delivered += len(want)
		f.mu.Lock()
		connected = max(connected, f.connected)
		if n := f.connected; strings.Contains(f.name, "steady") && n != 1 {
			t.Errorf("%s connected %d times, want 1", f.name, n)
		}
		if len(f.external) > 0 {
			t.Errorf("%s received changes without an event: %q", f.name, f.external)
		}
		f.mu.Unlock()
	}
	t.Logf("%d changes in %v, %d through the server that was killed %d times; %d subscribers received %d events and connected up to %d times",
		s.changes.Load(), took.Round(time.Millisecond), changesAtKilled, kills, len(subscribers), delivered, connected)
	if connected <= kills/2 || changesAtKilled < *changes/10 {
		t.Errorf("at most %d connections after %d kills and %d changes at the killed server: the test covers too little", connected, kills, changesAtKilled)
	}
	storetest.AssertConsistent(t, s.db, s.table, 1)
	s.checkExternalChanges(ctx, t, subscribers)
}

// checkExternalChanges changes each subscribed order as other software would change it. It verifies
// that all subscribers of the order receive an update without an event ID.
func (s *fixture) checkExternalChanges(ctx context.Context, t *testing.T, subscribers []*subscriber) {
	t.Helper()
	subscribers = slices.DeleteFunc(subscribers, func(f *subscriber) bool { return f.field != "orderUpdated" })
	for _, f := range subscribers {
		if _, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: "ORDER#" + f.id}, "sk": &types.AttributeValueMemberS{Value: "#METADATA"},
			},
			UpdateExpression:          aws.String("SET theirs = :v"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: "a remark"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range subscribers {
		if err := f.wait(ctx, func() bool { return len(f.external) > 0 }); err != nil {
			t.Errorf("%s did not receive a change by other software: %v", f.name, err)
		}
		f.mu.Lock()
		if !slices.Equal(f.external, []string{f.id}) {
			t.Errorf("%s received changes without an event: %q", f.name, f.external)
		}
		f.mu.Unlock()
	}
}
