package graph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What a plan sees of a document is kept with it, unless variables decide what is selected or the document has no room for it.
func TestOutlooksAreKeptWithTheirDocuments(t *testing.T) {
	e := executor(t, Options{})
	for _, c := range []struct {
		name, query string
		variables   map[string]any
		kept        bool
	}{
		{"arguments alone vary", `query ($id: ID!) { customer(id: $id) { name orders(first: 2) { nodes { total { amount } customer { name } } } } }`, map[string]any{"id": "cust_01"}, true},
		{"a condition that never varies", `{ customer(id: "cust_01") { orders @include(if: true) { nodes { id } } } }`, nil, true},
		{"a condition", `query ($with: Boolean!) { customer(id: "cust_01") { orders @include(if: $with) { nodes { id } } } }`, map[string]any{"with": false}, false},
		{"a condition in a fragment", `query ($with: Boolean!) { customer(id: "cust_01") { ...F } } fragment F on Customer { ... @skip(if: $with) { orders { nodes { id } } } }`, map[string]any{"with": true}, false},
		{"fragments that multiply", `{ customer(id: "cust_01") { ...F0 } }` + manyFields(4), nil, false},
	} {
		request := Request{Query: c.query, Variables: c.variables}
		first := e.Execute(t.Context(), request)
		operation, _, errs := e.prepare(t.Context(), request)
		if len(errs) > 0 || len(first.Errors) > 0 {
			t.Fatalf("%s: %v %v", c.name, errs, first.Errors)
		}
		kept := operation.document.outlooks.kept.Load()
		if (kept != nil) != c.kept {
			t.Errorf("%s: the outlook is kept: %v, want %v", c.name, kept != nil, c.kept)
		}
		if again := e.Execute(t.Context(), request); string(again.Data) != string(first.Data) {
			t.Errorf("%s: the second answer is %s, the first was %s", c.name, again.Data, first.Data)
		}
	}
}

// The values of variables and conditions are those of the request, not of the one that came first.
func TestOutlooksServeAllValuesOfVariables(t *testing.T) {
	e := executor(t, Options{})
	for query, values := range map[string][]map[string]any{
		`query ($id: ID!, $first: Int = 2) { customer(id: $id) { orders(first: $first) { nodes { customer { name } } } } }`:    {{"id": "cust_01"}, {"id": "cust_001", "first": json.Number("1")}, {"id": "cust_01", "first": nil}},
		`query ($with: Boolean!) { customer(id: "cust_01") { orders @include(if: $with) { nodes { accountRep { name } } } } }`: {{"with": false}, {"with": true}, {"with": false}},
	} {
		for _, variables := range values {
			_, got := execute(t, e, Request{Query: query, Variables: variables})
			for _, r := range got.Extensions.Explain.Requests {
				if r.Path == "" {
					t.Errorf("%s %v: no plan saw %s %s coming", query, variables, r.AccessPattern, r.Key)
				}
			}
			if len(got.Errors) > 0 {
				t.Errorf("%s %v: %v", query, variables, got.Errors)
			}
		}
	}
}

// manyFields are fragments on Customer, each of which spreads the next one twice.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " fragment F%d on Customer { a: orders(first: 1) { nodes { customer { ...F%d } } } b: orders(first: 1) { nodes { customer { ...F%d } } } }", i, i+1, i+1)
	}
	fmt.Fprintf(&b, " fragment F%d on Customer { accountRep { name } }", n)
	return b.String()
}
