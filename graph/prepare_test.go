package graph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Requests with the same conditions share one prepared operation. The memory of a document's cached
// operations is limited.
func TestPreparedOperationsAreKeptWithTheirDocuments(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20, Depth: 100}})
	prepare := func(query, operation string, variables map[string]any) *admittedOperation {
		o, _, errs := e.prepare(t.Context(), Request{Query: query, OperationName: operation, Variables: variables})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return o
	}
	query := `query A($c: Boolean!, $n: Int) { customers(first: $n) { nodes { id name @include(if: $c) } } } query B { customer(id: "cust_01") { id @skip(if: true) name } }`
	with := prepare(query, "A", map[string]any{"c": true, "n": json.Number("1")}).prepared
	without := prepare(query, "A", map[string]any{"c": false}).prepared
	again := prepare(query, "A", map[string]any{"c": true}).prepared
	fields := func(p *operation.Prepared) int { return len(p.Root.Fields[0].Records[0].Fields) }
	if with != again || with == without || fields(with) != fields(without)+1 {
		t.Errorf("the prepared operation with the field is %p, the second time %p, and without the field %p, want the same, the same and a different one", with, again, without)
	}
	if other := prepare(query, "B", nil).prepared; other != prepare(query, "B", map[string]any{"c": true}).prepared {
		t.Error("a condition of another operation prevents sharing the prepared operation")
	}
	// One operation of this document exceeds the document's capacity.
	fragments := `query { customer(id: "cust_01") { ...F0 } }` + manyFields(6)
	large := prepare(fragments, "", nil)
	room := large.document.PreparedCapacity()
	if other := prepare(fragments, "", nil); other.prepared == large.prepared || large.prepared.Bytes() <= room {
		t.Errorf("an operation of %d bytes is cached in a document with a capacity of %d", large.prepared.Bytes(), room)
	}
	if bytes := large.document.PreparedBytes(); bytes != 0 {
		t.Errorf("the size of the cached operations is estimated as %d bytes, want 0", bytes)
	}
}

// A shared prepared operation uses the variables and conditions of the current request, not the
// ones of the first request.
func TestPreparedOperationsServeAllValuesOfVariables(t *testing.T) {
	e := executor(t, Options{})
	for query, values := range map[string][]map[string]any{
		`query ($id: ID!, $first: Int = 2) { customer(id: $id) { orders(first: $first) { nodes { customer { name } } } } }`:    {{"id": "cust_01"}, {"id": "cust_001", "first": json.Number("1")}, {"id": "cust_01", "first": nil}},
		`query ($with: Boolean!) { customer(id: "cust_01") { orders @include(if: $with) { nodes { accountRep { name } } } } }`: {{"with": false}, {"with": true}, {"with": false}},
	} {
		for _, variables := range values {
			_, got := execute(t, e, Request{Query: query, Variables: variables})
			for _, r := range got.Extensions.Explain.Requests {
				if r.Path == "" {
					t.Errorf("%s %v: %s %s was not planned", query, variables, r.AccessPattern, r.Key)
				}
			}
			if len(got.Errors) > 0 {
				t.Errorf("%s %v: %v", query, variables, got.Errors)
			}
		}
	}
}

// manyFields returns fragments on Customer that each spread the next one twice.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " fragment F%d on Customer { a: orders(first: 1) { nodes { customer { ...F%d } } } b: orders(first: 1) { nodes { customer { ...F%d } } } }", i, i+1, i+1)
	}
	fmt.Fprintf(&b, " fragment F%d on Customer { accountRep { name } }", n)
	return b.String()
}
