package durability_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	s.kill(t)
	initial := len(audit(t, s).Orders)
	s.start(t)

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

	s.kill(t)
	s.check(t)
	audited := audit(t, s)
	checkOrders(t, audited, orders)
	if len(audited.Orders) != len(orders)+initial {
		t.Errorf("the table has %d orders, want %d", len(audited.Orders), len(orders)+initial)
	}

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
	if after := audit(t, s); len(after.Records) != len(audited.Records) {
		t.Errorf("after all requests were repeated, the table has %d records, want %d", len(after.Records), len(audited.Records))
	}
}

// checkOrders checks that the table has the orders as in the last responses.
func checkOrders(t *testing.T, audited *storetest.AuditResult, orders map[string]placed) {
	t.Helper()
	for id, p := range orders {
		found, last := audited.Records[storetest.Key{PK: "ORDER#" + id, SK: "#METADATA"}], p.last().response.Record()
		if found == nil {
			t.Errorf("order %s was acknowledged, but does not exist", id)
		} else if status := strings.ToUpper(found.Text("status")); status != last.Status || found.Int("version") != last.Version || found.Text("customerId") != p.order.Input["customerId"] {
			t.Errorf("order %s of customer %s is %s in version %d, want %s in version %d of customer %s", id, found.Text("customerId"), status, found.Int("version"), last.Status, last.Version, p.order.Input["customerId"])
		}
	}
}

// audit checks the file's pages and records without the server.
func audit(t *testing.T, s *server) *storetest.AuditResult {
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
	return storetest.AssertConsistent(t, store.Client(), "ordergraph", 1)
}
