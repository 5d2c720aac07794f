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
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// guard ends tests that hang. No test waits for it to pass.
const guard = 4 * time.Minute

// fixture has a store and a feed of its changes.
type fixture struct {
	t     testing.TB
	db    *dynamodb.Client
	table string
	store *dynamo.Store
	feed  *feed.Feed
	ctx   context.Context
}

// newFixture returns a store with customers c1 and c2 and a stock of a million p1.
//
// The customers have order counts, so no transaction fails because their last event is missing.
// After a cancelled transaction, DynamoDB Local reports that records of a new stream were trimmed.
func newFixture(t testing.TB, db *dynamodb.Client, opts feed.Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	t.Cleanup(cancel)
	f := &fixture{t: t, db: db, table: storetest.TableName(), ctx: ctx}
	f.store = storetest.NewTable(t, db, dynamo.Options{Table: f.table})
	price, err := commerce.ParseMoney("1.00", "USD")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	storetest.LoadDataset(t, f.store, commerce.Dataset{
		Customers: []commerce.Customer{{ID: "c1", Name: "One", Email: "one@example.com", OrderCount: new(int), CreatedAt: at, UpdatedAt: at}, {ID: "c2", Name: "Two", Email: "two@example.com", OrderCount: new(int), CreatedAt: at, UpdatedAt: at}},
		Products:  []commerce.Product{{SKU: "p1", Name: "Pin", Category: "pins", UnitPrice: price, TotalInventory: 1_000_000, Available: 1_000_000}},
	})
	f.feed = storetest.OpenFeed(t, db, f.store, opts)
	return f
}

var caller = change.Caller{Name: "tester"}

func (f *fixture) placeOrder(customer commerce.CustomerID) commerce.OrderID {
	f.t.Helper()
	o, err := f.store.PlaceOrder(f.ctx, caller, commerce.OrderRequest{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p1", Quantity: 1}}})
	if err != nil {
		f.t.Fatal(err)
	}
	return o.ID
}

// setQuantity changes the quantity of an order's item. The order's status stays the same.
func (f *fixture) setQuantity(id commerce.OrderID, quantity int) {
	f.t.Helper()
	if _, err := f.store.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: quantity}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) moveOrder(id commerce.OrderID, to commerce.Status) {
	f.t.Helper()
	if _, err := f.store.ChangeOrderStatus(f.ctx, caller, commerce.OrderStatusChange{OrderID: id, To: to}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) timeline(id commerce.OrderID) []commerce.EventID {
	f.t.Helper()
	page, err := dynamo.ReadPage(f.ctx, f.store.Consistent(), model.Timeline, dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: 1000}})
	if err != nil {
		f.t.Fatal(err)
	}
	ids := make([]commerce.EventID, len(page.Items))
	for i, e := range page.Items {
		ids[i] = e.ID
	}
	return ids
}

func (f *fixture) subscribeOrder(id commerce.OrderID, after commerce.EventID) *feed.Subscription {
	f.t.Helper()
	return f.mustSubscribe(f.feed.SubscribeOrder(f.ctx, id, after))
}

func (f *fixture) subscribeCustomer(id commerce.CustomerID, after commerce.EventID) *feed.Subscription {
	f.t.Helper()
	return f.mustSubscribe(f.feed.SubscribeCustomerOrders(f.ctx, id, after))
}

func (f *fixture) subscribeStatus(status commerce.Status) *feed.Subscription {
	f.t.Helper()
	return f.mustSubscribe(f.feed.SubscribeOrderStatus(f.ctx, status, ""))
}

func (f *fixture) mustSubscribe(w *feed.Subscription, err error) *feed.Subscription {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(w.Close)
	return w
}

