package check_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// newTableWithoutOrderCount is a table with a customer whose record has no order count, like an
// external record. Each copy of an order is larger by the given number of bytes.
func newTableWithoutOrderCount(t *testing.T, db *dynamodb.Client, orders, bytes int) storetest.RawTable {
	r := storetest.NewRawTable(t, db, commerce.Dataset{Customers: []commerce.Customer{{ID: "c1", Name: "Ann", Email: "ann@example.com", CreatedAt: storetest.FirstOrderTime(), UpdatedAt: storetest.FirstOrderTime()}}}, dynamo.Options{})
	r.Set("CUSTOMER#c1", "#METADATA", storetest.Item{"orderCount": nil})
	for i := range orders {
		id := fmt.Sprintf("01HVMK3P2Q%016d", i)
		rec := func(pk, sk string) storetest.Item {
			rec := storetest.ItemKey(pk, sk)
			rec["orderId"], rec["customerId"], rec["status"], rec["total"] = storetest.Str(id), storetest.Str("c1"), storetest.Str("delivered"), storetest.Num("0")
			return rec
		}
		own := rec("ORDER#"+id, "#METADATA")
		own["gsi1pk"], own["gsi1sk"] = storetest.Str("STATUS#delivered"), storetest.Str("ORDER#"+id)
		event := storetest.ItemKey("ORDER#"+id, "EVENT#1")
		event["eventId"], event["orderId"], event["type"], event["to"], event["createdAt"] = storetest.Str("1"), storetest.Str(id), storetest.Str("delivered"), storetest.Str("delivered"), storetest.Str("2024-04-16T23:15:41Z")
		r.Put(own)
		r.Put(event)
		copied := rec("CUSTOMER#c1", "ORDER#"+id)
		copied["theirs"] = storetest.Str(strings.Repeat("x", bytes))
		r.Put(copied)
	}
	return r
}

// If there are too many orders to count, the server returns an error, and a repair writes the
// count.
func TestTooManyOrdersToCount(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		const orders = 27
		r := newTableWithoutOrderCount(t, db, orders, 380_000)
		r.Store = storetest.StoreWithClient(t, r.Store, storetest.WithCountLimit(db, 2), dynamo.Options{})
		if n, err := r.Store.CountCustomerOrders(t.Context(), "c1"); !errors.Is(err, table.ErrTooManyOrders) {
			t.Errorf("%d orders, %v", n, err)
		}
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		inconsistencies = withoutCounts(inconsistencies)
		if got := storetest.FormatKindCounts(inconsistencies); got != "order-count 1" || inconsistencies[0].Detail != "orderCount is missing, should be 27" || summary.UnrepairedCount() != 0 {
			t.Errorf("found %+v, %d left", inconsistencies, summary.UnrepairedCount())
		}
		if got := r.Get("CUSTOMER#c1", "#METADATA")["orderCount"]; !storetest.EqualValues(got, storetest.Num("27")) {
			t.Errorf("the repair wrote %v", got)
		}
		// With one Query fewer, the server can count the orders, and the count may be missing.
		r.Set("CUSTOMER#c1", "#METADATA", storetest.Item{"orderCount": nil})
		r.Store = storetest.StoreWithClient(t, r.Store, storetest.WithCountLimit(db, 3), dynamo.Options{})
		if n, err := r.Store.CountCustomerOrders(t.Context(), "c1"); err != nil || n != orders {
			t.Errorf("%d orders, %v", n, err)
		}
		r.CheckClean()
	})
}
