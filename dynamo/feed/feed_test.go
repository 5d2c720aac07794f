package feed_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// guard ends tests that hang. No test waits for it to pass.
const guard = 60 * time.Second

// followed is a fixture: a store and a feed of its changes.
type followed struct {
	t     testing.TB
	db    *dynamodb.Client
	table string
	store *dynamo.Store
	feed  *feed.Feed
	ctx   context.Context
}

// newFollowed returns a store with customers c1 and c2 and a stock of a million p1.
func newFollowed(t testing.TB, db *dynamodb.Client, opts feed.Options) *followed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	t.Cleanup(cancel)
	f := &followed{t: t, db: db, table: storetest.TableName(), ctx: ctx}
	f.store = storetest.NewTable(t, db, dynamo.Options{Table: f.table})
	price, err := commerce.ParseMoney("1.00", "USD")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	storetest.Load(t, f.store, commerce.Book{
		Customers: []commerce.Customer{{ID: "c1", Name: "One", Email: "one@example.com", CreatedAt: at, UpdatedAt: at}, {ID: "c2", Name: "Two", Email: "two@example.com", CreatedAt: at, UpdatedAt: at}},
		Products:  []commerce.Product{{SKU: "p1", Name: "Pin", Category: "pins", UnitPrice: price, TotalInventory: 1_000_000, Available: 1_000_000}},
	})
	f.feed = storetest.Feed(t, db, f.store, opts)
	return f
}

var caller = change.Caller{Name: "tester"}

func (f *followed) place(customer commerce.CustomerID) commerce.OrderID {
	f.t.Helper()
	o, err := f.store.PlaceOrder(f.ctx, caller, commerce.NewOrder{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p1", Quantity: 1}}})
	if err != nil {
		f.t.Fatal(err)
	}
	return o.ID
}

// set changes the quantity of an order's item. The order's status stays the same.
func (f *followed) set(id commerce.OrderID, quantity int) {
	f.t.Helper()
	if _, err := f.store.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: quantity}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *followed) move(id commerce.OrderID, to commerce.Status) {
	f.t.Helper()
	if _, err := f.store.MoveOrder(f.ctx, caller, commerce.OrderMove{OrderID: id, To: to}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *followed) timeline(id commerce.OrderID) []commerce.EventID {
	f.t.Helper()
	page, err := dynamo.ReadPage(f.ctx, f.store.Consistent(), model.Timeline, dynamo.ListRequest{Of: string(id), Page: dynamo.Page{Limit: 1000}})
	if err != nil {
		f.t.Fatal(err)
	}
	ids := make([]commerce.EventID, len(page.Items))
	for i, e := range page.Items {
		ids[i] = e.ID
	}
	return ids
}

func (f *followed) order(id commerce.OrderID, after commerce.EventID) *feed.Subscription {
	f.t.Helper()
	return f.following(f.feed.Order(f.ctx, id, after))
}

func (f *followed) customer(id commerce.CustomerID, after commerce.EventID) *feed.Subscription {
	f.t.Helper()
	return f.following(f.feed.CustomerOrders(f.ctx, id, after))
}

func (f *followed) status(status commerce.Status) *feed.Subscription {
	f.t.Helper()
	return f.following(f.feed.OrderStatus(f.ctx, status))
}

func (f *followed) following(w *feed.Subscription, err error) *feed.Subscription {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(w.Close)
	return w
}

func (f *followed) next(w *feed.Subscription) feed.OrderChange {
	f.t.Helper()
	change, err := w.Next(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	return change
}

// told describes a change: the type of its event, or what other software did to the order.
func told(c feed.OrderChange) string {
	if c.Event == nil {
		if c.Order == nil {
			return "gone"
		}
		return "written " + c.Order.Status.String()
	}
	return string(c.Event.Type)
}

// wants reads changes and compares them with want, a list of their descriptions.
func (f *followed) wants(w *feed.Subscription, want string) {
	f.t.Helper()
	var got []string
	for range strings.Split(want, ", ") {
		got = append(got, told(f.next(w)))
	}
	if text := strings.Join(got, ", "); text != want {
		f.t.Errorf("got:  %s\nwant: %s", text, want)
	}
}

// nothing checks that no change is waiting for the subscriptions.
func (f *followed) nothing(ws ...*feed.Subscription) {
	f.t.Helper()
	for _, w := range ws {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		// Next returns a waiting change even if the context has ended.
		if c, err := w.Next(ctx); err == nil {
			f.t.Errorf("got %s, want no change", told(c))
		}
	}
}

func TestAnOrderIsFollowed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		before := f.place("c1")
		f.set(before, 2)
		w, other := f.order(before, ""), f.order(f.place("c1"), "")
		f.set(before, 3)
		f.move(before, commerce.Confirmed)
		f.move(before, commerce.Cancelled)
		f.wants(w, "item_set, confirmed, cancelled")
		f.nothing(w, other)
		last := f.timeline(before)[4]
		if again := f.order(before, last); again != nil {
			f.nothing(again)
		}
	})
}

