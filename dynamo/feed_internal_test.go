package dynamo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/embedded"
)

// lagging is a source that is behind the table until it is let on, and has gaps when the test wants
// them.
type lagging struct {
	by      Observable
	waiting []func()
	run     *feedRun
}

func (l *lagging) watch(ctx context.Context, t *table.Table, to *feedRun) error {
	l.run = to
	l.waiting = nil
	stop := l.by.Observe(t.Name, func(before, after []map[string]types.AttributeValue) {
		l.waiting = append(l.waiting, func() { to.changed(before, after) })
	})
	defer stop()
	to.ready()
	<-ctx.Done()
	return nil
}

// letOn tells so many batches of changes.
func (l *lagging) letOn(n int) {
	for range min(n, len(l.waiting)) {
		tell := l.waiting[0]
		l.waiting = l.waiting[1:]
		tell()
	}
}

// follower is a client that goes on behind its last event when it is cut.
type follower struct {
	what topic
	w    *Following
	last commerce.EventID
	got  []commerce.EventID
	// from is how many of the expected events there were when it began.
	from int
}

// histories are random interleavings of writers, followers who come, go, read and do not, a stream
// that lags behind, and gaps in it.
type histories struct {
	t     *rapid.T
	ctx   context.Context
	store *Store
	// writers write by clocks that differ; the feed has one of these.
	writers []*Store
	feed    *Feed
	source  *lagging
	orders  []commerce.OrderID
	// of is every event of what can be followed, in the order of the commits.
	of        map[topic][]commerce.EventID
	owner     map[commerce.OrderID]commerce.CustomerID
	quantity  int
	foreign   int
	followers []*follower
}

func newHistories(t *rapid.T, buffer int) *histories {
	engine := embedded.New()
	store, err := New(engine.Client(), Options{Table: "t"})
	if err != nil {
		t.Fatal(err)
	}
	h := &histories{t: t, ctx: context.Background(), store: store, source: &lagging{by: engine}, of: map[topic][]commerce.EventID{}, owner: map[commerce.OrderID]commerce.CustomerID{}}
	for range 3 {
		skew := time.Duration(rapid.IntRange(-300, 300).Draw(t, "skew")) * time.Second
		writer, err := New(engine.Client(), Options{Table: "t", Clock: func() time.Time { return time.Now().Add(skew) }})
		if err != nil {
			t.Fatal(err)
		}
		h.writers = append(h.writers, writer)
	}
	h.must(store.CreateTable(h.ctx))
	price, err := commerce.ParseMoney("1.00", "USD")
	h.must(err)
	_, err = store.Load(h.ctx, commerce.Book{
		Customers: []commerce.Customer{{ID: "c0", Name: "c0", Email: "c0@example.com"}, {ID: "c1", Name: "c1", Email: "c1@example.com"}},
		Products:  []commerce.Product{{SKU: "p", Name: "p", Category: "p", UnitPrice: price, TotalInventory: 1_000_000, Available: 1_000_000}},
	})
	h.must(err)
	h.feed = h.writers[0].OpenFeed(h.source, FeedOptions{Buffer: buffer})
	return h
}

func (h *histories) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// writer is any of those who write.
func (h *histories) writer() *Store { return rapid.SampledFrom(h.writers).Draw(h.t, "writer") }

// happened takes note of an order's last event.
func (h *histories) happened(id commerce.OrderID) {
	last, err := h.store.Consistent().Get(h.ctx, &model.LastEvent.AccessPattern, model.LastEventKeys(&model.KeyBuilder{Shards: 1}, h.owner[id]))
	h.must(err)
	event := commerce.EventID(last.Text("eventId"))
	for _, t := range []topic{{topicOrder, string(id)}, {topicCustomer, string(h.owner[id])}} {
		h.of[t] = append(h.of[t], event)
	}
}

