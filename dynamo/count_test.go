package dynamo_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// OrderCount counts all orders of a customer, in one or more queries. The trace
// shows each Query.
func TestOrderCountCountsAllOrders(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		r.Set("CUSTOMER#c1", "#METADATA", storetest.Item{"orderCount": nil})
		store := storetest.StoreWithClient(t, r.Store, storetest.WithCountLimit(db, 2), dynamo.Options{})
		trace := &trace.Trace{}
		n, err := store.CountCustomerOrders(trace.NewContext(t.Context()), "c1")
		if err != nil || n != 3 {
			t.Errorf("%d orders, %v, want 3", n, err)
		}
		var counted []int
		for _, request := range trace.Requests() {
			counted = append(counted, request.Items)
		}
		if got := fmt.Sprint(counted); got != "[2 1]" {
			t.Errorf("the COUNT requests counted %s orders, want [2 1]", got)
		}
	})
}