// A change has the order right after it.
func TestTheOrderComesAlong(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		id := f.place("c1")
		ofOrder, ofCustomer := f.order(id, ""), f.customer("c1", "")
		for quantity := 2; quantity < 10; quantity++ {
			f.set(id, quantity)
		}
		withOrder := 0
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer} {
			for quantity := 2; quantity < 10; quantity++ {
				c := f.next(w)
				if c.OrderID != id || c.Event == nil {
					t.Fatalf("got a change of %s: %+v", c.OrderID, c)
				}
				if c.Order != nil {
					withOrder++
					if got := c.Order.Items[0].Quantity; got != quantity || c.Order.Version != quantity {
						t.Errorf("version %d has the quantity %d, want %d", c.Order.Version, got, quantity)
					}
				}
			}
		}
		if withOrder == 0 {
			t.Error("no change has an order")
		}
	})
}

func TestACustomersOrdersAreFollowed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		old := f.place("c1")
		w, other := f.customer("c1", ""), f.customer("c2", "")
		fresh := f.place("c1")
		f.set(old, 2)
		f.move(fresh, commerce.Confirmed)
		f.place("c2")
		f.wants(w, "placed, item_set, confirmed")
		f.wants(other, "placed")
		f.nothing(w, other)
	})
}

func TestStatusesAreFollowed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		all, pending, cancelled := f.status(0), f.status(commerce.Pending), f.status(commerce.Cancelled)
		id := f.place("c1")
		f.set(id, 2)
		f.move(id, commerce.Confirmed)
		f.move(id, commerce.Cancelled)
		f.wants(all, "placed, confirmed, cancelled")
		f.wants(pending, "placed")
		f.wants(cancelled, "cancelled")
		f.nothing(all, pending, cancelled)
	})
}

// Other software may write orders without events and versions.
func TestWhatOtherSoftwareWritesIsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		id := f.place("c1")
		ofOrder, ofCustomer, pending, shipped := f.order(id, ""), f.customer("c1", ""), f.status(commerce.Pending), f.status(commerce.Shipped)
		k := storetest.ItemKey("ORDER#"+string(id), "#METADATA")
		out, err := db.GetItem(f.ctx, &dynamodb.GetItemInput{TableName: &f.table, Key: k})
		if err != nil {
			t.Fatal(err)
		}
		rec := out.Item
		write := func(change storetest.Item) {
			t.Helper()
			for name, v := range change {
				rec[name] = v
			}
			if _, err := db.PutItem(f.ctx, &dynamodb.PutItemInput{TableName: &f.table, Item: rec}); err != nil {
				t.Fatal(err)
			}
		}
		write(storetest.Item{"note": storetest.Str("n")})
		write(storetest.Item{"note": storetest.Str("n")}) // changes nothing
		write(storetest.Item{"status": storetest.Str("shipped")})
		write(storetest.Item{"total": storetest.Str("damaged")}) // cannot be read
		if _, err := db.DeleteItem(f.ctx, &dynamodb.DeleteItemInput{TableName: &f.table, Key: k}); err != nil {
			t.Fatal(err)
		}
		f.wants(ofOrder, "written pending, written shipped, gone")
		f.wants(ofCustomer, "written pending, written shipped, gone")
		f.wants(shipped, "written shipped")
		f.nothing(ofOrder, ofCustomer, pending, shipped)
	})
}

