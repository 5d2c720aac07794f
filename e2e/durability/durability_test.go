package durability_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// placed contains the mutations of one client: the placement of an order and, if the client
// cancelled the order, the cancellation.
type placed struct {
	order        sentMutation
	cancellation *sentMutation
}

// last returns the last mutation of the order.
func (p placed) last() sentMutation {
	if p.cancellation != nil {
		return *p.cancellation
	}
	return p.order
}

// The server is killed repeatedly while clients place orders. Clients repeat a request with the
// same idempotency key until they get a response. At the end, each order exists once and is
// complete.
func TestKilledUnderLoad(t *testing.T) {
	kills := longtest.Size(3, 150)
	s := newServer(t)
	initial := readOrders(t, s)

	const clients = 12
	var closed atomic.Bool
	var repeated atomic.Int64
	logs := make([][]placed, clients)
	ended := runClients(clients, func(number int) {
		source := rand.New(rand.NewPCG(7, uint64(100+number)))
		send := func(field, key string, input map[string]any) sentMutation {
			m, n := s.send(t, field, key, input)
			if n > 1 {
				repeated.Add(1)
			}
			return m
		}
		for n := 0; !closed.Load() && !t.Failed(); n++ {
			key := fmt.Sprintf("client-%d-order-%d", number, n)
			p := placed{order: send("placeOrder", key, order(source, customers[source.IntN(len(customers))]))}
			if source.IntN(4) == 0 {
				m := send("cancelOrder", key+"-cancelled", map[string]any{"orderId": p.order.response.Record().ID, "expectedVersion": 1})
				p.cancellation = &m
			}
			logs[number] = append(logs[number], p)
		}
	})
	for range kills {
		if !s.killSoon(t, ended) {
			break
		}
	}
	closed.Store(true)
	<-ended
	orders := map[string]placed{}
	for _, p := range slices.Concat(logs...) {
		id := p.order.response.Record().ID
		if other, ok := orders[id]; ok {
			t.Errorf("order %s is the result of the keys %s and %s", id, p.order.IdempotencyKey(), other.order.IdempotencyKey())
		}
		orders[id] = p
	}
	t.Logf("%d kills, %d orders, %d requests sent more than once", kills, len(orders), repeated.Load())
	if repeated.Load() < int64(kills)/2 {
		t.Errorf("only %d requests were interrupted by %d kills: the test does not cover kills", repeated.Load(), kills)
	}
	if t.Failed() {
		s.kill(t)
		return
	}

	checkOrders(t, s, orders, initial)
	s.kill(t)
	s.check(t)
	records := audit(t, s, len(orders)+len(initial))

	// A request that is repeated after all restarts gets its first response, and changes nothing.
	s.start(t)
	<-runClients(clients, func(number int) {
		for _, p := range logs[number] {
			for _, m := range []*sentMutation{&p.order, p.cancellation} {
				if m == nil {
					continue
				}
				if again, err := s.client.Send(t.Context(), s.process.URL, m.Mutation); err != nil || again.String() != m.response.String() {
					t.Errorf("%s %s: the first response was %v, the repeated response is %v, %v", m.Field, m.IdempotencyKey(), m.response, again, err)
				}
			}
		}
	})
	s.kill(t)
	if after := audit(t, s, len(orders)+len(initial)); after != records {
		t.Errorf("after all requests were repeated, the table has %d records, want %d", after, records)
	}
}

// readOrders returns the IDs of the orders of all customers, with the IDs of their customers.
func readOrders(t *testing.T, s *server) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, customer := range customers {
		number, cursor := 0, ""
		for {
			var page struct {
				Customer struct {
					OrderCount int
					Orders     struct {
						Nodes    []struct{ ID string }
						PageInfo struct {
							HasNextPage bool
							EndCursor   string
						}
					}
				}
			}
			s.query(t, &page, `{ customer(id: %q) { orderCount orders(first: 50%s) { nodes { id } pageInfo { hasNextPage endCursor } } } }`, customer, cursor)
			for _, o := range page.Customer.Orders.Nodes {
				if found[o.ID] != "" {
					t.Errorf("order %s is listed twice", o.ID)
				}
				found[o.ID] = customer
			}
			number += len(page.Customer.Orders.Nodes)
			if !page.Customer.Orders.PageInfo.HasNextPage {
				if number != page.Customer.OrderCount {
					t.Errorf("customer %s has %d orders, but the counter is %d", customer, number, page.Customer.OrderCount)
				}
				break
			}
			cursor = fmt.Sprintf(`, after: %q`, page.Customer.Orders.PageInfo.EndCursor)
		}
	}
	return found
}

// checkOrders checks that the server has the orders as in the responses, and no further orders.
func checkOrders(t *testing.T, s *server, orders map[string]placed, initial map[string]string) {
	t.Helper()
	listed := readOrders(t, s)
	if len(listed) != len(initial)+len(orders) {
		t.Errorf("the customers have %d orders, want %d", len(listed), len(initial)+len(orders))
	}
	for id, p := range orders {
		if want := p.order.Input["customerId"]; listed[id] != want {
			t.Errorf("order %s is in the list of customer %q, want %q", id, listed[id], want)
		}
		var found struct {
			Order *struct {
				Status  string
				Version int
				Items   struct {
					Nodes []struct {
						ProductID string
						Quantity  int
					}
				}
				Timeline struct{ Nodes []struct{ Type string } }
			}
		}
		s.query(t, &found, `{ order(id: %q) { status version items(first: 25) { nodes { productId quantity } } timeline(first: 25) { nodes { type } } } }`, id)
		o, last := found.Order, p.last().response.Record()
		if o == nil {
			t.Errorf("order %s was acknowledged, but does not exist", id)
			continue
		}
		if o.Status != last.Status || o.Version != last.Version || len(o.Timeline.Nodes) != last.Version {
			t.Errorf("order %s is %s in version %d with %d events, want %s in version %d with an event for each", id, o.Status, o.Version, len(o.Timeline.Nodes), last.Status, last.Version)
		}
		quantities := map[string]int{}
		for _, i := range o.Items.Nodes {
			quantities[i.ProductID] = i.Quantity
		}
		items := p.order.Input["items"].([]map[string]any)
		for _, i := range items {
			if got := quantities[i["sku"].(string)]; got != i["quantity"] || len(quantities) != len(items) {
				t.Errorf("order %s has the quantities %v, want %v", id, quantities, items)
			}
		}
	}
}

// audit checks the file's pages and records without the server, and returns the number of records.
func audit(t *testing.T, s *server, orders int) (records int) {
	t.Helper()
	file, err := bbolt.Open(s.file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = file.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("the file is damaged: %v", err)
		}
		return nil
	})
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := embedded.Open(s.file, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	audited := storetest.AssertConsistent(t, store.Client(), "ordergraph", 1)
	if len(audited.Orders) != orders {
		t.Errorf("the table has %d orders, want %d", len(audited.Orders), orders)
	}
	return len(audited.Records)
}
