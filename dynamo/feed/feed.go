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

// OrderChange is a change of an order. All subscribers receive the same Event and Order, and must
// not modify them.
type OrderChange struct {
	OrderID commerce.OrderID
	// Event is the event that the change added to the order's timeline. It is nil if other software
	// changed the order without adding an event.
	Event *commerce.Event
	// Position is the ID of Event. A new subscription can resume after this ID. Position is empty if
	// other software made the change.
	Position commerce.EventID
	// Order is the order immediately after the change. If Order is nil, the subscriber must read the
	// order from the table.
	Order *commerce.Order
	// Customer is the ID of the order's customer after the change. It is empty if the feed does not
	// know the customer.
	Customer commerce.CustomerID
}

// withOrder returns the change with the given order, which may be nil.
func (c OrderChange) withOrder(order *commerce.Order) OrderChange {
	if c.Order = order; order != nil {
		c.Customer = order.CustomerID
	}
	return c
}

// Errors that end a Subscription.
var (
	// ErrTooSlow: the queue of the subscription was full, because the subscriber read too slowly.
	ErrTooSlow = errors.New("the subscriber is too slow")
	// ErrSubscriptionClosed: the Subscription was closed.
	ErrSubscriptionClosed = errors.New("the subscription is closed")
)

// Limits of a feed.
const (
	// defaultQueueCapacity is the default capacity of a subscription's queue.
	defaultQueueCapacity = 256
	// maxConcurrentTimelineReads is the maximum number of timelines that one subscription reads concurrently.
	maxConcurrentTimelineReads = 16
	// maxBacklog limits how many events from timelines wait in memory for their delivery, in all
	// subscriptions together. maxBacklog events take about 50 MB. Above this limit, a subscription
	// keeps at most minBacklog events, delivers them, and reads again.
	maxBacklog = 100_000
	minBacklog = 32
)

// Options configure a feed.
type Options struct {
	// Log receives a message when the source fails, and for each record that cannot be decoded. If Log
	// is nil, the feed logs nothing.
	Log *slog.Logger
	// QueueCapacity is the capacity of a subscription's queue. 0 means 256. A subscription ends with
	// ErrTooSlow if its queue has no space for a change.
	QueueCapacity int
	// AcquireRead limits how many subscriptions read timelines at the same time. It waits until a slot
	// for reading is free, and returns a function that releases the slot. It returns the context's
	// error if the context ends first. If AcquireRead is nil, there is no limit.
	AcquireRead func(context.Context) (done func(), err error)
}

// Feed delivers the changes of a table's orders to subscriptions, including changes by other
// software. It reads each shard of the table's stream once for all subscriptions. It reads nothing
// while there are no subscriptions. It is safe for concurrent use.
//
// # Each event once, in order
//
// The table contains a record of each customer's last event. When this program writes an event, it
// replaces this record, on the condition that the new event has a higher ID. So the IDs of a
// customer's events increase in the order of the commits. In the stream, each change of the record
// is one event. The feed delivers it to subscriptions to the customer and to the event's order.
//
// A new subscription first registers and then reads the ID of the last event. Events with a higher
// ID are committed later, so the feed receives them from the stream. If the subscriber resumes
// after an earlier event, the subscription reads the events up to the last event from the
// timelines. It does the same if the feed has missed changes in the stream.
//
// A subscription to a status has no timeline. Its first changes may have been committed shortly
// before it began, because the stream delivers changes with a delay.
//
// Changes by other software have no position in the order of events. The feed delivers such a
// change once, to the subscriptions that exist at this time. Subscriptions that resume later do not
// receive it.
//
// # Memory
//
// An idle subscription takes about 500 bytes and no goroutine. The queue of each subscription is
// bounded.
type Feed struct {
	table         *table.Table
	source        Source
	log           *slog.Logger
	queueCapacity int
	// acquireRead is Options.AcquireRead.
	acquireRead func(context.Context) (done func(), err error)
	// backlog is the number of undelivered events from timelines in all subscriptions.
	backlog atomic.Int64
	counters
	// runs contains the goroutines that read the source.
	runs sync.WaitGroup

	// A goroutine that needs this mu and the mu of a Subscription must lock this mu first. The feed
	// sends no DynamoDB request while it holds mu.
	mu                sync.Mutex
	closed            bool
	run               *sourceRun
	subscriptions     map[topic][]*Subscription
	subscriptionCount int
}

// topic is the subject of a subscription.
type topic struct {
	kind topicKind
	// id is an order ID, a customer ID or the name of a status. If kind is topicStatus, an empty id
	// means all statuses.
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
// subscription begins after the event with that ID.
//
// Errors: commerce.InvalidError if after is not the ID of an event of this order, or if other
// software wrote the event; table.ErrNoStream, and the errors of table.WrapError.
func (f *Feed) SubscribeOrder(ctx context.Context, id commerce.OrderID, after commerce.EventID) (*Subscription, error) {
	partition, err := model.EntityOrderEvent.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return f.subscribe(ctx, topic{topicOrder, string(id)}, &orderHistory{feed: f, partition: partition}, after)
}

// SubscribeCustomerOrders subscribes to all orders of one customer. If after is not empty, the
// subscription begins after the event with that ID.
//
// Errors: like SubscribeOrder, and commerce.InvalidError if too many events follow the event.
func (f *Feed) SubscribeCustomerOrders(ctx context.Context, id commerce.CustomerID, after commerce.EventID) (*Subscription, error) {
	partition, err := model.EntityLastEvent.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return f.subscribe(ctx, topic{topicCustomer, string(id)}, &customerHistory{feed: f, partition: partition}, after)
}

// SubscribeOrderStatus subscribes to orders that change to the given status. If status is zero, it
// subscribes to orders that change to any status.
//
// Errors: table.ErrNoStream, and the errors of table.WrapError.
func (f *Feed) SubscribeOrderStatus(ctx context.Context, status commerce.Status) (*Subscription, error) {
	return f.subscribe(ctx, statusTopic(status), nil, "")
}

func statusTopic(status commerce.Status) topic {
	if status == 0 {
		return topic{kind: topicStatus}
	}
	return topic{topicStatus, status.String()}
}

// subscribe starts a subscription. It waits until the source is ready.
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

// attach registers a subscription and returns the sourceRun that reads the source. The first
// subscription starts a sourceRun.
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
		f.run = f.startSourceRun()
	}
	return f.run, nil
}

// detach removes a subscription. If no subscription is left, it ends the sourceRun. The caller
// holds mu.
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

// Close ends the feed and all its subscriptions. It waits for the goroutines that read the source.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	if f.run != nil {
		f.run.cancel()
		f.run = nil
	}
	f.endSubscriptions(fmt.Errorf("%w: the feed is closed", table.ErrUnavailable), nil)
	f.mu.Unlock()
	f.runs.Wait()
}

// endSubscriptions ends each subscription with a topic that matches. If match is nil, it ends all
// subscriptions. The caller holds mu.
func (f *Feed) endSubscriptions(err error, match func(topic) bool) {
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
