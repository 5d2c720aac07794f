package feed_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// storeAhead returns a store of f's table whose clock is ahead by d. Its client does not check the
// clock.
func (f *fixture) storeAhead(d time.Duration) *dynamo.Store {
	f.t.Helper()
	store, err := dynamo.New(storetest.WithoutResponseDate(f.db), dynamo.Options{Table: f.table, Clock: func() time.Time { return time.Now().Add(d) }})
	if err != nil {
		f.t.Fatal(err)
	}
	return store
}

func (f *fixture) rawTable() storetest.RawTable {
	return storetest.RawTable{T: f.t, DB: f.db, Name: f.table, Store: f.store}
}

// externalEvent is an entry of a timeline as other software writes it.
func externalEvent(order commerce.OrderID, id string) storetest.Item {
	rec := storetest.ItemKey("ORDER#"+string(order), "EVENT#"+id)
	rec["eventId"], rec["orderId"], rec["type"], rec["createdAt"] = storetest.Str(id), storetest.Str(string(order)), storetest.Str("item_set"), storetest.Str("2026-01-01T00:00:00.000Z")
	return rec
}

// expectPositions reads changes and compares their positions.
func (f *fixture) expectPositions(w *feed.Subscription, want ...commerce.EventID) {
	f.t.Helper()
	var got []commerce.EventID
	for range want {
		got = append(got, f.next(w).Position)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// expectInvalidAfter checks that no subscription can be resumed after an event.
func (f *fixture) expectInvalidAfter(order commerce.OrderID, after commerce.EventID) {
	f.t.Helper()
	_, ofOrder := f.feed.SubscribeOrder(f.ctx, order, after)
	_, ofCustomer := f.feed.SubscribeCustomerOrders(f.ctx, "c1", after)
	for _, err := range []error{ofOrder, ofCustomer} {
		if invalid := (*commerce.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Argument != "after" {
			f.t.Errorf("after %s: got %v", after, err)
		}
	}
}

// expectResumable checks that a subscription resumed after each of these events delivers the events
// after it, once and in order.
func (f *fixture) expectResumable(order commerce.OrderID, events []commerce.EventID) {
	f.t.Helper()
	for i, after := range events {
		for _, w := range []*feed.Subscription{f.subscribeOrder(order, after), f.subscribeCustomer("c1", after)} {
			f.expectPositions(w, events[i+1:]...)
			f.expectNoChange(w)
			w.Close()
		}
	}
}

// Events that other software writes into a timeline do not suppress events of this program. Each
// event is delivered once and in order, live and after a resume.
func TestExternalEventsDoNotSuppressEvents(t *testing.T) {
	now := time.Now()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for i, c := range []struct {
			name, id string
			// own adds the attribute that marks events of this program.
			own bool
		}{
			{name: "a name", id: "evt-1"},
			{name: "a number", id: "1"},
			{name: "a UUID", id: "f47ac10b-58cc-4372-a567-0e02b2c3d479"},
			{name: "a low UUID", id: "00000000-58cc-4372-a567-0e02b2c3d479"},
			{name: "a current UUID", id: "019a0a5d-ac96-774b-bcce-b302099a8057"},
			{name: "not a ULID", id: "evt-1", own: true},
			{name: "an earlier ULID", id: storetest.ULIDAt(now.Add(-time.Hour), 1)},
			{name: "a ULID ahead", id: storetest.ULIDAt(now.Add(time.Hour), 1)},
			{name: "a ULID far ahead", id: storetest.ULIDAt(now.AddDate(10, 0, 0), 1)},
			{name: "an own event ahead", id: storetest.ULIDAt(now.Add(time.Hour), 1), own: true},
			{name: "an own event far ahead", id: storetest.ULIDAt(now.AddDate(10, 0, 0), 1), own: true},
		} {
			if !storetest.RunsCase(t, 4, i) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				f := newFixture(t, db, feed.Options{})
				id := f.placeOrder("c1")
				events := f.timeline(id)
				ofOrder, ofCustomer := f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")
				entry := externalEvent(id, c.id)
				if c.own {
					entry["entity"] = storetest.Str("orderEvent")
				}
				f.rawTable().Put(entry)
				if _, err := commerce.ParseOrderID(c.id); !c.own || err != nil {
					if change := f.next(ofOrder); change.Event == nil || string(change.Event.ID) != c.id || change.Position != "" {
						t.Errorf("got %+v", change)
					}
				}
				late := []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", ""), f.subscribeOrder(id, events[0]), f.subscribeCustomer("c1", events[0])}
				f.setQuantity(id, 2)
				for _, w := range append(late, ofOrder, ofCustomer) {
					change := f.next(w)
					if describeChange(change) != "item_set" || change.Position != change.Event.ID {
						t.Fatalf("got %+v", change)
					}
					if w == late[0] {
						events = append(events, change.Position)
					}
				}
				for _, to := range []commerce.Status{commerce.Confirmed, commerce.Cancelled} {
					f.moveOrder(id, to)
					events = append(events, f.next(ofOrder).Position)
				}
				for _, w := range append(late, ofCustomer) {
					f.expectPositions(w, events[2:]...)
				}
				f.expectNoChange(append(late, ofOrder, ofCustomer)...)
				f.expectResumable(id, events)
				f.expectInvalidAfter(id, commerce.EventID(c.id))
				if !slices.IsSorted(events) || slices.Contains(events, "") {
					t.Errorf("events %s", events)
				}
			})
		}
	})
}

