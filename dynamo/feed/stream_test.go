package feed_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

var fastOptions = feed.StreamOptions{MinPause: time.Millisecond, MaxPause: 4 * time.Millisecond, ShardListInterval: 20 * time.Millisecond}

// newSimulatedStream returns a fixture on DynamoDB Local whose feed reads simulated shards.
func newSimulatedStream(t *testing.T, log *storetest.Log) (*fixture, *simulatedStream) {
	t.Helper()
	db := dynamolocal.Shared(t).Client()
	f := newFixture(t, db, feed.Options{})
	shape := &simulatedStream{t: t, requestCounts: map[string]int{}, readCounts: map[string]int{}}
	streams := storetest.StreamsClient(db, func(o *dynamodbstreams.Options) {
		shape.next = o.HTTPClient
		o.HTTPClient = shape
	})
	f.feed = f.store.OpenFeed(feed.StreamSource(streams, fastOptions), feed.Options{QueueCapacity: 10_000, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(f.feed.Close)
	return f, shape
}

// collector is a subscriber. A goroutine collects its changes until a given last change.
type collector struct {
	name string
	got  []commerce.EventID
	err  error
	done chan struct{}
}

func (f *fixture) collect(what string, w *feed.Subscription, until func(feed.OrderChange) bool) *collector {
	c := &collector{name: what, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for {
			change, err := w.Next(f.ctx)
			if err != nil {
				c.err = err
				return
			}
			if change.Event != nil {
				c.got = append(c.got, change.Event.ID)
			}
			if until(change) {
				return
			}
		}
	}()
	return c
}

func isCancelled(c feed.OrderChange) bool {
	return c.Event != nil && c.Event.Type == commerce.EventCancelled
}

// check waits for the last change and compares the events.
func (c *collector) check(t *testing.T, want []commerce.EventID) {
	t.Helper()
	<-c.done
	if c.err != nil || !slices.Equal(c.got, want) {
		t.Errorf("%s: %d changes, want %d (%v)\ngot  %s\nwant %s", c.name, len(c.got), len(want), c.err, c.got, want)
	}
}

// checkHistory changes three orders and calls between after each change, for example to split
// shards. It checks that each event is delivered once and in order, both to early subscribers and
// to subscribers that resume later after the first event.
func checkHistory(t *testing.T, f *fixture, between func(i int)) {
	t.Helper()
	orders := []commerce.OrderID{f.placeOrder("c1"), f.placeOrder("c2"), f.placeOrder("c2")}
	var all []*collector
	for _, id := range orders {
		all = append(all, f.collect("order "+string(id), f.subscribeOrder(id, f.timeline(id)[0]), isCancelled))
	}
	n := longtest.Size(20, 40)
	for i := range n {
		f.setQuantity(orders[i%3], i+2)
		if between != nil {
			between(i)
		}
		if i == n/2 {
			for _, id := range orders {
				all = append(all, f.collect("late, order "+string(id), f.subscribeOrder(id, f.timeline(id)[0]), isCancelled))
			}
		}
	}
	late := f.collect("late, customer c1", f.subscribeCustomer("c1", f.timeline(orders[0])[0]), isCancelled)
	for _, id := range orders {
		f.moveOrder(id, commerce.Cancelled)
	}
	for i, c := range append(all, late) {
		c.check(t, f.timeline(orders[i%3])[1:])
	}
}

// Shards split while orders change. Their children are listed before or after their end is read.
func TestShardSplits(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	// Changes of statuses and of orders have different partition keys, so they are in different
	// shards.
	count, complete := 0, make(chan struct{})
	statuses := f.collect("all statuses", f.subscribeStatus(0), func(feed.OrderChange) bool {
		if count++; count == 6 {
			close(complete)
		}
		return false
	})
	checkHistory(t, f, func(i int) {
		if i%12 == 7 {
			shape.split()
		}
	})
	select {
	case <-complete:
	case <-statuses.done:
	}
	if n := shape.requests("DescribeStream"); n < 4 {
		t.Errorf("shards were listed in %d requests", n)
	}
	if log.String() != "" {
		t.Errorf("it was logged:\n%s", log.String())
	}
	f.feed.Close()
	<-statuses.done
	if n := len(statuses.got); n != 6 {
		t.Errorf("%d changes of statuses, want 6", n)
	}
}

// Iterators expire after 15 minutes. A new iterator begins after the last record.
func TestExpiredIterators(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	statuses := f.subscribeStatus(0)
	checkHistory(t, f, func(i int) {
		if i%5 == 0 {
			shape.expire()
		}
	})
	// No change of a status was missed.
	f.expectChanges(statuses, "placed, placed, placed, cancelled, cancelled, cancelled")
}

// If records are trimmed before they are read, their events are read from the timelines.
// Subscriptions to statuses end, because statuses have no timelines.
func TestTrimmedRecords(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	statuses := f.subscribeStatus(commerce.Shipped)
	checkHistory(t, f, func(i int) {
		if i%4 == 3 {
			shape.trim()
		}
		if i%20 == 11 {
			shape.split()
		}
	})
	if _, err := statuses.Next(f.ctx); !errors.Is(err, table.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if shape.trims < 3 {
		t.Errorf("records were trimmed %d times, want at least 3", shape.trims)
	}
	if log.Count("changes to the table were missed") == 0 {
		t.Errorf("the gap was not logged:\n%s", log.String())
	}
}

// If an iterator expires before the first record was read, the old position in the shard is
// unknown. The missed events are read from the timelines.
func TestIteratorExpiresBeforeFirstRecord(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	id := f.placeOrder("c1")
	ofOrder, ofCustomer := f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")
	shape.setDelayed(true)
	f.setQuantity(id, 2)
	shape.expire()
	// The next iterator begins at the end, after the change.
	requests := shape.requests("GetShardIterator")
	eventually(t, "another iterator is requested", func() bool { return shape.requests("GetShardIterator") > requests })
	shape.setDelayed(false)
	f.expectChanges(ofOrder, "item_set")
	f.expectChanges(ofCustomer, "item_set")
	f.setQuantity(id, 3)
	f.expectChanges(ofOrder, "item_set")
	f.expectChanges(ofCustomer, "item_set")
}

// Throttling and errors of the service and the network are retried. Each record is delivered once.
func TestStreamFaults(t *testing.T) {
	db := dynamolocal.Shared(t).Client()
	f := newFixture(t, db, feed.Options{})
	rates := faults.Rates{faults.ThroughputExceeded: 0.04, faults.LimitExceeded: 0.04, faults.InternalServerError: 0.04, faults.Throttling: 0.04, faults.ConnectionRefused: 0.04,
		faults.ConnectionReset: 0.04, faults.ResponseTimeout: 0.04, faults.TruncatedResponse: 0.04, faults.ExpiredIterator: 0.04}
	random := faults.Random(1, nil, rates)
	streams, between := faults.WrapStreamsClient(storetest.StreamsClient(db), func(r faults.Request) faults.Kind {
		if r.Operation == "GetRecords" {
			return random(r)
		}
		return faults.None
	})
	f.feed = f.store.OpenFeed(feed.StreamSource(streams, fastOptions), feed.Options{QueueCapacity: 10_000})
	defer f.feed.Close()
	var w *feed.Subscription
	for w == nil { // subscribing fails if the stream cannot be read at the beginning
		var err error
		if w, err = f.feed.SubscribeOrderStatus(f.ctx, 0, ""); err != nil && !errors.Is(err, table.ErrUnavailable) {
			t.Log(err)
		}
	}
	defer w.Close()
	checkHistory(t, f, nil)
	counts := between.Counts()
	if len(counts) < 4 {
		t.Errorf("too few kinds of faults were injected: %v, want at least 4", counts)
	}
}

// A stream that is disabled and enabled again is a new stream.
func TestRecreatedStream(t *testing.T) {
	var log storetest.Log
	db := dynamolocal.Shared(t).Client()
	f := newFixture(t, db, feed.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	set := func(spec types.StreamSpecification) {
		t.Helper()
		if _, err := db.UpdateTable(f.ctx, &dynamodb.UpdateTableInput{TableName: &f.table, StreamSpecification: &spec}); err != nil {
			t.Fatal(err)
		}
	}
	on, off := true, false
	id := f.placeOrder("c1")
	w := f.subscribeOrder(id, "")
	set(types.StreamSpecification{StreamEnabled: &off})
	f.setQuantity(id, 2)
	set(types.StreamSpecification{StreamEnabled: &on, StreamViewType: types.StreamViewTypeNewAndOldImages})
	f.setQuantity(id, 3)
	last := commerce.EventID("")
	for range 2 {
		// The subscription ends if it looked for the stream while it was disabled.
		change, err := w.Next(f.ctx)
		for errors.Is(err, table.ErrUnavailable) {
			w = f.subscribeOrder(id, cmp.Or(last, f.timeline(id)[0]))
			change, err = w.Next(f.ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		last = change.Event.ID
	}
	if ids := f.timeline(id); last != ids[2] {
		t.Errorf("the last event is %s, want %s", last, ids[2])
	}

	set(types.StreamSpecification{StreamEnabled: &off})
	if c, err := w.Next(f.ctx); !errors.Is(err, table.ErrNoStream) || !errors.Is(err, table.ErrUnavailable) {
		t.Errorf("got %+v, %v", c, err)
	}
	if !strings.Contains(log.String(), "ordergraph table create") {
		t.Errorf("the log does not name the command that enables the stream:\n%s", log.String())
	}
	if _, err := f.feed.SubscribeOrder(f.ctx, id, ""); !errors.Is(err, table.ErrNoStream) {
		t.Errorf("got %v", err)
	}
	set(types.StreamSpecification{StreamEnabled: &on, StreamViewType: types.StreamViewTypeKeysOnly})
	if _, err := f.feed.SubscribeOrder(f.ctx, id, ""); !errors.Is(err, table.ErrNoStream) || !strings.Contains(err.Error(), "KEYS_ONLY") {
		t.Errorf("got %v", err)
	}
}

// A feed begins after a shard has ended and before its children are listed. It lists the shards
// again soon, not only after ShardListInterval.
func TestChildShardsListedLate(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	id := f.placeOrder("c1")
	first := f.subscribeOrder(id, "")
	f.setQuantity(id, 2)
	f.expectChanges(first, "item_set")
	first.Close()
	waitForNoReaders(t)
	shape.splitUnseen()
	streams := storetest.StreamsClient(f.db, func(o *dynamodbstreams.Options) { o.HTTPClient = shape })
	opts := feed.StreamOptions{MinPause: time.Millisecond, MaxPause: 4 * time.Millisecond, ShardListInterval: time.Hour}
	f.feed = f.store.OpenFeed(feed.StreamSource(streams, opts), feed.Options{})
	t.Cleanup(f.feed.Close)
	w := f.subscribeOrder(id, "")
	f.setQuantity(id, 3)
	f.expectChanges(w, "item_set")
}

// A read from the oldest record of a shard does not fail if earlier records were trimmed. So if a child
// shard is first read after a large part of the retention, missed events are read from the timelines.
func TestChildShardReadTooLate(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	streams := storetest.StreamsClient(f.db, func(o *dynamodbstreams.Options) { o.HTTPClient = shape })
	opts := fastOptions
	opts.Retention = time.Nanosecond
	f.feed = f.store.OpenFeed(feed.StreamSource(streams, opts), feed.Options{})
	t.Cleanup(f.feed.Close)
	id := f.placeOrder("c1")
	ofOrder, ofCustomer := f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")
	f.setQuantity(id, 2)
	f.expectChanges(ofOrder, "item_set")
	f.expectChanges(ofCustomer, "item_set")
	shape.splitUntilTrimmed(func() { f.setQuantity(id, 3) })
	f.expectChanges(ofOrder, "item_set")
	f.expectChanges(ofCustomer, "item_set")
}

// Each shard has one reader for all subscriptions, and no reader after the last subscription.
func TestOneReaderPerShard(t *testing.T) {
	var log storetest.Log
	f, shape := newSimulatedStream(t, &log)
	id := f.placeOrder("c1")
	first := f.subscribeOrder(id, "")
	shape.split()
	f.setQuantity(id, 2)
	f.expectChanges(first, "item_set")
	var group sync.WaitGroup
	subscriptions := make([]*feed.Subscription, 500)
	for i := range subscriptions {
		group.Go(func() {
			var err error
			if subscriptions[i], err = f.feed.SubscribeOrderStatus(f.ctx, 0, ""); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	f.moveOrder(id, commerce.Confirmed)
	for _, w := range subscriptions {
		f.expectChanges(w, "confirmed")
	}
	// One of the children may be listed a little later, and its reader may request its iterator a
	// little later.
	eventually(t, "both children are read", func() bool {
		return countGoroutines("shardReader).read") == 2 && shape.requests("GetShardIterator") >= 3
	})
	if n := shape.requests("GetShardIterator"); n != 3 {
		t.Errorf("%d iterators were requested, want 3: for the shard and its two children", n)
	}
	first.Close()
	for _, w := range subscriptions {
		w.Close()
	}
	waitForNoReaders(t)
}

// waitForNoReaders waits until no goroutine of a feed is left.
func waitForNoReaders(t *testing.T) {
	t.Helper()
	eventually(t, "no goroutine of a feed is left", func() bool {
		return countGoroutines("feed.(*Feed)", "feed.(*streamReader)", "feed.(*shardReader)") == 0
	})
}

// eventually waits until a condition holds. The test fails if that takes longer than guard.
func eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(guard); !condition(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting: %s", description)
		}
	}
}

// countGoroutines returns the number of goroutines that have one of the names in their stacks.
func countGoroutines(names ...string) int {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
	n := 0
	for _, stack := range strings.Split(b.String(), "\n\n") {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(stack, name) }) {
			n++
		}
	}
	return n
}

// A feed that is closed during changes and reads leaves no goroutine behind.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		for range 5 {
			ctx, cancel := context.WithCancel(f.ctx)
			ended := make(chan error, 40)
			for i := range 40 {
				w := f.subscribeOrder(id, "")
				go func() {
					for {
						if _, err := w.Next(ctx); err != nil {
							ended <- err
							return
						}
						if i%3 == 0 {
							w.Close()
						}
					}
				}()
			}
			f.setQuantity(id, 2+rand.IntN(1000))
			cancel()
			f.feed.Close()
			for range 40 {
				if err := <-ended; err == nil {
					t.Error("Next ended without an error")
				}
			}
			waitForNoReaders(t)
			f.feed = storetest.OpenFeed(t, db, f.store, feed.Options{})
		}
	})
}

// Many writers and subscribers run concurrently. The subscribers leave and resume.
func TestConcurrentWritersAndSubscribers(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{QueueCapacity: 16})
		orders := []commerce.OrderID{f.placeOrder("c1"), f.placeOrder("c1"), f.placeOrder("c2")}
		var started []commerce.EventID
		for _, id := range orders {
			started = append(started, f.timeline(id)[0])
		}
		const writers = 3
		changes := longtest.Size(3, 15)
		var writing, reading sync.WaitGroup
		results := make([][]commerce.EventID, 12)
		for i := range results {
			reading.Go(func() {
				// The subscriber leaves after a few changes, and resumes after the last one.
				last, id := started[i%3], orders[i%3]
				subscribe := func() (*feed.Subscription, error) { return f.feed.SubscribeOrder(f.ctx, id, last) }
				if i%2 == 1 {
					last = started[0]
					subscribe = func() (*feed.Subscription, error) { return f.feed.SubscribeCustomerOrders(f.ctx, "c1", last) }
				}
				for {
					w, err := subscribe()
					if err != nil {
						t.Error(err)
						return
					}
					for n := 0; n < 5+i; n++ {
						c, err := w.Next(f.ctx)
						if errors.Is(err, feed.ErrTooSlow) {
							break
						}
						if err != nil {
							t.Error(err)
							return
						}
						last = c.Event.ID
						results[i] = append(results[i], last)
						if c.Event.Type == commerce.EventCancelled && (i%2 == 0 || c.OrderID == orders[1]) {
							w.Close()
							return
						}
					}
					w.Close()
				}
			})
		}
		for n := range writers {
			writing.Go(func() {
				for i := range changes {
					_, err := f.store.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: orders[i%3], SKU: "p1", Quantity: 2 + n + i*writers})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		writing.Wait()
		for _, i := range []int{0, 2, 1} {
			f.moveOrder(orders[i], commerce.Cancelled)
		}
		reading.Wait()
		timelines := map[int][]commerce.EventID{}
		for i, id := range orders {
			timelines[i] = f.timeline(id)
		}
		customer := slices.Concat(timelines[0], timelines[1])
		slices.Sort(customer)
		for i, got := range results {
			want := timelines[i%3][1:]
			if i%2 == 1 {
				want = customer[1:]
			}
			if !slices.Equal(got, want) {
				t.Errorf("subscriber %d got\n%s\nwant\n%s", i, fmt.Sprint(got), fmt.Sprint(want))
			}
		}
	})
}