func (f *fixture) next(w *feed.Subscription) feed.OrderChange {
	f.t.Helper()
	change, err := w.Next(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	return change
}

// describeChange describes a change: the type of its event, or what other software did to the
// order.
func describeChange(c feed.OrderChange) string {
	if c.Event == nil {
		if c.Order == nil {
			return "gone"
		}
		return "written " + c.Order.Status.String()
	}
	return string(c.Event.Type)
}

// expectChanges reads changes and compares them with want, a list of their descriptions.
func (f *fixture) expectChanges(w *feed.Subscription, want string) {
	f.t.Helper()
	var got []string
	for range strings.Split(want, ", ") {
		got = append(got, describeChange(f.next(w)))
	}
	if text := strings.Join(got, ", "); text != want {
		f.t.Errorf("got:  %s\nwant: %s", text, want)
	}
}

// expectNoChange checks that no change is waiting for the subscriptions.
func (f *fixture) expectNoChange(ws ...*feed.Subscription) {
	f.t.Helper()
	for _, w := range ws {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		// Next returns a waiting change even if the context has ended.
		if c, err := w.Next(ctx); err == nil {
			f.t.Errorf("got %s, want no change", describeChange(c))
		}
	}
}

func TestOrderSubscription(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		before := f.placeOrder("c1")
		f.setQuantity(before, 2)
		w, other := f.subscribeOrder(before, ""), f.subscribeOrder(f.placeOrder("c1"), "")
		f.setQuantity(before, 3)
		f.moveOrder(before, commerce.Confirmed)
		f.moveOrder(before, commerce.Cancelled)
		f.expectChanges(w, "item_set, confirmed, cancelled")
		f.expectNoChange(w, other)
		last := f.timeline(before)[4]
		if again := f.subscribeOrder(before, last); again != nil {
			f.expectNoChange(again)
		}
	})
}

// A change has the order right after it.
func TestChangesHaveTheOrder(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		ofOrder, ofCustomer := f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")
		for quantity := 2; quantity < 10; quantity++ {
			f.setQuantity(id, quantity)
		}
		withOrder := 0
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer} {
			for quantity := 2; quantity < 10; quantity++ {
				c := f.next(w)
				if c.OrderID != id || c.Event == nil {
					t.Fatalf("got a change of order %s, want an event of the mutated order: %+v", c.OrderID, c)
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
			t.Error("no change contains its order")
		}
	})
}

func TestCustomerOrdersSubscription(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		old := f.placeOrder("c1")
		w, other := f.subscribeCustomer("c1", ""), f.subscribeCustomer("c2", "")
		fresh := f.placeOrder("c1")
		f.setQuantity(old, 2)
		f.moveOrder(fresh, commerce.Confirmed)
		f.placeOrder("c2")
		f.expectChanges(w, "placed, item_set, confirmed")
		f.expectChanges(other, "placed")
		f.expectNoChange(w, other)
	})
}

func TestStatusSubscription(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		all, pending, cancelled := f.subscribeStatus(0), f.subscribeStatus(commerce.Pending), f.subscribeStatus(commerce.Cancelled)
		id := f.placeOrder("c1")
		f.setQuantity(id, 2)
		f.moveOrder(id, commerce.Confirmed)
		f.moveOrder(id, commerce.Cancelled)
		f.expectChanges(all, "placed, confirmed, cancelled")
		f.expectChanges(pending, "placed")
		f.expectChanges(cancelled, "cancelled")
		f.expectNoChange(all, pending, cancelled)
	})
}

// Other software may write orders without events and versions.
func TestExternalChangesAreDelivered(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		ofOrder, ofCustomer, pending, shipped := f.subscribeOrder(id, ""), f.subscribeCustomer("c1", ""), f.subscribeStatus(commerce.Pending), f.subscribeStatus(commerce.Shipped)
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
		f.expectChanges(ofOrder, "written pending, written shipped, gone")
		f.expectChanges(ofCustomer, "written pending, written shipped, gone")
		f.expectChanges(shipped, "written shipped")
		f.expectNoChange(ofOrder, ofCustomer, pending, shipped)
	})
}

