package feed_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A subscriber to status changes who was away gets what it has missed, and then the new changes.
func TestResumingStatusChanges(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		// The clock advances after the changes, so that they can be delivered.
		var ahead atomic.Int64
		store, err := dynamo.New(storetest.WithoutResponseDate(f.db), dynamo.Options{Table: f.table, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		f.store, f.feed = store, store.OpenFeed(storetest.ChangeSource(t, db), feed.Options{})
		t.Cleanup(f.feed.Close)
		if err := store.Ping(f.ctx); err != nil {
			t.Fatal(err)
		}
		ahead.Store(-int64(time.Second))
		before := f.timeline(f.placeOrder("c1"))[0]
		if _, err := f.feed.SubscribeOrderStatus(f.ctx, 0, before); !isUnavailable(err) {
			t.Errorf("without the list, got %v", err)
		}
		storetest.MakeReadable(t, f.rawTable(), model.StatusChanges)
		ahead.Store(int64(time.Second))
		var invalid *commerce.InvalidError
		if _, err := f.feed.SubscribeOrderStatus(f.ctx, 0, before); !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, "since") {
			t.Errorf("after an event that is older than the list, got %v", err)
		}
		if _, err := f.feed.SubscribeOrderStatus(f.ctx, 0, "evt-1"); !errors.As(err, &invalid) {
			t.Errorf("after an event by other software, got %v", err)
		}

		// The IDs of events in the same millisecond are in no order.
		tick := func() { ahead.Add(int64(time.Millisecond)) }
		a := f.placeOrder("c1")
		tick()
		b := f.placeOrder("c2")
		f.setQuantity(a, 2)
		tick()
		f.moveOrder(b, commerce.Confirmed)
		tick()
		f.moveOrder(a, commerce.Cancelled)
		first := f.timeline(a)[0]
		resume := func(status commerce.Status, after commerce.EventID) *feed.Subscription {
			return f.mustSubscribe(f.feed.SubscribeOrderStatus(f.ctx, status, after))
		}
		early := resume(0, first)
		if c, found, err := early.Poll(f.ctx); found || err != nil {
			t.Errorf("got %+v too early (%v)", c, err)
		}
		ahead.Add(int64(time.Minute))
		f.expectChanges(early, "placed, confirmed, cancelled")
		all, confirmed := resume(0, first), resume(commerce.Confirmed, first)
		f.expectChanges(all, "placed, confirmed, cancelled")
		f.expectChanges(confirmed, "confirmed")
		f.expectNoChange(all, confirmed)
		again := resume(0, f.timeline(a)[2])
		f.expectNoChange(again)

		c := f.placeOrder("c1")
		f.moveOrder(c, commerce.Confirmed)
		ahead.Add(int64(time.Minute))
		f.expectChanges(all, "placed, confirmed")
		f.expectChanges(again, "placed, confirmed")
		f.expectPositions(confirmed, f.timeline(c)[1])
		f.expectNoChange(all, confirmed, again)
		// Older events are not in the index, but newer ones must be.
		checkEvents := func(want int) {
			t.Helper()
			if _, summary := f.rawTable().Check(check.Options{}); summary.Found["index-keys"] != want {
				t.Errorf("the check found %v", summary.Found)
			}
		}
		checkEvents(0)
		event := f.rawTable().Get("ORDER#"+string(c), "EVENT#"+string(f.timeline(c)[1]))
		delete(event, "gsi1pk")
		delete(event, "gsi1sk")
		f.rawTable().Put(event)
		checkEvents(1)
	})
}

func isUnavailable(err error) bool {
	_, ok := errors.AsType[*model.DerivationUnavailable](err)
	return ok
}

