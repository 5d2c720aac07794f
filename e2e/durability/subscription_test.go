package durability_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// event is a change of an order that a subscription has delivered.
type event struct {
	ID, OrderID string
	Event       struct{ Type string }
}

// subscribe subscribes to the orders of a customer as server-sent events. After each break of the
// connection it continues after the last event. It delivers until ctx ends.
func (s *server) subscribe(ctx context.Context, t *testing.T, customer, after string, events chan<- event) (connections int) {
	for ctx.Err() == nil {
		query := fmt.Sprintf(`subscription { customerOrders(customerId: %q, after: %q) { id orderId event { type } } }`, customer, after)
		body, err := json.Marshal(map[string]string{"query": query})
		if err != nil {
			t.Error(err)
			return connections
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address.WaitURL(), strings.NewReader(string(body)))
		if err != nil {
			t.Error(err)
			return connections
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		response, err := s.client.HTTP.Do(r)
		if err != nil {
			continue // the server was killed
		}
		connections++
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || data == "" {
				continue
			}
			var next struct {
				Data   struct{ CustomerOrders *event }
				Errors []struct{ Extensions struct{ Code string } }
			}
			if err := json.Unmarshal([]byte(data), &next); err != nil || next.Data.CustomerOrders == nil {
				t.Errorf("the subscription delivered %s: %v", data, err)
				continue
			}
			after = next.Data.CustomerOrders.ID
			events <- *next.Data.CustomerOrders
		}
		response.Body.Close()
	}
	return connections
}

// A subscription that continues after its last event delivers each change once, although the server
// is killed again and again.
func TestSubscriptionAcrossKills(t *testing.T) {
	kills := longtest.Size(3, 40)
	s := newServer(t)
	source := rand.New(rand.NewPCG(7, 2))
	const customer = "cust_005" // the customer has no orders in the sample data
	first, _ := s.send(t, "placeOrder", "first", order(source, customer))
	timeline := func(id string) (events []event) {
		var found struct {
			Order struct {
				Timeline struct{ Nodes []struct{ ID, Type string } }
			}
		}
		s.query(t, &found, `{ order(id: %q) { timeline(first: 25) { nodes { id type } } } }`, id)
		for _, n := range found.Order.Timeline.Nodes {
			e := event{ID: n.ID, OrderID: id}
			e.Event.Type = n.Type
			events = append(events, e)
		}
		return events
	}

	ctx, stop := context.WithCancel(t.Context())
	delivered, connections := make(chan event, 100_000), make(chan int, 1)
	after := timeline(first.response.Record().ID)[0].ID
	go func() { connections <- s.subscribe(ctx, t, customer, after, delivered) }()

	const clients = 8
	var closed atomic.Bool
	orders := make([][]string, clients)
	ended := runClients(clients, func(number int) {
		source := rand.New(rand.NewPCG(7, uint64(200+number)))
		for n := 0; !closed.Load() && !t.Failed(); n++ {
			key := fmt.Sprintf("client-%d-order-%d", number, n)
			m, _ := s.send(t, "placeOrder", key, order(source, customer))
			id := m.response.Record().ID
			orders[number] = append(orders[number], id)
			if source.IntN(2) == 0 {
				s.send(t, "cancelOrder", key+"-cancelled", map[string]any{"orderId": id})
			}
		}
	})
	for range kills {
		if !s.killSoon(t, ended) {
			break
		}
	}
	closed.Store(true)
	<-ended
	// All earlier events must be delivered before this event.
	last, _ := s.send(t, "placeOrder", "last", order(source, customer))
	if t.Failed() {
		stop()
		s.kill(t)
		return
	}

	want := map[string]event{}
	for _, ids := range append(orders, []string{last.response.Record().ID}) {
		for _, id := range ids {
			for _, e := range timeline(id) {
				want[e.ID] = e
			}
		}
	}
	got := map[string]bool{}
	next := func() event {
		select {
		case e := <-delivered:
			return e
		case <-time.After(time.Minute):
			for id, e := range want {
				if !got[id] {
					t.Errorf("the event %+v was not delivered", e)
				}
			}
			t.Fatalf("the subscription delivered %d events, want %d", len(got), len(want))
			return event{}
		}
	}
	for len(got) < len(want) {
		e := next()
		if got[e.ID] {
			t.Errorf("the event %+v was delivered twice", e)
		}
		if e != want[e.ID] {
			t.Errorf("the event %+v was delivered, want %+v", e, want[e.ID])
			break
		}
		got[e.ID] = true
	}
	// If the server delivers an event twice, the second delivery arrives before this further event.
	further, _ := s.send(t, "placeOrder", "further", order(source, customer))
	if e := next(); e.OrderID != further.response.Record().ID {
		t.Errorf("after all events, %+v was delivered", e)
	}
	stop()
	number := <-connections
	t.Logf("%d kills, %d events, %d connections", kills, len(want), number)
	if number < kills/2 {
		t.Errorf("the subscription had %d connections with %d kills: the test does not cover kills", number, kills)
	}
	s.kill(t)
	s.check(t)
}