// A record that cannot be read is logged once. Later changes are delivered.
func TestAnEventThatCannotBeReadIsLeftOut(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		var log storetest.Log
		f := newFollowed(t, db, feed.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		id := f.place("c1")
		first := f.timeline(id)[0]
		w, _ := f.order(id, ""), f.order(id, "")
		damaged := storetest.ItemKey("ORDER#"+string(id), "EVENT#7ZZZZZZZZZ0000000000000000")
		if _, err := db.PutItem(f.ctx, &dynamodb.PutItemInput{TableName: &f.table, Item: damaged}); err != nil {
			t.Fatal(err)
		}
		f.set(id, 2)
		f.wants(w, "item_set")
		if n := log.Count("cannot be delivered"); n != 1 {
			t.Errorf("it was logged %d times:\n%s", n, log.String())
		}
		f.wants(f.order(id, first), "item_set")
	})
}

func TestAFollowerGoesOnBehindAnEvent(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		a := f.place("c1")
		b := f.place("c1")
		for quantity := 2; quantity < 130; quantity++ { // more than a page
			f.set(a, quantity)
		}
		f.move(b, commerce.Confirmed)
		ids := f.timeline(a)
		w := f.order(a, ids[1])
		f.set(a, 1)
		for i := 2; i < len(ids); i++ {
			if c := f.next(w); c.Event.ID != ids[i] || c.OrderID != a {
				t.Fatalf("got %s, want event %d, %s", c.Event.ID, i, ids[i])
			}
		}
		f.wants(w, "item_set")
		f.nothing(w)

		w = f.customer("c1", ids[0])
		f.move(b, commerce.Cancelled)
		f.wants(w, "placed"+strings.Repeat(", item_set", 128)+", confirmed, item_set, cancelled")
		f.nothing(w)
	})
}

// A call of Next that is cancelled while it reads missed events loses none of them.
func TestANextThatIsInterruptedIsMadeAgain(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{Buffer: 3})
		id := f.place("c1")
		first := f.timeline(id)[0]
		f.set(id, 2)
		ofOrder, ofCustomer, seen := f.order(id, first), f.customer("c1", first), f.order(id, "")
		for quantity := 3; quantity < 10; quantity++ {
			f.set(id, quantity)
			f.next(seen)
		}
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer} {
			f.wants(w, "item_set")
			f.nothing(w, w, w)
			f.wants(w, "item_set"+strings.Repeat(", item_set", 6))
		}
	})
}

// Changes that are committed while a subscription reads missed events are delivered once and in
// order.
func TestChangesWhileAFollowerCatchesUp(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		orders := []commerce.OrderID{f.place("c1"), f.place("c1")}
		first := f.timeline(orders[0])[0]
		f.set(orders[0], 2)
		f.set(orders[1], 2)
		// Both orders change after the first timeline is read and before the second one is read.
		var once sync.Once
		var reading sync.Mutex
		next := db.Options().HTTPClient
		client := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				i := slices.IndexFunc(orders, func(id commerce.OrderID) bool { return bytes.Contains(body, []byte("ORDER#"+id+`"`)) })
				if i < 0 || !bytes.Contains(body, []byte("EVENT#"+first)) {
					return next.Do(r)
				}
				reading.Lock()
				defer reading.Unlock()
				res, err := next.Do(r)
				once.Do(func() {
					f.set(orders[i], 3)
					f.set(orders[1-i], 3)
				})
				return res, err
			})
		})
		store, err := dynamo.New(client, dynamo.Options{Table: f.table})
		if err != nil {
			t.Fatal(err)
		}
		f.feed = store.OpenFeed(storetest.Source(t, db), feed.Options{})
		t.Cleanup(f.feed.Close)
		w := f.customer("c1", first)
		f.set(orders[0], 4)
		var got []commerce.EventID
		for range 6 {
			got = append(got, f.next(w).Event.ID)
		}
		want := slices.Concat(f.timeline(orders[0]), f.timeline(orders[1]))
		slices.Sort(want)
		if !slices.Equal(got, want[1:]) {
			t.Errorf("got\n%s\nwant\n%s", got, want[1:])
		}
	})
}