func (h *histories) place() {
	customer := commerce.CustomerID(fmt.Sprintf("c%d", rapid.IntRange(0, 1).Draw(h.t, "customer")))
	o, err := h.writer().PlaceOrder(h.ctx, Caller{Name: "t"}, commerce.NewOrder{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p", Quantity: 1}}})
	h.must(err)
	h.orders, h.owner[o.ID] = append(h.orders, o.ID), customer
	h.quantity = max(h.quantity, 1)
	h.happened(o.ID)
}

func (h *histories) change() {
	for range rapid.IntRange(1, 4).Draw(h.t, "times") {
		h.set(rapid.SampledFrom(h.orders).Draw(h.t, "order"))
	}
}

func (h *histories) set(id commerce.OrderID) {
	h.quantity++
	_, err := h.writer().SetOrderItem(h.ctx, Caller{Name: "t"}, commerce.OrderItemChange{OrderID: id, SKU: "p", Quantity: h.quantity})
	h.must(err)
	h.happened(id)
}

// follow begins to follow something, behind any of its events or from now on.
func (h *histories) follow() {
	f := &follower{what: topic{topicOrder, string(rapid.SampledFrom(h.orders).Draw(h.t, "order"))}}
	if rapid.Bool().Draw(h.t, "customer") {
		f.what = topic{topicCustomer, fmt.Sprintf("c%d", rapid.IntRange(0, 1).Draw(h.t, "customer"))} // who may have no orders yet
	}
	events := h.of[f.what]
	f.from = len(events)
	if at := rapid.IntRange(0, len(events)).Draw(h.t, "after"); at < len(events) {
		f.last, f.from = events[at], at+1
	}
	h.attach(f)
	h.followers = append(h.followers, f)
}

func (h *histories) attach(f *follower) {
	var err error
	if f.what.kind == topicOrder {
		f.w, err = h.feed.Order(h.ctx, commerce.OrderID(f.what.id), f.last)
	} else {
		f.w, err = h.feed.CustomerOrders(h.ctx, commerce.CustomerID(f.what.id), f.last)
	}
	h.must(err)
}

// take lets a follower have what is at hand; false where that is nothing.
func (h *histories) take(f *follower) bool {
	change, found, err := f.w.next()
	for err == nil && !found && f.w.mustCatchUp() { // as Next does, without waiting
		h.must(f.w.catchUp(h.ctx))
		change, found, err = f.w.next()
	}
	if errors.Is(err, ErrTooSlow) {
		if f.last == "" {
			// It was told nothing, and has nothing to go on behind: it begins again.
			f.from = len(h.of[f.what])
		}
		h.attach(f)
		return true
	}
	h.must(err)
	if found && change.Position != "" { // what other software wrote is told to those who listen
		f.last, f.got = change.Position, append(f.got, change.Position)
	}
	return found
}

// write puts an entry into a timeline that is not in the order of the customer's events.
func (h *histories) write() {
	h.foreign++
	id := rapid.SampledFrom([]string{"evt-", "0-", "01-", "9-", "f47ac10b-58cc-4372-a567-"}).Draw(h.t, "name") + fmt.Sprint(h.foreign)
	ahead := rapid.SampledFrom([]time.Duration{0, -time.Hour, 0, time.Hour, 20 * time.Hour, 1000 * time.Hour}).Draw(h.t, "ahead")
	if ahead != 0 {
		var err error
		id, err = h.store.NewULID(time.Now().Add(ahead))
		h.must(err)
	}
	event := commerce.Event{ID: commerce.EventID(id), OrderID: rapid.SampledFrom(h.orders).Draw(h.t, "order"), Type: commerce.EventItemSet, At: time.Now(), Actor: "other software"}
	rec := model.EventRecord(&model.KeyBuilder{Shards: 1}, event)
	if ahead <= 0 || rapid.Bool().Draw(h.t, "nameless") {
		delete(rec, "entity")
	}
	_, err := h.store.Db.PutItem(h.ctx, &dynamodb.PutItemInput{TableName: &h.store.Name, Item: rec})
	h.must(err)
}

// Each follower is told each event exactly once, in the order of the commits, from where it began.
func TestEachFollowerIsToldEachEventOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(t, rapid.IntRange(1, 6).Draw(t, "buffer"))
		defer h.feed.Close()
		h.place()
		t.Repeat(map[string]func(*rapid.T){
			"place":  func(*rapid.T) { h.place() },
			"change": func(*rapid.T) { h.change() },
			"write":  func(*rapid.T) { h.write() },
			"follow": func(*rapid.T) { h.follow() },
			"let on": func(t *rapid.T) { h.source.letOn(rapid.IntRange(1, 5).Draw(t, "batches")) },
			"take": func(t *rapid.T) {
				if len(h.followers) == 0 {
					t.Skip("nobody follows")
				}
				f := rapid.SampledFrom(h.followers).Draw(t, "follower")
				for range rapid.IntRange(1, 5).Draw(t, "changes") {
					h.take(f)
				}
			},
			"leave": func(t *rapid.T) {
				if len(h.followers) == 0 {
					t.Skip("nobody follows")
				}
				i := rapid.IntRange(0, len(h.followers)-1).Draw(t, "follower")
				if f := h.followers[i]; f.last != "" && rapid.Bool().Draw(t, "comes back") {
					f.w.Close()
					h.attach(f)
					return
				}
				h.followers[i].w.Close()
				h.followers = slices.Delete(h.followers, i, i+1)
			},
			"gap": func(t *rapid.T) {
				if len(h.followers) == 0 {
					t.Skip("nobody follows")
				}
				// Some of what was not told yet is lost; the rest comes behind the gap.
				h.source.waiting = h.source.waiting[rapid.IntRange(0, len(h.source.waiting)).Draw(t, "lost"):]
				h.source.run.gap(errors.New("lost"))
			},
		})
		// The last change shows whether anything came twice.
		for _, id := range h.orders {
			h.set(id)
		}
		h.source.letOn(len(h.source.waiting))
		for _, f := range h.followers {
			for h.take(f) {
			}
			if want := h.of[f.what][f.from:]; !slices.Equal(f.got, want) {
				t.Fatalf("a follower of %s was told\n%s\nwant\n%s", f.what, f.got, want)
			}
		}
	})
}

