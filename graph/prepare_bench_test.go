//go:build !race

package graph

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/ordergraph/ordergraph/access"
)

// usualRequest is a request of typical size.
var usualRequest = Request{
	Query: `query Page($id: ID!, $first: Int = 10) {
  customer(id: $id) { id name email orders(first: $first) { nodes { id status itemCount total { amount } items { nodes { productId name quantity unitPrice { amount } } } } pageInfo { hasNextPage endCursor } } }
}`,
	OperationName: "Page", Variables: map[string]any{"id": "cust_01", "first": json.Number("10")},
}

// BenchmarkPrepare measures the steps before an execution, for a cached document.
func BenchmarkPrepare(b *testing.B) {
	e, ctx := NewExecutor(Options{}), context.Background()
	if _, _, errs := e.prepare(ctx, usualRequest); len(errs) > 0 {
		b.Fatal(errs)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = e.prepare(ctx, usualRequest)
	}
}

// A cached operation is prepared without visiting its fields.
func TestKnownOperationsAreSoonPrepared(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage allocates")
	}
	e, ctx := NewExecutor(Options{}), WithPrincipal(context.Background(), access.Principal{ID: "a", Role: access.RoleAdmin})
	if _, _, errs := e.prepare(ctx, usualRequest); len(errs) > 0 {
		t.Fatal(errs)
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = e.prepare(ctx, usualRequest) }); n > preparing {
		t.Errorf("%.0f allocations, want %d at most", n, preparing)
	}
}

// preparing returns the number of allocations before an execution.
const preparing = 8