// Tables of older versions have timelines, but no record of the last event.
func TestAFollowerGoesOnInATableWithoutLastEvents(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		a, b := f.place("c1"), f.place("c1")
		f.move(a, commerce.Confirmed)
		if _, err := db.DeleteItem(f.ctx, &dynamodb.DeleteItemInput{TableName: &f.table, Key: storetest.ItemKey("CUSTOMER#c1", "LAST_EVENT")}); err != nil {
			t.Fatal(err)
		}
		w := f.customer("c1", f.timeline(a)[0])
		f.move(b, commerce.Cancelled)
		f.wants(w, "placed, confirmed, cancelled")
		f.nothing(w)
	})
}

func TestAfterIsAnEventOfWhatIsFollowed(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		a := f.place("c1")
		b := f.place("c2")
		f.set(a, 2)
		for name, subscribe := range map[string]func() (*feed.Subscription, error){
			"an event of another order":    func() (*feed.Subscription, error) { return f.feed.Order(f.ctx, a, f.timeline(b)[0]) },
			"not an event ID":              func() (*feed.Subscription, error) { return f.feed.Order(f.ctx, a, "no") },
			"a future event":               func() (*feed.Subscription, error) { return f.feed.Order(f.ctx, a, "7ZZZZZZZZZ0000000000000000") },
			"a missing order":              func() (*feed.Subscription, error) { return f.feed.Order(f.ctx, "01HVMK3P2Q0000000000000001", "0") },
			"an event of another customer": func() (*feed.Subscription, error) { return f.feed.CustomerOrders(f.ctx, "c1", f.timeline(b)[0]) },
			"not an ID, for a customer":    func() (*feed.Subscription, error) { return f.feed.CustomerOrders(f.ctx, "c1", "no") },
			"an event before the first": func() (*feed.Subscription, error) {
				return f.feed.CustomerOrders(f.ctx, "c1", "00000000000000000000000000")
			},
			"a missing customer": func() (*feed.Subscription, error) { return f.feed.CustomerOrders(f.ctx, "c9", f.timeline(b)[0]) },
		} {
			_, err := subscribe()
			if invalid := (*commerce.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Argument != "after" {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if n := f.feed.Subscriptions(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// An event that a repair appends to a timeline is delivered once, like any other event. A
// subscriber who resumes later gets it, too.
func TestARepairedTimelineIsTold(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		repaired, other := f.place("c1"), f.place("c1")
		r := storetest.RawTable{T: t, DB: db, Name: f.table, Store: f.store}
		for _, k := range [][2]string{{"ORDER#" + string(repaired), "#METADATA"}, {"CUSTOMER#c1", "ORDER#" + string(repaired)}} {
			r.Set(k[0], k[1], storetest.Item{"status": storetest.Str("delivered")})
		}
		last := f.timeline(other)[0]
		ofOrder, ofCustomer := f.order(repaired, ""), f.customer("c1", last)
		if _, err := f.store.CheckRecords(f.ctx, check.Options{Repair: true, IndexLag: check.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		f.wants(ofOrder, "imported")
		f.wants(ofCustomer, "imported")
		f.move(other, commerce.Cancelled)
		f.wants(f.customer("c1", last), "imported, cancelled")
		f.nothing(ofOrder)
	})
}

// A server whose clock is far ahead creates event IDs above all later IDs. Later events are
// delivered nevertheless.
func TestAClockOfAFarFutureStopsNobody(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		id := f.place("c1")
		ahead, err := dynamo.New(storetest.Undated(db), dynamo.Options{Table: f.table, Clock: func() time.Time { return time.Now().AddDate(10, 0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		change := func(quantity int) {
			t.Helper()
			if _, err := ahead.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: quantity}); err != nil {
				t.Fatal(err)
			}
		}
		before := []*feed.Subscription{f.order(id, ""), f.customer("c1", "")}
		change(2)
		for _, w := range before {
			f.wants(w, "item_set")
		}
		all := slices.Concat(before, []*feed.Subscription{f.order(id, ""), f.customer("c1", "")})
		f.set(id, 3)
		f.set(id, 4)
		for _, w := range all {
			f.wants(w, "item_set, item_set")
		}
	})
}

// The subscription of a slow subscriber ends when its queue is full. The subscriber gets the queued
// changes and can resume after them.
func TestASlowFollowerIsCut(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{Buffer: 3})
		id := f.place("c1")
		ofOrder, ofCustomer, fastStatus, ofAll, fastOrder := f.order(id, ""), f.customer("c1", ""), f.status(0), f.status(0), f.order(id, "")
		for quantity := 2; quantity < 7; quantity++ {
			f.set(id, quantity)
			f.next(fastOrder)
		}
		for range 5 {
			f.place("c2")
			f.next(fastStatus) // so the change is also in the queue of ofAll
		}
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer, ofAll} {
			var last commerce.EventID
			for range 3 {
				last = f.next(w).Event.ID
			}
			if _, err := w.Next(f.ctx); !errors.Is(err, feed.ErrTooSlow) {
				t.Errorf("got %v", err)
			}
			if w == ofOrder {
				f.wants(f.order(id, last), "item_set, item_set")
			}
		}
		f.nothing(fastOrder)
	})
}

// A subscription that reads missed events is not ended for a full queue, however many changes
// arrive in the meantime.
func TestAFollowerThatCatchesUpIsNotCut(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{Buffer: 3})
		id := f.place("c1")
		first := f.timeline(id)[0]
		f.set(id, 2)
		ofOrder, ofCustomer, seen := f.order(id, first), f.customer("c1", first), f.order(id, "")
		for quantity := 3; quantity < 13; quantity++ {
			f.set(id, quantity)
			f.next(seen) // so the change was also delivered to the other subscriptions
		}
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer} {
			f.wants(w, "item_set"+strings.Repeat(", item_set", 10))
		}
		f.set(id, 1)
		f.set(id, 2)
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer, seen} {
			f.wants(w, "item_set, item_set")
			f.nothing(w)
		}
	})
}

func TestFollowersLeave(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		id := f.place("c1")
		var ws []*feed.Subscription
		for range 10 {
			ws = append(ws, f.order(id, ""), f.customer("c1", ""), f.status(0), f.status(commerce.Shipped))
		}
		for i := range ws {
			w := ws[(i*7)%len(ws)]
			w.Close()
			w.Close()
			if n := f.feed.Subscriptions(); n != len(ws)-1-i {
				t.Errorf("%d subscriptions, want %d", n, len(ws)-1-i)
			}
			if _, err := w.Next(f.ctx); !errors.Is(err, feed.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		// The first subscription after the last was closed starts reading the source again.
		w := f.order(id, "")
		f.set(id, 2)
		f.wants(w, "item_set")

		waiting := make(chan error)
		go func() {
			_, err := w.Next(f.ctx)
			waiting <- err
		}()
		w.Close()
		if err := <-waiting; !errors.Is(err, feed.ErrClosed) {
			t.Errorf("got %v", err)
		}
		w = f.order(id, "")
		f.feed.Close()
		if _, err := w.Next(f.ctx); !errors.Is(err, table.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if _, err := f.feed.Order(f.ctx, id, ""); !errors.Is(err, table.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}
