package feed_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// The clocks of servers may differ from DynamoDB's by some seconds. A subscriber of a server whose
// clock is behind gets the events of a server whose clock is ahead. This holds also if the record
// of the last event is outdated.
func TestResumingBetweenServersWhoseClocksDiffer(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		id := f.placeOrder("c1")
		first := f.timeline(id)[0]
		f.setQuantity(id, 3)
		outdated := f.rawTable().Get("CUSTOMER#c1", "LAST_EVENT")
		ahead, behind := f.storeAhead(4*time.Second), f.storeAhead(-4*time.Second)
		if _, err := ahead.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: 2}); err != nil {
			t.Fatal(err)
		}
		f.rawTable().Put(outdated)
		feed := behind.OpenFeed(storetest.ChangeSource(t, db), feed.Options{})
		t.Cleanup(feed.Close)
		ofOrder, err := feed.SubscribeOrder(f.ctx, id, first)
		if err != nil {
			t.Fatal(err)
		}
		f.expectChanges(ofOrder, "item_set, item_set")
		ofCustomer, err := feed.SubscribeCustomerOrders(f.ctx, "c1", first)
		if err != nil {
			t.Fatal(err)
		}
		f.expectChanges(ofCustomer, "item_set, item_set")
	})
}

// An import overwrites orders with an older export. A repair corrects their times from their
// events, so a subscriber who resumes misses no event.
func TestResumingAfterAnOlderImportIsRepaired(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		a, b := f.placeOrder("c1"), f.placeOrder("c1")
		older := strings.Join(storetest.Export(t, f.store, 1), "")
		for i, id := range []commerce.OrderID{a, b, a} {
			later := f.storeAhead(time.Duration(i+1) * time.Second)
			if _, err := later.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: i + 2}); err != nil {
				t.Fatal(err)
			}
		}
		seen := f.timeline(a)[1]
		if _, err := f.store.Import(f.ctx, strings.NewReader(older), bulk.ImportOptions{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		if _, summary := f.rawTable().Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 || summary.Found["updated-at"] != 2 {
			t.Errorf("found %v, %d left", summary.Found, summary.UnrepairedCount())
		}
		ofCustomer, err := f.feed.SubscribeCustomerOrders(f.ctx, "c1", seen)
		if err != nil {
			t.Fatal(err)
		}
		f.expectChanges(ofCustomer, "item_set, item_set")
	})
}

// A subscriber to a customer's orders who has missed the changes of any number of orders gets each
// change exactly once and in order. This holds also if the subscriber leaves again before the end, and
// if orders change in the meantime.
func TestResumingAfterManyChangedOrders(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFixture(t, db, feed.Options{})
		f.feed.SetMaxCatchUpPage(longtest.Size(200, 1000))
		n := longtest.Size(1100, 2500)
		price, err := commerce.ParseMoney("1.00", "USD")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		id := func(i int) (string, time.Time) {
			at := begin.Add(time.Duration(i) * 100 * time.Millisecond)
			lowest, _ := commerce.MinULIDAt(at)
			return lowest[:10] + fmt.Sprintf("%016d", i), at
		}
		var dataset commerce.Dataset
		var want []commerce.EventID
		for i := range n {
			order, at := id(i)
			// Each order is confirmed after some later orders were placed.
			confirmed, confirmedAt := id(i + 10)
			confirmed = confirmed[:10] + fmt.Sprintf("A%015d", i)
			placed := order[:10] + fmt.Sprintf("B%015d", i)
			want = append(want, commerce.EventID(placed), commerce.EventID(confirmed))
			dataset.Orders = append(dataset.Orders, commerce.OrderWithItems{
				Order: commerce.Order{ID: commerce.OrderID(order), CustomerID: "c1", Status: commerce.Confirmed, Total: price, PlacedAt: at, UpdatedAt: confirmedAt, Version: 2},
				Lines: []commerce.LineItem{{OrderID: commerce.OrderID(order), CustomerID: "c1", SKU: "p1", Name: "Pin", Quantity: 1, UnitPrice: price}},
				Events: []commerce.Event{
					{ID: commerce.EventID(placed), OrderID: commerce.OrderID(order), Type: commerce.EventPlaced, To: commerce.Pending, At: at, Actor: "loaded"},
					{ID: commerce.EventID(confirmed), OrderID: commerce.OrderID(order), Type: commerce.EventConfirmed, From: commerce.Pending, To: commerce.Confirmed, At: confirmedAt, Actor: "loaded"},
				},
			})
		}
		storetest.LoadDataset(t, f.store, dataset)
		slices.Sort(want)

		changed := func(i int) {
			t.Helper()
			id := dataset.Orders[i].ID
			if _, err := f.store.UpdateShippingAddress(f.ctx, caller, commerce.ShippingAddressChange{OrderID: id, ShippingAddress: commerce.Address{Recipient: fmt.Sprint(i), Line1: "1", City: "C", CountryCode: "US"}}); err != nil {
				t.Fatal(err)
			}
			timeline := f.timeline(id)
			want = append(want, timeline[len(timeline)-1])
		}
		changed(0)
		var got []commerce.EventID
		for after := want[0]; len(got) < len(want)-1; after = got[len(got)-1] {
			w := f.subscribeCustomer("c1", after)
			changed(n - 1 - len(want)%10) // while the subscriber catches up
			for range min(n*2/3, len(want)-1-len(got)) {
				got = append(got, f.next(w).Position)
			}
			if len(got) == len(want)-1 {
				f.expectNoChange(w)
			}
			w.Close()
		}
		if !slices.Equal(got, want[1:]) {
			t.Errorf("got %d events, want %d", len(got), len(want)-1)
			for i := range min(len(got), len(want)-1) {
				if got[i] != want[i+1] {
					t.Fatalf("event %d is %s, want %s", i, got[i], want[i+1])
				}
			}
		}
	})
}
