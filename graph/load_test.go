package graph

import (
	"testing"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// An operation that there is no room for is not executed; small ones are, and so is it once there
// is room.
func TestOverload(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{ConcurrentCost: 5000}})
	large, small := Request{Query: `{ orders(first: 100) { nodes { a: id b: id c: id d: id e: id f: id g: id h: id i: id j: id k: id l: id m: id n: id o: id p: id q: id r: id s: id t: id u: id } } }`}, Request{Query: `{ __typename }`}
	if !e.load.Take(3000) {
		t.Fatal("no room from the start")
	}
	got := e.Execute(t.Context(), large)
	if got.Outcome != Overloaded || got.Data != nil || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != errcode.Overloaded {
		t.Errorf("a large one: outcome %d, data %s, errors %v", got.Outcome, got.Data, got.Errors)
	}
	if got := e.Execute(t.Context(), small); got.Outcome != Executed {
		t.Errorf("a small one: outcome %d, errors %v", got.Outcome, got.Errors)
	}
	e.load.Give(3000)
	for range 5 { // each gives back what it has taken
		if got := e.Execute(t.Context(), large); got.Outcome != Executed || len(got.Errors) > 0 {
			t.Errorf("with room: outcome %d, errors %v", got.Outcome, got.Errors)
		}
	}
}
