package simulation_test

import (
	"fmt"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// scenario determines a simulation completely.
type scenario struct {
	Seed uint64
	// Duration is the virtual time of the clients.
	Duration time.Duration
	// Only, if not nil, contains the decisions that take effect.
	Only map[string]bool
	// If compared is true, the lines of the trace are kept for a comparison with another run.
	compared bool

	// The seed determines all fields below. Each seed has only some of the faults and activities, so
	// that one does not hide the others.

	// Round, if not 0, is the time from one round of the clients to the next. Otherwise, it is roundInterval.
	Round time.Duration
	// Rates contains the probabilities of the faults of requests.
	Rates map[faults.Kind]float64
	// Actions are the names of the actions of the operator.
	Actions []string
	// Webhooks and Subscriptions are the numbers of them.
	Webhooks, Subscriptions int
	// Derivations are the lists and features on request that are readable from the start.
	Derivations []string
	// Focus contains mutations that clients choose more often.
	Focus []string
	// ActionPause, if not 0, is the maximum number of rounds between two actions of the operator.
	ActionPause int
	// Retention, if not 0, is how long the stream keeps its records. Otherwise, it is 24 hours.
	Retention time.Duration
	// Stretch, if not 0, is the factor by which the pauses of the clients are longer. In the same
	// number of requests, idempotency keys and stream records expire.
	Stretch int
	// Shards is the number of shards of the lists.
	Shards int
	// If Lag is true, the index lags behind the table.
	Lag bool
	// Walkers and Visitors are the numbers of them. Erase is true if a customer is erased.
	Walkers, Visitors int
	Erase             bool
	// If Disk is true, the engine has a file on a disk with faults.
	Disk bool
}

// orderExpiry is the time after which orders that are not confirmed expire.
const orderExpiry = 40 * time.Minute

// draw draws the scenario of a seed.
func draw(seed uint64, d time.Duration) scenario {
	s := scenario{Seed: seed, Duration: d, Round: min(roundInterval, d/11), Rates: map[faults.Kind]float64{}}
	r := newSeam(seed).random("scenario")
	for _, kinds := range [][]faults.Kind{storeFaults, {lateRequest}, {repeatedRecords}, toClients} {
		for _, kind := range kinds {
			if r.IntN(3) == 0 {
				s.Rates[kind] = []float64{0.002, 0.01, 0.04}[r.IntN(3)]
			}
		}
	}
	for _, kind := range streamFaults[:3] {
		if r.IntN(3) == 0 {
			s.Rates[kind] = 0.02
		}
	}
	for _, a := range operatorActions {
		if r.IntN(3) == 0 {
			s.Actions = append(s.Actions, a.name)
		}
	}
	if r.IntN(2) == 0 {
		s.Subscriptions = subscribers
	}
	if r.IntN(3) == 0 {
		s.Webhooks = 2
	}
	s.Derivations = []string{model.EntityLowStock.Name} // the audit expects it
	for _, name := range []string{model.EntityOrderWaiting.Name, model.StatusChanges} {
		if r.IntN(2) == 0 {
			s.Derivations = append(s.Derivations, name)
		}
	}
	if s.Webhooks > 0 {
		s.Derivations = append(s.Derivations, model.Changes)
	}
	s.Shards = 1 + r.IntN(3)
	s.Lag = r.IntN(3) == 0
	s.Walkers, s.Visitors, s.Erase = r.IntN(3), r.IntN(3), r.IntN(4) == 0
	if r.IntN(4) == 0 && s.Webhooks+s.Subscriptions == 0 { // they would read all the time
		s.Stretch = 100
		s.Duration *= 100
	}
	s.drawDisk(r)
	if r.IntN(3) == 0 {
		names := workload.MutationNames()
		for range 1 + r.IntN(3) {
			s.Focus = append(s.Focus, names[r.IntN(len(names))])
		}
	}
	if r.IntN(2) == 0 {
		s.ActionPause = 1
	}
	if s.Subscriptions > 0 && r.IntN(3) == 0 {
		s.Retention = time.Duration(25+r.IntN(35)) * time.Second // a server reads a shard every 20 seconds
	}
	for _, kind := range streamFaults[:3] {
		if s.Rates[kind] > 0 && r.IntN(2) == 0 {
			s.Rates[kind] = 0.2
		}
	}
	return s
}

// hook is a webhook with its receiver.
type hook struct {
	*receivers.Receiver
	commerce.Webhook
}

const webhookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

func webhookSecrets(*commerce.Webhook) ([]string, error) { return []string{webhookSecret}, nil }

// prepare prepares the table of the scenario.
func (w *world) prepare() {
	raw := storetest.RawTable{T: w.T, DB: w.db, Name: w.table, Store: w.admin}
	if err := w.admin.Ping(w.Context()); err != nil {
		w.Fatal(err)
	}
	storetest.LoadDataset(w.T, w.admin, fixture.Dataset(w.T))
	for _, name := range w.Derivations {
		storetest.MakeReadable(w.T, raw, name)
	}
	// Each customer has an order, so that subscriptions can begin after its event.
	for i := range fixture.Customers {
		if _, err := w.admin.PlaceOrder(w.Context(), change.Caller{Name: "admin"}, commerce.OrderRequest{CustomerID: commerce.CustomerID(fmt.Sprintf("c%d", i)), Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}}); err != nil {
			w.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	for i := range w.Webhooks {
		host := []string{"shop0.example.com", "shop1.example.com"}[i]
		h := &hook{Receiver: w.network.Add(host, w.receive(host), webhookSecret)}
		now := time.Now()
		id := commerce.WebhookID(storetest.ULIDAt(now, i))
		h.Webhook = commerce.Webhook{ID: id, URL: h.Receiver.URL, Version: 1, CreatedAt: now, UpdatedAt: now, Secrets: []string{"x"}, From: commerce.EventID(storetest.ULIDAt(now, 0))}
		if i == 1 {
			h.Topics = []commerce.EventType{commerce.EventPlaced, commerce.EventNoteAdded}
		}
		raw.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &h.Webhook)[0])
		w.hooks = append(w.hooks, h)
	}
}

// receive returns the behavior of a receiver: it usually accepts an event.
func (w *world) receive(host string) receivers.Behavior {
	return func(e *receivers.Exchange) {
		var behavior receivers.Behavior
		i := &interaction{from: host, name: "delivery", content: e.WebhookID, latency: clientLatency}
		i.run = func() string {
			behavior = receivers.Healthy
			r := w.random("receiver", i.String())
			n := r.IntN(12)
			if n < 4 && w.decide(i.String()+": "+[]string{"fails", "loses the response", "is slow", "limits"}[n]) {
				behavior = []receivers.Behavior{receivers.Status(500), receivers.LoseResponse, receivers.Slow(15*time.Second, receivers.Healthy), receivers.Status(429)}[n]
			}
			return e.WebhookID
		}
		if w.do(w.Context(), i) == nil {
			behavior(e)
		}
	}
}