// A record that cannot be read is logged once. Later changes are delivered.
func TestUnreadableEventIsSkipped(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		var log storetest.Log
		f := newFixture(t, db, feed.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		id := f.placeOrder("c1")
		first := f.timeline(id)[0]
		w, _ := f.subscribeOrder(id, ""), f.subscribeOrder(id, "")
		damaged := storetest.ItemKey("ORDER#"+string(id), "EVENT#7ZZZZZZZZZ0000000000000000")
		if _, err := db.PutItem(f.ctx, &dynamodb.PutItemInput{TableName: &f.table, Item: damaged}); err != nil {
			t.Fatal(err)
		}
		f.setQuantity(id, 2)
		f.expectChanges(w, "item_set")
		if n := log.Count("cannot be delivered"); n != 1 {
			t.Errorf("the undeliverable change was logged %d times, want once:\n%s", n, log.String())
		}
		f.expectChanges(f.subscribeOrder(id, first), "item_set")
	})
}

func TestResumeAfterEvent(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		a := f.placeOrder("c1")
		b := f.placeOrder("c1")
		for quantity := 2; quantity < 130; quantity++ { // more than a page
			f.setQuantity(a, quantity)
		}
		f.moveOrder(b, commerce.Confirmed)
		ids := f.timeline(a)
		w := f.subscribeOrder(a, ids[1])
		f.setQuantity(a, 1)
		for i := 2; i < len(ids); i++ {
			if c := f.next(w); c.Event.ID != ids[i] || c.OrderID != a {
				t.Fatalf("got %s, want event %d, %s", c.Event.ID, i, ids[i])
			}
		}
		f.expectChanges(w, "item_set")
		f.expectNoChange(w)

		w = f.subscribeCustomer("c1", ids[0])
		f.moveOrder(b, commerce.Cancelled)
		f.expectChanges(w, "placed"+strings.Repeat(", item_set", 128)+", confirmed, item_set, cancelled")
		f.expectNoChange(w)
	})
}

func TestStats(t *testing.T) {
	f := newFixture(t, embedded.New().Client(), feed.Options{})
	id := f.placeOrder("c1")
	f.setQuantity(id, 2)
	w := f.subscribeOrder(id, f.timeline(id)[0]) // reads the missed event
	f.setQuantity(id, 3)
	f.expectChanges(w, "item_set, item_set")
	f.subscribeCustomer("c2", "")
	if got, want := f.feed.Stats(), (feed.Stats{Subscriptions: 2, Events: 2, CatchUps: 1}); got != want {
		t.Errorf("the stats are %+v, want %+v", got, want)
	}
}

// A call of Next that is cancelled while it reads missed events loses none of them.
func TestCancelledNextLosesNoEvent(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{QueueCapacity: 3})
		id := f.placeOrder("c1")
		first := f.timeline(id)[0]
		f.setQuantity(id, 2)
		ofOrder, ofCustomer, seen := f.subscribeOrder(id, first), f.subscribeCustomer("c1", first), f.subscribeOrder(id, "")
		for quantity := 3; quantity < 10; quantity++ {
			f.setQuantity(id, quantity)
			f.next(seen)
		}
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer} {
			f.expectChanges(w, "item_set")
			f.expectNoChange(w, w, w)
			f.expectChanges(w, "item_set"+strings.Repeat(", item_set", 6))
		}
	})
}

// Changes that are committed while a subscription reads missed events are delivered once and in
// order.
func TestChangesDuringCatchUp(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		orders := []commerce.OrderID{f.placeOrder("c1"), f.placeOrder("c1")}
		first := f.timeline(orders[0])[0]
		f.setQuantity(orders[0], 2)
		f.setQuantity(orders[1], 2)
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
					f.setQuantity(orders[i], 3)
					f.setQuantity(orders[1-i], 3)
				})
				return res, err
			})
		})
		store, err := dynamo.New(client, dynamo.Options{Table: f.table})
		if err != nil {
			t.Fatal(err)
		}
		f.feed = store.OpenFeed(storetest.ChangeSource(t, db), feed.Options{})
		t.Cleanup(f.feed.Close)
		w := f.subscribeCustomer("c1", first)
		f.setQuantity(orders[0], 4)
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

