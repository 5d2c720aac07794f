package dynamo

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

// OrderChange is a change of an order, as those who follow it are told. What it points to is shared
// by all who are told, and nobody writes to it.
type OrderChange struct {
	OrderID commerce.OrderID
	// Event is the change's entry in the order's timeline; nil where other software changed the
	// order and wrote none.
	Event *commerce.Event
	// Position is the ID of the event where a subscription can be resumed after it. It is empty for
	// changes by other software.
	Position commerce.EventID
	// Order is the order right after the change, where it came along; where it is nil, read it.
	Order *commerce.Order
	// Customer is whose order it is after the change; empty where that did not come along.
	Customer commerce.CustomerID
}

// withOrder returns the change with the order as it was right after it; nil where that is not
// known.
func (c OrderChange) withOrder(order *commerce.Order) OrderChange {
	if c.Order = order; order != nil {
		c.Customer = order.CustomerID
	}
	return c
}

// What ends a Following.
var (
	// ErrTooSlow: the follower took its changes so slowly that too many waited for it.
	ErrTooSlow = errors.New("the follower is too slow")
	// ErrNotFollowing: the Following was closed.
	ErrNotFollowing = errors.New("nothing is followed any more")
)

// The limits of a feed.
const (
	// defaultBuffer is how many changes wait for a follower.
	defaultBuffer = 256
	// maxCatchingUp is how many followers read timelines at once: after a gap in the stream all of
	// them do.
	maxCatchingUp = 16
	// maxBacklog is how many events that were read from timelines wait for all followers together,
	// some 50 MB. Beyond it each follower has fewEvents at a time, and reads again when it has
	// taken them.
	maxBacklog = 100_000
	fewEvents  = 32
)

// Feeds open feeds of the changes of a table.
type Feeds struct{ table *table.Table }

// newFeeds returns the feeds of a table.
func newFeeds(t *table.Table) Feeds { return Feeds{t} }

// FeedOptions say how a feed treats those who follow.
type FeedOptions struct {
	// Log is told of what breaks the feed off, and of records that cannot be read; nil for nobody.
	Log *slog.Logger
	// Buffer is how many changes may wait for a follower before it is cut; 256 where it is 0.
	Buffer int
}

// Feed tells what changes in the table, whoever changes it. It reads each shard of the table's
// stream once, however many follow it, and nothing while nobody does. It is safe for concurrent
// use.
//
// # Each once, in order
//
// The IDs of a customer's events rise in the order in which they were committed, which the record
// of the customer's last event sees to. Its changes in the stream are these events, one by one.
// They are told to those who follow the customer, and to those who follow the event's order. A
// follower is first put on the list of those who are told, and then reads which event is the last
// one: all up to that one were committed before, and are read from the timelines where the follower
// asks for them; all behind it were committed after, and come with the stream. Where the stream has
// a gap the same is done again. Who follows a status has no timeline to fall back on, and may be
// told what happened in the last moments before it came, as far as the stream had not told it yet.
//
// Changes by other software have no place in that order. They are told once, to those who listen,
// and no reading of timelines finds them again.
//
// # Memory
//
// A follower who waits has no goroutine here and some 500 bytes. What waits for one who is slow is
// bounded.
type Feed struct {
	table  *table.Table
	source FeedSource
	log    *slog.Logger
	buffer int
	// reading has a place for each of those who catch up.
	reading chan struct{}
	// backlog is how many events that were read from timelines wait for followers.
	backlog atomic.Int64
	// runs are the goroutines that read.
	runs sync.WaitGroup

	// mu may be held while a Following's own lock is taken, and not the other way round. Nothing is
	// read while it is held.
	mu        sync.Mutex
	closed    bool
	run       *feedRun
	followers map[topic][]*Following
	following int
}

// topic is what somebody can follow.
type topic struct {
	kind topicKind
	// id is the order's, the customer's or the status's, empty for any status.
	id string
}

type topicKind uint8

const (
	topicOrder topicKind = iota + 1
	topicCustomer
	topicStatus
)

