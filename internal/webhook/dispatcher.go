// Package webhook delivers the events of orders to the endpoints of the shop: outgoing webhooks.
//
// A [Dispatcher] runs in each server. The servers share the webhooks: the state of each webhook is
// a record of the table, which also contains the lease of the server that delivers its events. The
// events come from the list of the changes of all orders, so a webhook that was unavailable
// continues where it stopped. A [Sender] sends the requests, and refuses addresses that webhooks
// must not reach.
package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Times of leases. A server renews its leases every renewInterval. If another server sees no
// renewal for leaseTime, it takes the lease over. The owner stops to deliver before that, so no two
// servers deliver the events of a webhook at the same time. Each server measures the time with its
// own clock, so their clocks need not agree.
const (
	renewInterval = 3 * time.Second
	// idleInterval is the time between two renewals of a lease whose state does not change.
	idleInterval = 4 * time.Second
	leaseTime    = 12 * time.Second
	leaseMargin  = 2 * time.Second
	// drainTime is the time for the requests in progress before a lease is given to another server. It
	// is short, because the server renews no other lease meanwhile.
	drainTime = time.Second
)

// maxConcurrentSaves is the number of states that a server writes at the same time.
const maxConcurrentSaves = 16

// Options are the options of a Dispatcher.
type Options struct {
	Store  *dynamo.Store
	Sender *Sender
	// Secrets returns the secrets of a webhook that are valid now, decrypted.
	Secrets func(*commerce.Webhook) ([]string, error)
	// Execute returns the answer of a document for an order, as JSON. If documentID is empty, it
	// executes OrderDocument, and otherwise the trusted document with this ID. If the answer is not
	// available at the moment, the error wraps table.ErrUnavailable.
	Execute func(ctx context.Context, documentID string, id commerce.OrderID) (json.RawMessage, error)
	// PollInterval is the time between two reads of the list of changes. The default is one second.
	PollInterval time.Duration
	// Source is the attribute "source" of the events, which names the order book.
	Source string
	Log    *slog.Logger
	// Observe, if set, is called after each attempt to deliver an event.
	Observe func(context.Context, Delivery)
}

// Delivery describes an attempt to deliver an event.
type Delivery struct {
	Webhook commerce.WebhookID
	Event   *commerce.Event
	Outcome Outcome
	// Duration is the time until the endpoint has answered, or until the attempt has failed.
	Duration time.Duration
	// Lag is the time from the event to the end of the attempt.
	Lag time.Duration
	// Bytes is the length of the request's body.
	Bytes int
}

// Dispatcher delivers the events of orders to webhooks.
type Dispatcher struct {
	Options
	id       string
	recent   recentChanges
	orders   memo[json.RawMessage]
	timeline memo[timelinePage]

	mu        sync.Mutex
	endpoints map[commerce.WebhookID]*endpoint
	// seen contains when the current sequence number of a lease was first seen.
	seen map[commerce.WebhookID]sighting
}

type sighting struct {
	sequence int
	at       time.Time
}

// NewDispatcher returns a Dispatcher. It delivers nothing before Run is called.
func NewDispatcher(o Options) *Dispatcher {
	if o.PollInterval <= 0 {
		o.PollInterval = defaultPollInterval
	}
	return &Dispatcher{
		Options: o, id: rand.Text(), recent: newRecentChanges(o.Store, o.PollInterval), orders: newMemo[json.RawMessage](), timeline: newMemo[timelinePage](),
		endpoints: map[commerce.WebhookID]*endpoint{}, seen: map[commerce.WebhookID]sighting{},
	}
}

// Run delivers events until ctx ends. Then it gives its leases to the other servers.
func (d *Dispatcher) Run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := d.share(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				d.Log.Warn("the webhooks cannot be read, so no events are delivered to new ones", "error", err)
			}
		}
		_ = table.Sleep(ctx, renewInterval)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewInterval)
	defer cancel()
	_ = d.forEach(ctx, d.current(), commerce.MaxWebhooks, (*endpoint).release)
}

// current returns the webhooks whose lease the server has.
func (d *Dispatcher) current() []*endpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.endpoints), func(a, b *endpoint) int { return strings.Compare(string(a.webhookID), string(b.webhookID)) })
}

func (d *Dispatcher) forEach(ctx context.Context, all []*endpoint, limit int, do func(*endpoint, context.Context)) error {
	if len(all) == 0 {
		return nil
	}
	return table.Parallel(ctx, len(all), limit, func(ctx context.Context, i int) error {
		do(all[i], ctx)
		return nil
	})
}

// share renews the leases of the server, takes over others, and passes on changes of webhooks.
func (d *Dispatcher) share(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewInterval)
	defer cancel()
	webhooks, err := d.Store.Webhooks(ctx)
	if err != nil {
		_ = d.forEach(ctx, d.current(), maxConcurrentSaves, (*endpoint).renew)
		return err
	}
	wanted := map[commerce.WebhookID]*commerce.Webhook{}
	for _, w := range webhooks {
		wanted[w.ID] = w
	}
	for _, e := range d.current() {
		if w := wanted[e.webhookID]; w != nil {
			e.configure(w)
		} else {
			e.stop() // the webhook was deleted, with its state
			d.forget(e)
		}
	}
	_ = d.forEach(ctx, d.current(), maxConcurrentSaves, (*endpoint).renew)
	states, err := d.Store.WebhookStates(ctx, slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return err
	}
	return d.acquire(ctx, webhooks, states)
}