// Subscribers to status changes get each event once, in the order of the IDs. Servers have different clocks, the
// stream has gaps, the number of shards changes, and subscribers go away and resume on another server.
func TestStatusChangesAreDeliveredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engine, now := embedded.New(), atomic.Int64{} // in milliseconds; the feeds read it in other goroutines
		now.Store(time.Now().UnixMilli())
		advance := func(d time.Duration) { now.Add(d.Milliseconds()) }
		var servers []*dynamo.Store
		for range 3 {
			skew := time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "skew")) * time.Millisecond
			s, err := dynamo.New(engine.Client(), dynamo.Options{Table: "orders", Clock: func() time.Time { return time.UnixMilli(now.Load()).Add(skew) }, Shards: rapid.IntRange(1, 3).Draw(t, "shards")})
			if err != nil {
				t.Fatal(err)
			}
			servers = append(servers, s)
		}
		server := func() *dynamo.Store { return rapid.SampledFrom(servers).Draw(t, "server") }
		h := &histories{t: t, ctx: t.Context(), db: engine.Client(), store: servers[0], writers: servers, events: map[topic][]commerce.EventID{}, owner: map[commerce.OrderID]commerce.CustomerID{}}
		h.must(servers[0].CreateTable(h.ctx))
		price, err := commerce.ParseMoney("1.00", "USD")
		h.must(err)
		dataset := commerce.Dataset{Products: []commerce.Product{{SKU: "p", Name: "p", Category: "p", UnitPrice: price, TotalInventory: 1_000_000, Available: 1_000_000}}}
		for i := range 4 {
			id := fmt.Sprintf("c%d", i)
			dataset.Customers = append(dataset.Customers, commerce.Customer{ID: commerce.CustomerID(id), Name: id, Email: id + "@example.com"})
		}
		_, err = servers[0].Load(h.ctx, dataset)
		h.must(err)
		d, err := model.FindDerivation(rapid.SampledFrom([]string{model.StatusChanges, model.Changes}).Draw(t, "feature"))
		h.must(err)
		_, err = servers[0].ApplyDerivation(h.ctx, d, dynamo.DerivationOptions{OnStatus: func(model.DerivationStatus) { advance(time.Minute) }})
		h.must(err)
		for _, s := range servers {
			h.must(s.Ping(h.ctx))
		}
		var feeds []*feed.Feed
		var sources []*laggingSource
		for _, s := range servers[:2] {
			source := &laggingSource{engine: engine}
			f := s.OpenFeed(feed.SourceFunc(source.watch), feed.Options{QueueCapacity: 2})
			f.SetMaxCatchUpPage(rapid.SampledFrom([]int{2, 3, 1000}).Draw(t, "page"))
			feeds, sources = append(feeds, f), append(sources, source)
		}

		defer feeds[0].Close()
		defer feeds[1].Close()

		type event struct {
			id commerce.EventID
			to commerce.Status
		}
		type subscriber struct {
			*feed.Subscription
			status      commerce.Status
			begin, last commerce.EventID
			got         []commerce.EventID
		}
		var all []event
		var subscribers []*subscriber
		attach := func(s *subscriber) {
			w, err := rapid.SampledFrom(feeds).Draw(t, "feed").SubscribeOrderStatus(h.ctx, s.status, s.last)
			h.must(err)
			s.Subscription = w
		}
		take := func(s *subscriber) bool {
			c, found, err := s.Poll(h.ctx)
			h.must(err)
			if found {
				s.last, s.got = c.Position, append(s.got, c.Position)
			}
			return found
		}
		record := func(o *commerce.Order) {
			last, err := h.db.GetItem(h.ctx, &dynamodb.GetItemInput{TableName: new("orders"), Key: storetest.ItemKey("CUSTOMER#"+string(o.CustomerID), "LAST_EVENT")})
			h.must(err)
			all = append(all, event{model.LastEventID(last.Item), o.Status})
		}
		place := func() {
			o, err := server().PlaceOrder(h.ctx, change.Caller{Name: "t"}, commerce.OrderRequest{CustomerID: commerce.CustomerID(fmt.Sprintf("c%d", rapid.IntRange(0, 3).Draw(t, "customer"))), Lines: []commerce.OrderLine{{SKU: "p", Quantity: 1}}})
			h.must(err)
			h.orders = append(h.orders, o.ID)
			record(o)
		}
		advance(10 * time.Second)
		place()
		t.Repeat(map[string]func(*rapid.T){
			"place": func(*rapid.T) { place() },
			"move": func(t *rapid.T) {
				if len(h.orders) == 0 {
					t.Skip("no open orders")
				}
				i := rapid.IntRange(0, len(h.orders)-1).Draw(t, "order")
				o, err := server().ChangeOrderStatus(h.ctx, change.Caller{Name: "t"}, commerce.OrderStatusChange{OrderID: h.orders[i], To: rapid.SampledFrom([]commerce.Status{commerce.Confirmed, commerce.Cancelled}).Draw(t, "to")})
				h.orders = slices.Delete(h.orders, i, i+1)
				h.must(err)
				record(o)
			},
			"time passes": func(t *rapid.T) { advance(time.Duration(rapid.IntRange(1, 50_000).Draw(t, "ms")) * time.Millisecond) },
			"subscribe": func(t *rapid.T) {
				begin := rapid.SampledFrom(all).Draw(t, "after").id
				s := &subscriber{status: rapid.SampledFrom([]commerce.Status{0, commerce.Pending, commerce.Confirmed}).Draw(t, "status"), begin: begin, last: begin}
				attach(s)
				subscribers = append(subscribers, s)
			},
			"report": func(t *rapid.T) {
				rapid.SampledFrom(sources).Draw(t, "source").report(rapid.IntRange(1, 5).Draw(t, "batches"))
			},
			"gap": func(t *rapid.T) {
				if s := rapid.SampledFrom(sources).Draw(t, "source"); s.run != nil {
					s.waiting = s.waiting[rapid.IntRange(0, len(s.waiting)).Draw(t, "lost"):]
					s.run.Gap(errors.New("lost"))
				}
			},
			"take": func(t *rapid.T) {
				if len(subscribers) == 0 {
					t.Skip("no subscribers")
				}
				s := rapid.SampledFrom(subscribers).Draw(t, "subscriber")
				for range rapid.IntRange(1, 5).Draw(t, "changes") {
					take(s)
				}
			},
			"come back": func(t *rapid.T) {
				if len(subscribers) == 0 {
					t.Skip("no subscribers")
				}
				s := rapid.SampledFrom(subscribers).Draw(t, "subscriber")
				s.Close()
				attach(s)
			},
		})
		for _, s := range sources {
			s.report(len(s.waiting))
		}
		slices.SortFunc(all, func(a, b event) int { return strings.Compare(string(a.id), string(b.id)) })
		for _, s := range subscribers {
			for range 4 { // the first read can be one that was due before the last change
				advance(time.Minute)
				for take(s) {
				}
			}
			var want []commerce.EventID
			for _, e := range all {
				if e.id > s.begin && (s.status == 0 || s.status == e.to) {
					want = append(want, e.id)
				}
			}
			if !slices.Equal(s.got, want) {
				t.Fatalf("a subscriber to status %v after %s got\n%s\nwant\n%s", s.status, s.begin, s.got, want)
			}
		}
	})
}