// 5,000 who wait take a bounded amount of memory, no goroutine of their own, and nothing is left
// when they go.
func TestFollowersWhoWait(t *testing.T) {
	const followers, most = 5_000, 1_000 // bytes each; some 500 were measured
	engine := embedded.New()
	store, err := New(engine.Client(), Options{Table: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateTable(context.Background()); err != nil {
		t.Fatal(err)
	}
	feed := store.OpenFeed(Observed(engine), FeedOptions{})
	defer feed.Close()
	first := &Following{feed: feed, topic: topic{topicOrder, "first"}}
	if _, err := feed.attach(first); err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	ws := make([]*Following, followers)
	for i := range ws {
		id := fmt.Sprintf("01HVMK3P2Q%016d", i)
		ws[i] = &Following{feed: feed, topic: topic{topicOrder, id}, history: &orderHistory{feed: feed, partition: "ORDER#" + id}, wake: make(chan struct{}, 1)}
		if _, err := feed.attach(ws[i]); err != nil {
			t.Fatal(err)
		}
	}
	if took := (heap() - before) / followers; took > most {
		t.Errorf("a follower takes %d bytes, want %d at most", took, most)
	} else {
		t.Logf("a follower takes %d bytes", took)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 0 {
		t.Errorf("%d goroutines more", n)
	}
	for _, w := range ws {
		w.Close()
	}
	if first.Close(); feed.Followers() != 0 || len(feed.followers) != 0 {
		t.Errorf("%d follow, %d topics are left", feed.Followers(), len(feed.followers))
	}
}

// The pauses behind failures grow up to a bound, and are never none.
func TestPausesBehindFailures(t *testing.T) {
	r := &shardReader{streamReader: &streamReader{streamed: &streamed{opts: StreamOptions{ShortestPause: 250 * time.Millisecond}}}}
	for failures := 1; failures < 100; failures++ {
		most := 250 * time.Millisecond << min(failures, 6)
		if got := r.pauseAfter(failures); got < most/2 || got > most || got > 16*time.Second {
			t.Errorf("%s behind %d failures", got, failures)
		}
	}
}

// Nothing that goes wrong while changes are told ends the server, or leaves anything out.
func TestAPanicWhileChangesAreTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(t, 5)
		defer h.feed.Close()
		h.place()
		h.attach(&follower{what: topic{topicOrder, string(h.orders[0])}}) // another who follows it
		f := &follower{what: topic{topicOrder, string(h.orders[0])}, from: 1}
		h.attach(f)
		statuses, err := h.feed.OrderStatus(h.ctx, 0)
		h.must(err)
		h.set(h.orders[0])
		h.source.waiting = nil
		h.source.run.changed(nil, []map[string]types.AttributeValue{{}}) // has no record as it was before
		if _, err := statuses.Next(h.ctx); !errors.Is(err, table.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		h.set(h.orders[0])
		h.source.letOn(len(h.source.waiting))
		for h.take(f) {
		}
		if want := h.of[f.what][1:]; !slices.Equal(f.got, want) {
			t.Fatalf("told %s, want %s", f.got, want)
		}
	})
	r := &shardReader{streamReader: &streamReader{streamed: &streamed{}}, shard: &shard{}}
	if err := r.run(context.Background()); err == nil {
		t.Error("a reader without a client got no error")
	}
}

// What waits for all followers together is bounded: where there is no room, they have little at a
// time, and miss nothing.
func TestWhatWaitsForAllFollowersIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistories(t, 5)
		defer h.feed.Close()
		h.place()
		h.orders = h.orders[:1]
		for range 2*fewEvents + rapid.IntRange(1, 5).Draw(t, "more") {
			h.set(h.orders[0])
		}
		full := int64(maxBacklog + rapid.IntRange(-fewEvents, 5).Draw(t, "room"))
		h.feed.backlog.Store(full)
		for _, what := range []topic{{topicOrder, string(h.orders[0])}, {topicCustomer, string(h.owner[h.orders[0]])}} {
			f := &follower{what: what, last: h.of[what][0]}
			h.attach(f)
			if n := len(f.w.backlog); n > fewEvents {
				t.Fatalf("%d events wait", n)
			}
			for h.take(f) {
			}
			if want := h.of[what][1:]; !slices.Equal(f.got, want) {
				t.Fatalf("told %s, want %s", f.got, want)
			}
			left := &follower{what: what, last: h.of[what][0]}
			h.attach(left)
			left.w.Close()
			left.w.Close()
			if got := h.feed.backlog.Load(); got != full {
				t.Fatalf("%d events are counted, want %d", got, full)
			}
		}
	})
}
