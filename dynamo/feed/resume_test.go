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
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		id := f.place("c1")
		first := f.timeline(id)[0]
		f.set(id, 3)
		outdated := f.raw().Get("CUSTOMER#c1", "LAST_EVENT")
		ahead, behind := f.at(4*time.Second), f.at(-4*time.Second)
		if _, err := ahead.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: 2}); err != nil {
			t.Fatal(err)
		}
		f.raw().Put(outdated)
		feed := behind.OpenFeed(storetest.Source(t, db), feed.Options{})
		t.Cleanup(feed.Close)
		ofOrder, err := feed.Order(f.ctx, id, first)
		if err != nil {
			t.Fatal(err)
		}
		f.wants(ofOrder, "item_set, item_set")
		ofCustomer, err := feed.CustomerOrders(f.ctx, "c1", first)
		if err != nil {
			t.Fatal(err)
		}
		f.wants(ofCustomer, "item_set, item_set")
	})
}

// An import overwrites orders with an older export. A repair corrects their times from their
// events, so a subscriber who resumes misses no event.
func TestResumingAfterAnOlderImportIsRepaired(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		f := newFollowed(t, db, feed.Options{})
		a, b := f.place("c1"), f.place("c1")
		older := strings.Join(storetest.Export(t, f.store, 1), "")
		for i, id := range []commerce.OrderID{a, b, a} {
			later := f.at(time.Duration(i+1) * time.Second)
			if _, err := later.SetOrderItem(f.ctx, caller, commerce.OrderItemChange{OrderID: id, SKU: "p1", Quantity: i + 2}); err != nil {
				t.Fatal(err)
			}
		}
		seen := f.timeline(a)[1]
		if _, err := f.store.Import(f.ctx, strings.NewReader(older), bulk.ImportOptions{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		if _, summary := f.raw().Check(check.Options{Repair: true}); summary.Left() > 0 || summary.Found["updated-at"] != 2 {
			t.Errorf("found %v, %d left", summary.Found, summary.Left())
		}
		ofCustomer, err := f.feed.CustomerOrders(f.ctx, "c1", seen)
		if err != nil {
			t.Fatal(err)
		}
		f.wants(ofCustomer, "item_set, item_set")
	})
}