// OpenFeed returns the feed of the store's table. It reads nothing before somebody follows.
func (feeds Feeds) OpenFeed(source FeedSource, opts FeedOptions) *Feed {
	f := &Feed{
		table: feeds.table.Strong(), source: source, log: opts.Log, buffer: opts.Buffer,
		reading: make(chan struct{}, maxCatchingUp), followers: map[topic][]*Following{},
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.buffer <= 0 {
		f.buffer = defaultBuffer
	}
	return f
}

// Order follows one order, behind an event of its timeline where after is not empty. It need not
// exist yet.
//
// Errors: commerce.InvalidError where after is not an event of the order that has a position,
// ErrUnavailable where the table has no stream, those of failed.
func (f *Feed) Order(ctx context.Context, id commerce.OrderID, after commerce.EventID) (*Following, error) {
	partition, err := model.EntityOrderEvent.PK.Key(string(id))
	if err != nil {
		return nil, err
	}
	return f.follow(ctx, topic{topicOrder, string(id)}, &orderHistory{feed: f, partition: partition}, after)
}

// CustomerOrders follows the orders of one customer, behind an event of one of them where after is
// not empty.
//
// Errors: as Order's; after may be an event of any of the customer's orders. So much may have
// happened behind it that commerce.InvalidError asks to read the orders instead.
func (f *Feed) CustomerOrders(ctx context.Context, id commerce.CustomerID, after commerce.EventID) (*Following, error) {
	partition, err := model.EntityLastEvent.PK.Key(string(id))
	if err != nil {
		return nil, err
	}
	return f.follow(ctx, topic{topicCustomer, string(id)}, &customerHistory{feed: f, partition: partition}, after)
}

// OrderStatus follows orders that come into a status, any where it is zero.
//
// Errors: as Order's.
func (f *Feed) OrderStatus(ctx context.Context, status commerce.Status) (*Following, error) {
	return f.follow(ctx, statusTopic(status), nil, "")
}

func statusTopic(status commerce.Status) topic {
	if status == 0 {
		return topic{kind: topicStatus}
	}
	return topic{topicStatus, status.String()}
}

// follow makes a Following and lets it begin.
func (f *Feed) follow(ctx context.Context, t topic, h history, after commerce.EventID) (*Following, error) {
	w := &Following{feed: f, topic: t, history: h, wake: make(chan struct{}, 1)}
	run, err := f.attach(w)
	if err != nil {
		return nil, err
	}
	select {
	case <-run.begun:
		err = run.err
	case <-ctx.Done():
		err = table.Failed("follow", t.String(), ctx.Err())
	}
	if err == nil && h != nil {
		err = w.begin(ctx, after)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// attach puts a follower on the list, and starts reading where it is the first.
func (f *Feed) attach(w *Following) (*feedRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("follow %s: %w: the feed is closed", w.topic, table.ErrUnavailable)
	}
	w.place = len(f.followers[w.topic])
	f.followers[w.topic] = append(f.followers[w.topic], w)
	f.following++
	if f.run == nil {
		f.run = f.start()
	}
	return f.run, nil
}

// detach takes a follower off the list, and ends the reading where it was the last. The caller
// holds mu.
func (f *Feed) detach(w *Following) {
	list := f.followers[w.topic]
	if w.place >= len(list) || list[w.place] != w {
		return
	}
	end := len(list) - 1
	list[w.place], list[end].place = list[end], w.place
	list[end] = nil
	if f.followers[w.topic] = list[:end]; end == 0 {
		delete(f.followers, w.topic)
	}
	if f.following--; f.following == 0 && f.run != nil {
		f.run.cancel()
		f.run = nil
	}
}

// Close ends the feed and all who follow it, and waits until nothing is read any more.
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

// endAll ends those who follow something of that kind, everybody where it is nil. The caller holds
// mu.
func (f *Feed) endAll(err error, of func(topic) bool) {
	for t, list := range f.followers {
		if of == nil || of(t) {
			for len(list) > 0 {
				w := list[len(list)-1]
				w.end(err)
				f.detach(w)
				list = f.followers[t]
			}
		}
	}
}

// Followers is how many follow at the moment.
func (f *Feed) Followers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.following
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
