package dynamo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// A customer's orders are all counted, however many Queries that takes. Explain shows each of them.
func TestOrdersAreCountedToTheLast(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		r.Set("CUSTOMER#c1", "#METADATA", item{"orderCount": nil})
		inPages := storetest.Watched(db, func(_ context.Context, in any) error {
			if query, ok := in.(*dynamodb.QueryInput); ok && query.Select == types.SelectCount {
				query.Limit = aws.Int32(2)
			}
			return nil
		})
		store := storetest.Through(t, r.Store, inPages, dynamo.Options{})
		trace := &table.Trace{}
		n, err := store.OrderCount(trace.Begin(t.Context()), "c1")
		if err != nil || n != 3 {
			t.Errorf("%d orders, %v, want 3", n, err)
		}
		var counted []int
		for _, request := range trace.Requests() {
			counted = append(counted, request.Items)
		}
		if got := fmt.Sprint(counted); got != "[2 1]" {
			t.Errorf("the requests count %s orders", got)
		}
	})
}
