package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// OrderChange is a change of an order that is delivered to subscribers. All subscribers share the
// values that it points to and must not modify them.
type OrderChange struct {
	OrderID commerce.OrderID
	// Event is the change's entry in the order's timeline. It is nil if other software changed the
	// order and wrote no event.
	Event *commerce.Event
	// Position is the ID of the event that a subscription can resume after. It is empty for changes
	// by other software.
	Position commerce.EventID
	// This is the order right after the change. If it is nil, the subscriber must read the order.
	Order *commerce.Order
	// Customer owns the order after the change. It is empty if the source did not report it.
	Customer commerce.CustomerID
}

// withOrder returns the change with the order right after it, which may be nil.
func (c OrderChange) withOrder(order *commerce.Order) OrderChange {
	if c.Order = order; order != nil {
		c.Customer = order.CustomerID
	}
	return c
}

// Errors that end a Subscription.
var (
	// ErrTooSlow: the subscriber read so slowly that its queue was full.
	ErrTooSlow = errors.New("the subscriber is too slow")
	// ErrClosed: the Subscription was closed.
	ErrClosed = errors.New("the subscription is closed")
)

// Limits of a feed.
const (
	// defaultQueueCapacity is the default capacity of a subscription's queue.
	defaultQueueCapacity = 256
	// maxTimelines is the maximum number of timelines that one subscription reads concurrently.
	maxTimelines = 16
	// maxBacklog limits the events from timelines that all subscriptions hold together, about 50 MB.
	// Beyond it each subscription holds minBacklog events at a time, and reads more after their
	// delivery.
	maxBacklog = 100_000
	minBacklog = 32
)

// Options configure a feed.
type Options struct {
	// Log gets a line when the source fails, and for each record that cannot be read. It may be nil.
	Log *slog.Logger
	// QueueCapacity is the capacity of a subscription's queue, 256 if it is 0. If its queue is full, a
	// subscription ends with ErrTooSlow.
	QueueCapacity int
	// AcquireRead acquires a slot for reading timelines. It waits until the caller of the context may
	// read, and returns a function that releases the slot. If the context ends first, it returns the
	// context's error. If Reading is nil, reads are not limited.
	AcquireRead func(context.Context) (done func(), err error)
}

// Feed delivers the changes of a table, both by this program and by other software. It reads each
// shard of the table's stream once for all subscriptions. Without subscriptions it reads nothing.
// It is safe for concurrent use.
//
// # Each event once, in order
//
// The IDs of a customer's events increase in the order of the commits. The record of the customer's
// last event enforces this order. The changes of that record in the stream are these events, one by
// one. Each event is delivered to subscriptions to the customer and to the event's order.
//
// A subscription registers first and then reads the ID of the last event. Events up to that ID were
// committed before. If the subscriber resumes after an earlier event, they are read from the
// timelines. Events with a higher ID were committed later and arrive with the stream. After a gap
// in the stream, the subscription reads the ID of the last event and the missed events again.
//
// A subscription to a status has no timeline. Its first changes may be from just before it began,
// if the stream had not delivered them yet.
//
// Changes by other software have no position in that order. Each is delivered once, to the
// subscriptions that exist at that time. It cannot be read from the timelines later.
//
// # Memory
//
// An idle subscription takes about 500 bytes and no goroutine. The queue of a slow subscriber is
// bounded.
type Feed struct {
	table         *table.Table
	source        Source
	log           *slog.Logger
	queueCapacity int
	// acquireRead is Options.AcquireRead.
	acquireRead func(context.Context) (done func(), err error)
	// backlog is the number of events from timelines that all subscriptions hold.
	backlog atomic.Int64
	// runs waits for the goroutines that read the source.
	runs sync.WaitGroup

	// mu is acquired before a Subscription's mu, never after it. No request is sent while mu is held.
	mu                sync.Mutex
	closed            bool
	run               *sourceRun
	subscriptions     map[topic][]*Subscription
	subscriptionCount int
}

// topic is the subject of a subscription.
type topic struct {
	kind topicKind
	// id is an order ID, a customer ID or the name of a status. It is empty for all statuses.
	id string
}

type topicKind uint8

const (
	topicOrder topicKind = iota + 1
	topicCustomer
	topicStatus
)