// Tables of older versions have timelines, but no record of the last event. The first event that
// follows has a higher ID nevertheless, even if its server's clock is behind. So a subscriber who has
// got the events before gets this event, too.
func TestResumeWithoutLastEventRecord(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		a, b := f.placeOrder("c1"), f.placeOrder("c1")
		if _, err := f.storeAhead(4*time.Second).ChangeOrderStatus(f.ctx, caller, commerce.OrderStatusChange{OrderID: a, To: commerce.Confirmed}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.DeleteItem(f.ctx, &dynamodb.DeleteItemInput{TableName: &f.table, Key: storetest.ItemKey("CUSTOMER#c1", "LAST_EVENT")}); err != nil {
			t.Fatal(err)
		}
		w := f.subscribeCustomer("c1", f.timeline(a)[0])
		f.moveOrder(b, commerce.Cancelled)
		f.expectChanges(w, "placed, confirmed, cancelled")
		f.expectNoChange(w)
	})
}

func TestInvalidAfter(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		a := f.placeOrder("c1")
		b := f.placeOrder("c2")
		f.setQuantity(a, 2)
		for name, subscribe := range map[string]func() (*feed.Subscription, error){
			"an event of another order": func() (*feed.Subscription, error) { return f.feed.SubscribeOrder(f.ctx, a, f.timeline(b)[0]) },
			"not an event ID":           func() (*feed.Subscription, error) { return f.feed.SubscribeOrder(f.ctx, a, "no") },
			"a future event": func() (*feed.Subscription, error) {
				return f.feed.SubscribeOrder(f.ctx, a, "7ZZZZZZZZZ0000000000000000")
			},
			"a missing order": func() (*feed.Subscription, error) {
				return f.feed.SubscribeOrder(f.ctx, "01HVMK3P2Q0000000000000001", "0")
			},
			"an event of another customer": func() (*feed.Subscription, error) {
				return f.feed.SubscribeCustomerOrders(f.ctx, "c1", f.timeline(b)[0])
			},
			"not an ID, for a customer": func() (*feed.Subscription, error) { return f.feed.SubscribeCustomerOrders(f.ctx, "c1", "no") },
			"an event before the first": func() (*feed.Subscription, error) {
				return f.feed.SubscribeCustomerOrders(f.ctx, "c1", "00000000000000000000000000")
			},
			"a missing customer": func() (*feed.Subscription, error) {
				return f.feed.SubscribeCustomerOrders(f.ctx, "c9", f.timeline(b)[0])
			},
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
func TestRepairEventIsDelivered(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		repaired, other := f.placeOrder("c1"), f.placeOrder("c1")
		r := storetest.RawTable{T: t, DB: db, Name: f.table, Store: f.store}
		for _, k := range [][2]string{{"ORDER#" + string(repaired), "#METADATA"}, {"CUSTOMER#c1", "ORDER#" + string(repaired)}} {
			r.Set(k[0], k[1], storetest.Item{"status": storetest.Str("delivered")})
		}
		last := f.timeline(other)[0]
		ofOrder, ofCustomer := f.subscribeOrder(repaired, ""), f.subscribeCustomer("c1", last)
		if _, err := f.store.CheckRecords(f.ctx, check.Options{Repair: true, IndexLag: check.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		f.expectChanges(ofOrder, "imported")
		f.expectChanges(ofCustomer, "imported")
		f.moveOrder(other, commerce.Cancelled)
		f.expectChanges(f.subscribeCustomer("c1", last), "imported, cancelled")
		f.expectNoChange(ofOrder)
	})
}

// A server whose clock is far ahead creates event IDs above all later IDs. Later events are
// delivered nevertheless.
func TestFutureClockDoesNotStopDelivery(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		ahead, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: f.table, Clock: func() time.Time { return time.Now().AddDate(10, 0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		change := func(quantity int) {
			t.Helper()
			if _, err := ahead.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: quantity}); err != nil {
				t.Fatal(err)
			}
		}
		before := []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")}
		change(2)
		for _, w := range before {
			f.expectChanges(w, "item_set")
		}
		all := slices.Concat(before, []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")})
		f.setQuantity(id, 3)
		f.setQuantity(id, 4)
		for _, w := range all {
			f.expectChanges(w, "item_set, item_set")
		}
	})
}

// The subscription of a slow subscriber ends when its queue is full. The subscriber gets the queued
// changes and can resume after them.
func TestSlowSubscriptionEnds(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{QueueCapacity: 3})
		id := f.placeOrder("c1")
		ofOrder, ofCustomer, fastStatus, ofAll, fastOrder := f.subscribeOrder(id, ""), f.subscribeCustomer("c1", ""), f.subscribeStatus(0), f.subscribeStatus(0), f.subscribeOrder(id, "")
		for quantity := 2; quantity < 7; quantity++ {
			f.setQuantity(id, quantity)
			f.next(fastOrder)
		}
		for range 5 {
			f.placeOrder("c2")
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
				f.expectChanges(f.subscribeOrder(id, last), "item_set, item_set")
			}
		}
		f.expectNoChange(fastOrder)
	})
}