// An event dated up to a day ahead has a position. The next event is dated after it.
func TestEventOfClockAhead(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		before := []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")}
		if _, err := f.storeAhead(23*time.Hour).ChangeOrderStatus(f.ctx, caller, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed}); err != nil {
			t.Fatal(err)
		}
		between := []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")}
		f.moveOrder(id, commerce.Cancelled)
		events := f.timeline(id)
		for i, w := range append(before, between...) {
			f.expectPositions(w, events[1+i/2:]...)
			f.expectNoChange(w)
		}
		f.expectResumable(id, events)
		if page, err := dynamo.ReadPage(f.ctx, f.store, model.Timeline, dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: 3}}); err != nil || page.Items[2].To != commerce.Cancelled {
			t.Errorf("the timeline is %+v, %v", page.Items, err)
		}
	})
}

// An event dated further ahead is delivered once. It has no position and does not suppress later
// events.
func TestEventOfClockFarAhead(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, ahead := range []time.Duration{25 * time.Hour, 10 * 365 * 24 * time.Hour} {
			f := newFixture(t, db, feed.Options{})
			id := f.placeOrder("c1")
			first := f.timeline(id)[0]
			before := []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", "")}
			if _, err := f.storeAhead(ahead).ChangeOrderStatus(f.ctx, caller, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed}); err != nil {
				t.Fatal(err)
			}
			for _, w := range before {
				if change := f.next(w); describeChange(change) != "confirmed" || change.Position != "" {
					t.Errorf("got %+v", change)
				}
			}
			between := []*feed.Subscription{f.subscribeOrder(id, ""), f.subscribeCustomer("c1", ""), f.subscribeOrder(id, first), f.subscribeCustomer("c1", first)}
			f.expectInvalidAfter(id, f.timeline(id)[1])
			f.moveOrder(id, commerce.Cancelled)
			timeline := f.timeline(id)
			if len(timeline) != 3 || timeline[0] != first {
				t.Fatalf("the timeline is %s", timeline)
			}
			events := []commerce.EventID{first, timeline[1]} // timeline[2] is the event dated ahead
			for _, w := range append(before, between...) {
				f.expectPositions(w, events[1])
				f.expectNoChange(w)
			}
			f.expectResumable(id, events)
			f.expectInvalidAfter(id, timeline[2])
			// A check reports no inconsistency.
			if summary, err := f.store.CheckRecords(f.ctx, check.Options{IndexLag: check.NoIndexLag}); err != nil || summary.Found["timeline"]+summary.Found["last-event"] > 0 {
				t.Errorf("check: %v, %v", summary.Found, err)
			}
		}
	})
}

// A server whose clock is wrong would write events out of order, so its writes are rejected.
func TestWrongClockWritesNoEvent(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, off := range []time.Duration{-25 * time.Hour, 25 * time.Hour, -time.Minute} {
			f := newFixture(t, db, feed.Options{})
			id := f.placeOrder("c1")
			events := f.timeline(id)
			store, err := dynamo.New(storetest.WithResponseDate(db, time.Now), dynamo.Options{Table: f.table, Clock: func() time.Time { return time.Now().Add(off) }})
			if err != nil {
				t.Fatal(err)
			}
			clock := (*table.ClockError)(nil)
			if _, err := store.ChangeOrderStatus(f.ctx, caller, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed}); !errors.As(err, &clock) {
				t.Errorf("got %v", err)
			}
			if got := f.timeline(id); !slices.Equal(got, events) {
				t.Errorf("the rejected mutation changed the timeline to %s, was %s", got, events)
			}
		}
	})
}

// An import can write an outdated record of the last event. No subscription misses an event because
// of it.
func TestResumingWithAnOutdatedLastEvent(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		f.setQuantity(id, 2)
		old := f.rawTable().Get("CUSTOMER#c1", "LAST_EVENT")
		f.setQuantity(id, 3)
		f.setQuantity(id, 4)
		events := f.timeline(id)
		f.rawTable().Put(old)
		var ws []*feed.Subscription
		for _, i := range []int{0, 2, 3} {
			ws = append(ws, f.subscribeCustomer("c1", events[i]), f.subscribeOrder(id, events[i]))
		}
		live := []*feed.Subscription{f.subscribeCustomer("c1", ""), f.subscribeOrder(id, "")}
		f.setQuantity(id, 5)
		events = f.timeline(id)
		for n, i := range []int{0, 2, 3} {
			f.expectPositions(ws[2*n], events[i+1:]...)
			f.expectPositions(ws[2*n+1], events[i+1:]...)
		}
		for _, w := range live {
			f.expectPositions(w, events[4])
		}
		f.expectNoChange(append(ws, live...)...)
	})
}
