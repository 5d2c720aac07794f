package graph

import (
	"testing"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// An operation is refused if the concurrent cost has no capacity for it. Cheap operations are
// executed, and so is the operation when there is capacity again.
func TestOverload(t *testing.T) {
	e := executor(t, Options{Admission: admission.New(admission.Sizes{admission.PoolOperationCost: 5000})})
	large, small := Request{Query: `{ orders(first: 100) { nodes { a: id b: id c: id d: id e: id f: id g: id h: id i: id j: id k: id l: id m: id n: id o: id p: id q: id r: id s: id t: id u: id } } }`}, Request{Query: `{ __typename }`}
	others := admission.Caller{Key: "others"}
	if refused := e.pools[admission.PoolOperationCost].TryAcquire(others, 3000); refused != nil {
		t.Fatal(refused)
	}
	got := e.Execute(t.Context(), large)
	if got.Outcome != Overloaded || got.Data != nil || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != errcode.Overloaded || got.Errors[0].Extensions["pool"] != "cost" {
		t.Errorf("a large one: outcome %d, data %s, errors %v", got.Outcome, got.Data, got.Errors)
	}
	if got := e.Execute(t.Context(), small); got.Outcome != Executed {
		t.Errorf("a small one: outcome %d, errors %v", got.Outcome, got.Errors)
	}
	e.pools[admission.PoolOperationCost].Release(others, 3000)
	for range 5 { // each operation releases its cost
		if got := e.Execute(t.Context(), large); got.Outcome != Executed || len(got.Errors) > 0 {
			t.Errorf("with capacity: outcome %d, errors %v", got.Outcome, got.Errors)
		}
	}
}
