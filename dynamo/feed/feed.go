package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// OrderChange is a change of an order. All subscribers receive the same Event and Order, so they
// must not modify them.
type OrderChange struct {
	OrderID commerce.OrderID
	// Event is the event that the change added to the order's timeline. If other software changed the
	// order without adding an event, Event is nil.
	Event *commerce.Event
	// Position is the ID of Event. A new subscription can continue after this ID. If other software
	// made the change, Position is empty, and later subscriptions do not receive the change.
	Position commerce.EventID
	// Order is the order immediately after the change. If Order is nil, the subscriber must read the
	// order from the table.
	Order *commerce.Order
	// Customer is the ID of the order's customer after the change. If the feed does not know the
	// customer, Customer is empty.
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
	// ErrTooSlow: the subscriber read changes too slowly, so the queue was full. A new subscription
	// can resume after the last event.
	ErrTooSlow = errors.New("the subscriber is too slow")
	// ErrSubscriptionClosed: the subscription was closed by its method Close.
	ErrSubscriptionClosed = errors.New("the subscription is closed")
)

// Limits of a feed and its subscriptions.
const (
	// defaultQueueCapacity is the default maximum number of changes in a subscription's queue.
	defaultQueueCapacity = 256
	// maxConcurrentTimelineReads is the maximum number of timelines that one subscription reads at the
	// same time.
	maxConcurrentTimelineReads = 16
	// maxBacklog is the maximum number of timeline events in memory, for all subscriptions together.
	// They take about 50 MB.
	maxBacklog = 100_000
	// minBacklog is the number of events that a subscription may keep in memory even if maxBacklog is
	// reached.
	minBacklog = 32
)

// Options configure a Feed.
type Options struct {
	// Log receives a message when the source fails, and for each record that cannot be decoded. If Log
	// is nil, the feed logs nothing.
	Log *slog.Logger
	// QueueCapacity is the maximum number of changes in a subscription's queue. 0 means 256. If the
	// queue has no space for a new change, the subscription ends with ErrTooSlow.
	QueueCapacity int
	// AcquireRead waits until a subscription may read timelines. The subscription calls done after the
	// read. If AcquireRead is nil, there is no limit.
	AcquireRead func(context.Context) (done func(), err error)
}

// Feed delivers the changes of a table's orders to subscriptions, including changes by other
// software. Without subscriptions, it reads nothing. It is safe for concurrent use.
type Feed struct {
	table         *table.Table
	source        Source
	log           *slog.Logger
	queueCapacity int
	// acquireRead is Options.AcquireRead, or a function that never waits.
	acquireRead func(context.Context) (done func(), err error)
	// backlog is the number of events from timelines that have not been delivered yet, for all
	// subscriptions together.
	backlog atomic.Int64
	// maxCatchUpPage is maxCatchUpPage, or fewer events in tests.
	maxCatchUpPage int
	counters
	// runs waits for the goroutines that read the source.
	runs sync.WaitGroup

	// A goroutine that needs this mu and the mu of a Subscription must lock this mu first. While the
	// feed holds this mu, it sends no request to DynamoDB.
	mu                sync.Mutex
	closed            bool
	run               *sourceRun
	subscriptions     map[topic][]*Subscription
	subscriptionCount int
}

// topic identifies the orders to which a subscription applies.
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

// Open returns a Feed of a table's orders. The Feed reads nothing before the first subscription
// begins.
func Open(t *table.Table, source Source, opts Options) *Feed {
	f := &Feed{
		table: t.Consistent(), source: source, log: opts.Log, queueCapacity: opts.QueueCapacity,
		acquireRead: opts.AcquireRead, subscriptions: map[topic][]*Subscription{}, maxCatchUpPage: maxCatchUpPage,
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

// SubscribeOrder subscribes to one order, even before it exists. If after is set, the subscription
// begins after this event.
//
// Errors: commerce.InvalidError if after is not an event of this order, table.ErrNoStream, errors
// of table.WrapError.
func (f *Feed) SubscribeOrder(ctx context.Context, id commerce.OrderID, after commerce.EventID) (*Subscription, error) {
	partition, err := model.EntityOrderEvent.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return f.subscribe(ctx, topic{topicOrder, string(id)}, &orderHistory{feed: f, partition: partition}, after)
}

// SubscribeCustomerOrders subscribes to all orders of one customer. If after is set, the
// subscription begins after this event.
//
// Errors: the errors of SubscribeOrder.
func (f *Feed) SubscribeCustomerOrders(ctx context.Context, id commerce.CustomerID, after commerce.EventID) (*Subscription, error) {
	partition, err := model.EntityLastEvent.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return f.subscribe(ctx, topic{topicCustomer, string(id)}, &customerHistory{feed: f, partition: partition}, after)
}

// SubscribeOrderStatus subscribes to all orders whose status changes to the given status. If status
// is zero, it subscribes to all status changes. If after is set, the subscription begins after this
// event, and delivers events in the order of their IDs, at least a minute after the change.
//
// Errors: commerce.InvalidError if after is older than the list of status changes,
// model.DerivationUnavailable if the table does not have this list, table.ErrNoStream, and the errors of
// table.WrapError.
func (f *Feed) SubscribeOrderStatus(ctx context.Context, status commerce.Status, after commerce.EventID) (*Subscription, error) {
	if after == "" {
		// Without after, the first changes may have been committed shortly before the subscription.
		return f.subscribe(ctx, statusTopic(status), nil, "")
	}
	h := &statusHistory{feed: f, status: status}
	if err := h.checkResumable(ctx, after); err != nil {
		return nil, err
	}
	return f.subscribe(ctx, statusTopic(status), h, after)
}

// backlogCapacity returns the number of events from timelines that a subscription may keep in memory.
func (f *Feed) backlogCapacity() int { return max(minBacklog, maxBacklog-int(f.backlog.Load())) }

// catchUpLimit returns the number of events that a subscription may read from timelines at once. The
// limit decreases before the backlog is full, so that no subscription must read in small pages
// because others have large backlogs.
func (f *Feed) catchUpLimit() int {
	return min(f.maxCatchUpPage, max(minBacklog, f.backlogCapacity()/4))
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
	if _, s.delayed = h.(*statusHistory); s.delayed {
		s.lastEventID = after
	}
	// Register the subscription before it reads the last event's ID. So the feed receives all events
	// with a higher ID from the source.
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
	switch {
	case err != nil:
	case s.delayed:
		s.markBehind() // so that Next reads the missed changes
	case h != nil:
		err = s.begin(ctx, after)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// attach registers a subscription and returns the sourceRun that reads the source. If there is no
// sourceRun yet, attach starts one.
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

// detach removes a subscription. If no subscription is left, detach ends the sourceRun. The caller
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

// endSubscriptions ends each subscription that match accepts. If match is nil, it ends all
// subscriptions. The subscribers of the ended subscriptions receive err. The caller holds mu.
func (f *Feed) endSubscriptions(err error, match func(*Subscription) bool) {
	for _, list := range f.subscriptions {
		// Iterate backwards, because detach moves the last subscription of the list.
		for _, s := range slices.Backward(list) {
			if match == nil || match(s) {
				s.end(err)
				f.detach(s)
			}
		}
	}
}

// Subscriptions returns the number of current subscriptions.
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
