package feed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/internal/storetest"
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