// acquire takes leases that no server has, until this server has its share of the webhooks. If
// another server has more than its share, it asks this server for a lease.
func (d *Dispatcher) acquire(ctx context.Context, webhooks []*commerce.Webhook, states map[commerce.WebhookID]*commerce.WebhookState) error {
	own, active, leases := 0, 0, map[string]int{d.id: 0}
	var free, taken []*commerce.WebhookState
	byID := map[commerce.WebhookID]*commerce.Webhook{}
	for _, w := range webhooks {
		st := states[w.ID]
		if st == nil {
			st = &commerce.WebhookState{WebhookID: w.ID}
		}
		switch byID[w.ID] = w; {
		case !isActive(w, st):
			continue
		case d.has(w.ID):
			own++
		case d.isFree(st):
			free = append(free, st)
		default:
			leases[st.Owner]++
			if st.Wanted == "" {
				taken = append(taken, st)
			} else {
				leases[st.Wanted] += 0 // this server exists, too
			}
		}
		active++
	}
	leases[d.id] = own
	share := (active + len(leases) - 1) / len(leases)
	for i := len(free) - 1; i > 0; i-- { // so that servers that start together try to get different leases
		j := attempt.RandomN(i + 1)
		free[i], free[j] = free[j], free[i]
	}
	for _, st := range free[:max(0, min(len(free), share-own))] {
		if err := d.start(ctx, byID[st.WebhookID], *st); err != nil {
			return err
		}
	}
	if len(free) > 0 || own >= active/len(leases) {
		return nil
	}
	for _, st := range taken {
		if leases[st.Owner] > active/len(leases) {
			asked := *st
			asked.Wanted, asked.Sequence = d.id, st.Sequence+1
			return ignoreLost(d.Store.SaveWebhookState(ctx, &asked, st.Sequence))
		}
	}
	return nil
}

// isActive reports whether events are delivered to a webhook. If it was disabled, it stays so until
// an admin changes it.
func isActive(w *commerce.Webhook, st *commerce.WebhookState) bool {
	return !w.Paused && (st.DisabledReason == "" || st.WebhookVersion < w.Version)
}

// isFree reports whether this server may take a lease: no server has it, or its owner has not
// renewed it for leaseTime.
func (d *Dispatcher) isFree(st *commerce.WebhookState) bool {
	if st.Owner == "" && (st.Wanted == "" || st.Wanted == d.id) {
		return true
	}
	now := time.Now()
	if last, ok := d.seen[st.WebhookID]; !ok || last.sequence != st.Sequence {
		d.seen[st.WebhookID] = sighting{st.Sequence, now}
		return false
	}
	return now.Sub(d.seen[st.WebhookID].at) >= leaseTime
}

// start takes a lease and starts to deliver the events of its webhook. If another server has taken
// the lease, start does nothing.
func (d *Dispatcher) start(ctx context.Context, w *commerce.Webhook, st commerce.WebhookState) error {
	taken, before := time.Now(), st.Sequence
	st.Owner, st.Wanted, st.Sequence = d.id, "", before+1
	if err := d.Store.SaveWebhookState(ctx, &st, before); err != nil {
		return ignoreLost(err)
	}
	failures, err := d.Store.WebhookFailures(ctx, w.ID)
	if err != nil {
		return err // the lease expires, because no server renews it
	}
	e := newEndpoint(d, w, st, failures, taken)
	d.mu.Lock()
	d.endpoints[w.ID] = e
	d.mu.Unlock()
	go e.run()
	return nil
}

func (d *Dispatcher) has(id commerce.WebhookID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.endpoints[id] != nil
}

// forget removes an endpoint after it has stopped.
func (d *Dispatcher) forget(e *endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.endpoints[e.webhookID] == e {
		delete(d.endpoints, e.webhookID)
	}
	delete(d.seen, e.webhookID)
}

// ignoreLost returns nil if another server has changed the state of a webhook.
func ignoreLost(err error) error {
	if errors.Is(err, dynamo.ErrWebhookChanged) {
		return nil
	}
	return err
}

// Stats are the numbers of a server's webhooks.
type Stats struct {
	// Webhooks is the number of webhooks whose events this server delivers. Retrying is the number
	// of those that wait after failures.
	Webhooks, Retrying int
	// Pending is the number of events that are known but not delivered yet, and SetAside the number of
	// orders that are retried.
	Pending, SetAside int
	// Lag is the age of the oldest event that is not delivered yet.
	Lag time.Duration
}

// Stats returns the numbers of the webhooks whose events this server delivers.
func (d *Dispatcher) Stats() (s Stats) {
	now := d.Store.Now()
	for _, e := range d.current() {
		e.mu.Lock()
		s.Webhooks++
		if e.state.RetryAt != nil || e.state.Failures >= maxFailures {
			s.Retrying++
		}
		s.Pending += e.state.Pending
		s.SetAside += len(e.setAside)
		if since := e.state.PendingSince; since != nil {
			s.Lag = max(s.Lag, now.Sub(*since))
		}
		e.mu.Unlock()
	}
	return s
}