// A subscription that reads missed events is not ended for a full queue, however many changes
// arrive in the meantime.
func TestCatchingUpSubscriptionDoesNotEnd(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{QueueCapacity: 3})
		id := f.placeOrder("c1")
		first := f.timeline(id)[0]
		f.setQuantity(id, 2)
		ofOrder, ofCustomer, seen := f.subscribeOrder(id, first), f.subscribeCustomer("c1", first), f.subscribeOrder(id, "")
		for quantity := 3; quantity < 13; quantity++ {
			f.setQuantity(id, quantity)
			f.next(seen) // so the change was also delivered to the other subscriptions
		}
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer} {
			f.expectChanges(w, "item_set"+strings.Repeat(", item_set", 10))
		}
		f.setQuantity(id, 1)
		f.setQuantity(id, 2)
		for _, w := range []*feed.Subscription{ofOrder, ofCustomer, seen} {
			f.expectChanges(w, "item_set, item_set")
			f.expectNoChange(w)
		}
	})
}

func TestCloseSubscriptions(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		var ws []*feed.Subscription
		for range 10 {
			ws = append(ws, f.subscribeOrder(id, ""), f.subscribeCustomer("c1", ""), f.subscribeStatus(0), f.subscribeStatus(commerce.Shipped))
		}
		for i := range ws {
			w := ws[(i*7)%len(ws)]
			w.Close()
			w.Close()
			if n := f.feed.Subscriptions(); n != len(ws)-1-i {
				t.Errorf("%d subscriptions, want %d", n, len(ws)-1-i)
			}
			if _, err := w.Next(f.ctx); !errors.Is(err, feed.ErrSubscriptionClosed) {
				t.Errorf("got %v", err)
			}
		}
		// The first subscription after the last was closed starts reading the source again.
		w := f.subscribeOrder(id, "")
		f.setQuantity(id, 2)
		f.expectChanges(w, "item_set")

		waiting := make(chan error)
		go func() {
			_, err := w.Next(f.ctx)
			waiting <- err
		}()
		w.Close()
		if err := <-waiting; !errors.Is(err, feed.ErrSubscriptionClosed) {
			t.Errorf("got %v", err)
		}
		w = f.subscribeOrder(id, "")
		f.feed.Close()
		if _, err := w.Next(f.ctx); !errors.Is(err, table.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if _, err := f.feed.SubscribeOrder(f.ctx, id, ""); !errors.Is(err, table.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}
