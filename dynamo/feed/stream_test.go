package feed_test

import (
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
	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

var quickly = feed.StreamOptions{ShortestPause: time.Millisecond, LongestPause: 4 * time.Millisecond, ShardsEvery: 20 * time.Millisecond}

// reshape lets a shop on DynamoDB Local be followed through streams of another shape.
func reshape(t *testing.T, log *storetest.Log) (*followed, *reshaped) {
	t.Helper()
	db := dynamolocal.Shared(t).Client()
	f := newFollowed(t, db, feed.Options{})
	shape := &reshaped{t: t, asked: map[string]int{}, reading: map[string]int{}}
	streams := storetest.Streams(db, func(o *dynamodbstreams.Options) {
		shape.next = o.HTTPClient
		o.HTTPClient = shape
	})
	f.feed = f.store.OpenFeed(feed.Streamed(streams, quickly), feed.Options{Buffer: 10_000, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(f.feed.Close)
	return f, shape
}

// collecting is a follower whose changes are collected by a goroutine of its own, until it has the
// change of a last event.
type collecting struct {
	what string
	got  []commerce.EventID
	err  error
	done chan struct{}
}

func (f *followed) collect(what string, w *feed.Subscription, until func(feed.OrderChange) bool) *collecting {
	c := &collecting{what: what, done: make(chan struct{})}
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

func isLast(c feed.OrderChange) bool {
	return c.Event != nil && c.Event.Type == commerce.EventCancelled
}

// check waits for the follower and compares what it got.
func (c *collecting) check(t *testing.T, want []commerce.EventID) {
	t.Helper()
	<-c.done
	if c.err != nil || !slices.Equal(c.got, want) {
		t.Errorf("%s: %d changes, want %d (%v)\ngot  %s\nwant %s", c.what, len(c.got), len(want), c.err, c.got, want)
	}
}

// history follows three orders while something is done to the stream between their changes, and
// wants each event told once in order: to followers from the beginning, and to those who came later
// behind the first event.
func history(t *testing.T, f *followed, between func(i int)) {
	t.Helper()
	orders := []commerce.OrderID{f.place("c1"), f.place("c2"), f.place("c2")}
	var all []*collecting
	for _, id := range orders {
		all = append(all, f.collect("order "+string(id), f.order(id, f.timeline(id)[0]), isLast))
	}
	n := longtest.Size(20, 60)
	for i := range n {
		f.set(orders[i%3], i+2)
		if between != nil {
			between(i)
		}
		if i == n/2 {
			for _, id := range orders {
				all = append(all, f.collect("late, order "+string(id), f.order(id, f.timeline(id)[0]), isLast))
			}
		}
	}
	late := f.collect("late, customer c1", f.customer("c1", f.timeline(orders[0])[0]), isLast)
	for _, id := range orders {
		f.move(id, commerce.Cancelled)
	}
	for i, c := range append(all, late) {
		c.check(t, f.timeline(orders[i%3])[1:])
	}
}

// Shards split while orders change, and their children are listed before or after their end is
// reached.
func TestShardsThatSplit(t *testing.T) {
	var log storetest.Log
	f, shape := reshape(t, &log)
	// Changes of statuses and of orders come from different partitions, so from different shards.
	statuses, told := 0, make(chan struct{})
	everything := f.collect("all statuses", f.status(0), func(feed.OrderChange) bool {
		if statuses++; statuses == 6 {
			close(told)
		}
		return false
	})
	history(t, f, func(i int) {
		if i%12 == 7 {
			shape.split()
		}
	})
	select {
	case <-told:
	case <-everything.done:
	}
	if n := shape.requests("DescribeStream"); n < 4 {
		t.Errorf("shards were listed in %d requests", n)
	}
	if log.String() != "" {
		t.Errorf("it was logged:\n%s", log.String())
	}
	f.feed.Close()
	<-everything.done
	if n := len(everything.got); n != 6 {
		t.Errorf("%d changes of statuses, want 6", n)
	}
}

// An iterator lives for a quarter of an hour. The next one begins behind the last record.
func TestIteratorsThatExpire(t *testing.T) {
	var log storetest.Log
	f, shape := reshape(t, &log)
	statuses := f.status(0)
	history(t, f, func(i int) {
		if i%5 == 0 {
			shape.expire()
		}
	})
	// None of them was missed.
	f.wants(statuses, "placed, placed, placed, cancelled, cancelled, cancelled")
}

// What was trimmed before it was read is read from the timelines. Statuses have none.
func TestRecordsThatAreTrimmed(t *testing.T) {
	var log storetest.Log
	f, shape := reshape(t, &log)
	statuses := f.status(commerce.Shipped)
	history(t, f, func(i int) {
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
		t.Errorf("it was trimmed %d times", shape.trims)
	}
	if log.Count("changes were missed") == 0 {
		t.Errorf("the gap was not logged:\n%s", log.String())
	}
}

// Where nothing was read of a shard when its iterator expired, nobody knows where to go on, and
// what was missed is looked for.
func TestAnIteratorThatExpiresBeforeTheFirstRecord(t *testing.T) {
	var log storetest.Log
	f, shape := reshape(t, &log)
	id := f.place("c1")
	ofOrder, ofCustomer := f.order(id, ""), f.customer("c1", "")
	shape.silence(true)
	f.set(id, 2)
	shape.expire()
	// The next position is the end, behind the change.
	taken := shape.requests("GetShardIterator")
	eventually(t, "another position is taken", func() bool { return shape.requests("GetShardIterator") > taken })
	shape.silence(false)
	f.wants(ofOrder, "item_set")
	f.wants(ofCustomer, "item_set")
	f.set(id, 3)
	f.wants(ofOrder, "item_set")
	f.wants(ofCustomer, "item_set")
}

// Throttles, faults of the service and of the network pass; what was read is read once.
func TestFaultsOfTheStream(t *testing.T) {
	db := dynamolocal.Shared(t).Client()
	f := newFollowed(t, db, feed.Options{})
	rates := faults.Rates{faults.Throughput: 0.04, faults.Limit: 0.04, faults.Internal: 0.04, faults.Throttling: 0.04, faults.Refused: 0.04,
		faults.Reset: 0.04, faults.Silence: 0.04, faults.Cut: 0.04, faults.Expired: 0.04}
	random := faults.Random(1, nil, rates)
	streams, between := faults.BetweenStreams(storetest.Streams(db), func(r faults.Request) faults.Kind {
		if r.Operation == "GetRecords" {
			return random(r)
		}
		return faults.None
	})
	f.feed = f.store.OpenFeed(feed.Streamed(streams, quickly), feed.Options{Buffer: 10_000})
	defer f.feed.Close()
	var w *feed.Subscription
	for w == nil { // a stream that cannot be read at the beginning is one that cannot be followed
		var err error
		if w, err = f.feed.OrderStatus(f.ctx, 0); err != nil && !errors.Is(err, table.ErrUnavailable) {
			t.Log(err)
		}
	}
	defer w.Close()
	history(t, f, nil)
	counts := between.Counts()
	if len(counts) < 4 {
		t.Errorf("few faults: %v", counts)
	}
}

// A stream that is turned off and on again is another one.
func TestAStreamThatIsMadeAnew(t *testing.T) {
	var log storetest.Log
	db := dynamolocal.Shared(t).Client()
	f := newFollowed(t, db, feed.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	set := func(is types.StreamSpecification) {
		t.Helper()
		if _, err := db.UpdateTable(f.ctx, &dynamodb.UpdateTableInput{TableName: &f.table, StreamSpecification: &is}); err != nil {
			t.Fatal(err)
		}
	}
	on, off := true, false
	id := f.place("c1")
	w := f.order(id, "")
	set(types.StreamSpecification{StreamEnabled: &off})
	f.set(id, 2)
	set(types.StreamSpecification{StreamEnabled: &on, StreamViewType: types.StreamViewTypeNewAndOldImages})
	f.set(id, 3)
	last := commerce.EventID("")
	for range 2 {
		// Whoever looked while it was off was told so.
		change, err := w.Next(f.ctx)
		for errors.Is(err, table.ErrUnavailable) {
			w = f.order(id, orElse(last, f.timeline(id)[0]))
			change, err = w.Next(f.ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		last = change.Event.ID
	}
	if ids := f.timeline(id); last != ids[2] {
		t.Errorf("told %s last, want %s", last, ids[2])
	}

	set(types.StreamSpecification{StreamEnabled: &off})
	if c, err := w.Next(f.ctx); !errors.Is(err, table.ErrNoStream) || !errors.Is(err, table.ErrUnavailable) {
		t.Errorf("told %+v, %v", c, err)
	}
	if !strings.Contains(log.String(), "ordergraph table create") {
		t.Errorf("the log does not say what to do:\n%s", log.String())
	}
	if _, err := f.feed.Order(f.ctx, id, ""); !errors.Is(err, table.ErrNoStream) {
		t.Errorf("got %v", err)
	}
	set(types.StreamSpecification{StreamEnabled: &on, StreamViewType: types.StreamViewTypeKeysOnly})
	if _, err := f.feed.Order(f.ctx, id, ""); !errors.Is(err, table.ErrNoStream) || !strings.Contains(err.Error(), "KEYS_ONLY") {
		t.Errorf("got %v", err)
	}
}

func orElse(id, otherwise commerce.EventID) commerce.EventID {
	if id == "" {
		return otherwise
	}
	return id
}

// Each shard has one reader, however many follow, and none when they are gone. Who begins between
// the end of a shard and the listing of those that follow on it does not wait for the next look at
// all shards.
func TestShardsThatAreListedAfterTheBeginning(t *testing.T) {
	var log storetest.Log
	f, shape := reshape(t, &log)
	id := f.place("c1")
	first := f.order(id, "")
	f.set(id, 2)
	f.wants(first, "item_set")
	first.Close()
	nobodyReads(t)
	shape.splitUnseen()
	streams := storetest.Streams(f.db, func(o *dynamodbstreams.Options) { o.HTTPClient = shape })
	seldom := feed.StreamOptions{ShortestPause: time.Millisecond, LongestPause: 4 * time.Millisecond, ShardsEvery: time.Hour}
	f.feed = f.store.OpenFeed(feed.Streamed(streams, seldom), feed.Options{})
	t.Cleanup(f.feed.Close)
	w := f.order(id, "")
	f.set(id, 3)
	f.wants(w, "item_set")
}

func TestAShardHasOneReader(t *testing.T) {
	var log storetest.Log
	f, shape := reshape(t, &log)
	id := f.place("c1")
	first := f.order(id, "")
	shape.split()
	f.set(id, 2)
	f.wants(first, "item_set")
	var group sync.WaitGroup
	followers := make([]*feed.Subscription, 500)
	for i := range followers {
		group.Go(func() {
			var err error
			if followers[i], err = f.feed.OrderStatus(f.ctx, 0); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	f.move(id, commerce.Confirmed)
	for _, w := range followers {
		f.wants(w, "confirmed")
	}
	// One of the children may be listed a little later, and its reader asks a little later for its
	// position.
	eventually(t, "both children are read", func() bool { return goroutines("shardReader).read") == 2 && shape.requests("GetShardIterator") >= 3 })
	if n := shape.requests("GetShardIterator"); n != 3 {
		t.Errorf("%d positions were taken, want 3: the shard's and its children's", n)
	}
	first.Close()
	for _, w := range followers {
		w.Close()
	}
	nobodyReads(t)
}

// nobodyReads waits until no goroutine of a feed is left.
func nobodyReads(t *testing.T) {
	t.Helper()
	eventually(t, "nobody reads", func() bool {
		return goroutines("feed.(*Feed)", "feed.(*streamReader)", "feed.(*shardReader)") == 0
	})
}

// eventually waits until something is so. The guard is for what never is.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(guard); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("it never was so: %s", what)
		}
	}
}

// goroutines counts those that have one of these in their stacks.
func goroutines(of ...string) int {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
	n := 0
	for _, stack := range strings.Split(b.String(), "\n\n") {
		if slices.ContainsFunc(of, func(name string) bool { return strings.Contains(stack, name) }) {
			n++
		}
	}
	return n
}

// A feed that is closed while everything goes on leaves nothing behind.
func TestAFeedLeavesNothingBehind(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		id := f.place("c1")
		for range 5 {
			ctx, cancel := context.WithCancel(f.ctx)
			ended := make(chan error, 40)
			for i := range 40 {
				w := f.order(id, "")
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
			f.set(id, 2+rand.IntN(1000))
			cancel()
			f.feed.Close()
			for range 40 {
				if err := <-ended; err == nil {
					t.Error("it ended without a reason")
				}
			}
			nobodyReads(t)
			f.feed = storetest.Feed(t, db, f.store, feed.Options{})
		}
	})
}

// Many write, and many follow, come and go, at once.
func TestFollowersAmongWriters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{Buffer: 16})
		orders := []commerce.OrderID{f.place("c1"), f.place("c1"), f.place("c2")}
		var started []commerce.EventID
		for _, id := range orders {
			started = append(started, f.timeline(id)[0])
		}
		const writers = 3
		changes := longtest.Size(3, 15)
		var writing, following sync.WaitGroup
		results := make([][]commerce.EventID, 12)
		for i := range results {
			following.Go(func() {
				// It leaves now and then, and goes on behind the last change that it was told.
				last, id := started[i%3], orders[i%3]
				follow := func() (*feed.Subscription, error) { return f.feed.Order(f.ctx, id, last) }
				if i%2 == 1 {
					last = started[0]
					follow = func() (*feed.Subscription, error) { return f.feed.CustomerOrders(f.ctx, "c1", last) }
				}
				for {
					w, err := follow()
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
			f.move(orders[i], commerce.Cancelled)
		}
		following.Wait()
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
				t.Errorf("follower %d was told\n%s\nwant\n%s", i, fmt.Sprint(got), fmt.Sprint(want))
			}
		}
	})
}