// Open returns a feed of a table. The feed reads nothing before the first subscription.
func Open(t *table.Table, source Source, opts Options) *Feed {
	f := &Feed{
		table: t.Consistent(), source: source, log: opts.Log, queueCapacity: opts.QueueCapacity,
		acquireRead: opts.AcquireRead, subscriptions: map[topic][]*Subscription{},
	}
	if f.acquireRead == nil {
		f.acquireRead = func(context.Context) (func(), error) { return func() {}, nil }
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.queueCapacity <= 0 {
		f.queueCapacity = defaultQueueCapacity
	}
	return f
}

// SubscribeOrder subscribes to one order, which need not exist yet. If after is not empty, the
// subscription begins after that event of the order's timeline. It returns commerce.InvalidError if
// after is not an event of the order that has a position, and table.ErrNoStream if the table has no
// stream. Other errors are wrapped by table.WrapError.
func (f *Feed) SubscribeOrder(ctx context.Context, id commerce.OrderID, after commerce.EventID) (*Subscription, error) {
	partition, err := model.EntityOrderEvent.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return f.subscribe(ctx, topic{topicOrder, string(id)}, &orderHistory{feed: f, partition: partition}, after)
}

// SubscribeCustomerOrders subscribes to all orders of one customer. If after is not empty, the
// subscription begins after that event of any of the customer's orders. It returns
// commerce.InvalidError if after is not an event of these orders that has a position, or if too
// many events have followed it. It returns table.ErrNoStream if the table has no stream. Other
// errors are wrapped by table.WrapError.
func (f *Feed) SubscribeCustomerOrders(ctx context.Context, id commerce.CustomerID, after commerce.EventID) (*Subscription, error) {
	partition, err := model.EntityLastEvent.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return f.subscribe(ctx, topic{topicCustomer, string(id)}, &customerHistory{feed: f, partition: partition}, after)
}

// SubscribeOrderStatus subscribes to orders that change to a status, or to any status if status is
// zero. It returns table.ErrNoStream if the table has no stream. Other errors are wrapped by
// table.WrapError.
func (f *Feed) SubscribeOrderStatus(ctx context.Context, status commerce.Status) (*Subscription, error) {
	return f.subscribe(ctx, statusTopic(status), nil, "")
}

func statusTopic(status commerce.Status) topic {
	if status == 0 {
		return topic{kind: topicStatus}
	}
	return topic{topicStatus, status.String()}
}

// subscribe begins a subscription. It waits until the source is ready.
func (f *Feed) subscribe(ctx context.Context, t topic, h history, after commerce.EventID) (*Subscription, error) {
	s := &Subscription{feed: f, topic: t, history: h, wake: make(chan struct{}, 1)}
	run, err := f.attach(s)
	if err != nil {
		return nil, err
	}
	select {
	case <-run.begun:
		err = run.err
	case <-ctx.Done():
		err = table.WrapError("subscribe to", t.String(), ctx.Err())
	}
	if err == nil && h != nil {
		err = s.begin(ctx, after)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// attach registers a subscription and returns the current run. The first subscription starts a run.
func (f *Feed) attach(s *Subscription) (*sourceRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("subscribe to %s: %w: the feed is closed", s.topic, table.ErrUnavailable)
	}
	s.index = len(f.subscriptions[s.topic])
	f.subscriptions[s.topic] = append(f.subscriptions[s.topic], s)
	f.subscriptionCount++
	if f.run == nil {
		f.run = f.start()
	}
	return f.run, nil
}

// detach removes a subscription. Removing the last one ends the run. The caller holds mu.
func (f *Feed) detach(s *Subscription) {
	list := f.subscriptions[s.topic]
	if s.index >= len(list) || list[s.index] != s {
		return
	}
	end := len(list) - 1
	list[s.index], list[end].index = list[end], s.index
	list[end] = nil
	if f.subscriptions[s.topic] = list[:end]; end == 0 {
		delete(f.subscriptions, s.topic)
	}
	if f.subscriptionCount--; f.subscriptionCount == 0 && f.run != nil {
		f.run.cancel()
		f.run = nil
	}
}

// Close ends the feed and all its subscriptions, and waits for the goroutines that read the source.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	if f.run != nil {
		f.run.cancel()
		f.run = nil
	}
	f.endAll(fmt.Errorf("%w: the feed is closed", table.ErrUnavailable), nil)
	f.mu.Unlock()
	f.runs.Wait()
}

// endAll ends the subscriptions whose topic matches, or all of them if match is nil. The caller
// holds mu.
func (f *Feed) endAll(err error, match func(topic) bool) {
	for t, list := range f.subscriptions {
		if match == nil || match(t) {
			for len(list) > 0 {
				s := list[len(list)-1]
				s.end(err)
				f.detach(s)
				list = f.subscriptions[t]
			}
		}
	}
}

// Subscriptions returns the number of subscriptions.
func (f *Feed) Subscriptions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.subscriptionCount
}

func (t topic) String() string {
	switch t.kind {
	case topicOrder:
		return "order " + t.id
	case topicCustomer:
		return "the orders of customer " + t.id
	case topicStatus:
		if t.id != "" {
			return "orders that become " + t.id
		}
	}
	return "all orders"
}
