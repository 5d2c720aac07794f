package graph

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A customer's orders are counted exactly, and the bound is the maximum cost of counting. A
// customer with more orders has no count. The client gets an error, which is also logged.
func TestOrdersAreCountedWithinTheBound(t *testing.T) {
	t.Parallel()
	w := newHardFixture("one shard", 1, 20)
	query := `{ customer(id: ` + w.values["id"][0] + `) { orderCount } }`
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		got, most := executed(t, w.executor(t, storetest.WithCountLimit(db, 7)), query, nil), bounded(t, query, 1)
		if explained := got.Extensions.Explain; exceeded(explained, most) != "" || explained.Totals.Requests != most.Requests || explained.Totals.RoundTrips != most.RoundTrips {
			t.Errorf("the bound is %+v\n%s", most, requestsOf(explained))
		}
		if string(got.Data) != `{"customer":{"orderCount":64}}` {
			t.Errorf("response %s %v", got.Data, got.Errors)
		}

		var logged []string
		executor := NewExecutor(Options{Store: w.store(t, storetest.WithCountLimit(db, 6)), Cursors: paging.NewCursorSigner([]byte("a key for tests")), Limits: unlimited,
			Report: func(_ context.Context, err error) { logged = append(logged, err.Error()) }})
		got = executed(t, executor, query, nil)
		if explained := got.Extensions.Explain; exceeded(explained, bounded(t, query, 1)) != "" {
			t.Errorf("the bound is %+v\n%s", most, requestsOf(explained))
		}
		if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "ordergraph check -repair") || string(got.Data) != `{"customer":null}` {
			t.Errorf("response %s %v", got.Data, got.Errors)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], table.ErrTooManyOrders.Error()) {
			t.Errorf("logged %q", logged)
		}
	})
}
