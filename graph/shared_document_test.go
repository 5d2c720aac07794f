package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// sharing is a document of many requests, with the differences between the requests: the operation,
// the variables and the principal.
type sharing struct {
	document   string
	operations []string
	variables  []map[string]any
}

var shared = []sharing{
	{ // one fragment, with different defaults of its variables in each operation
		`query A($n: Int = 1, $c: Boolean = true) { ...F } query B($n: Int = 2, $c: Boolean = false) { ...F } query C($n: Int = 3, $c: Boolean! = true) { x: products(category: "furniture", first: $n) { ...P } }
		fragment F on Query { products(category: "furniture", first: $n) { ...P } } fragment P on ProductConnection { nodes { sku name @include(if: $c) ... @skip(if: $c) { price { amount } } } pageInfo { hasNextPage @include(if: $c) } }`,
		[]string{"A", "B", "C"},
		[]map[string]any{nil, {"n": json.Number("2")}, {"n": nil}, {"c": false}, {"c": true, "n": json.Number("1")}, {"c": nil}, {"n": json.Number("0")}},
	},
	{ // each operation has its own conditions; one of them excludes a forbidden field
		`query A($a: Boolean!) { __typename customer(id: "cust_001") { name email } orders(first: 1) @include(if: $a) { nodes { id } } } query B($b: Boolean!) { customer(id: "cust_002") { ...on Customer @skip(if: $b) { name } id } }`,
		[]string{"A", "B"},
		[]map[string]any{{"a": true}, {"a": false}, {"b": true}, {"b": false}},
	},
	{ // a duplicate response name, and arguments that are partly variables
		`query A($id: ID!, $from: DateTime, $c: Boolean!) { c: customer(id: $id) { orders(first: 2, placed: {from: $from, to: "2030-01-01T00:00:00Z"}) { nodes { id } } } ... @include(if: $c) { c: customer(id: $id) { name orders(first: 2, placed: {from: $from, to: "2030-01-01T00:00:00Z"}) { nodes { id status } edges { cursor } pageInfo { hasNextPage } } } } }`,
		[]string{"A", ""},
		[]map[string]any{{"id": "cust_001", "c": true}, {"id": "cust_001", "c": false}, {"id": "cust_002", "c": true}, {"id": "cust_001", "c": true, "from": nil}, {"id": "cust_001", "c": true, "from": "2029-01-01T00:00:00Z"}, {"id": "", "c": true}},
	},
	{ // a union with conditions on its members
		`query A($r: [_Any!]!, $c: Boolean = false) { _entities(representations: $r) { __typename ... on Customer { id __typename ...N @include(if: $c) } ... on Product @skip(if: $c) { sku n: name } ... on Product { sku } } } fragment N on Customer { n: name }`,
		[]string{"A"},
		[]map[string]any{
			{"r": []any{map[string]any{"__typename": "Customer", "id": "cust_001"}, map[string]any{"__typename": "Product", "sku": "prod_100"}}},
			{"r": []any{map[string]any{"__typename": "Product", "sku": "prod_100"}, map[string]any{"__typename": "Customer", "id": "cust_001"}, "x"}, "c": true},
			{"r": []any{}, "c": nil}, {"r": []any{map[string]any{"__typename": "Order", "id": "x"}}},
		},
	},
}

// The response to a request does not depend on earlier or concurrent requests with the same
// document. It is the response of a new server that executes the operation with gqlgen's code.
func TestRequestsThatShareADocumentShareNoAnswers(t *testing.T) {
	t.Parallel()
	who := map[string]access.Principal{"a customer": ann, "an admin": {ID: "adm", Role: access.RoleAdmin}, "a clerk": {ID: "clerk", Role: access.RoleStaff}}
	e := newAuthenticatedExecutor(t, Options{})
	answer := func(execute func(context.Context, Request) Result, by access.Principal, r Request) string {
		result := execute(WithExplain(WithPrincipal(context.Background(), by)), r)
		var errs []string
		for _, err := range result.Errors {
			text, _ := json.Marshal(err)
			errs = append(errs, string(text))
		}
		slices.Sort(errs)
		return fmt.Sprintf("%v %s %s", result.Outcome, result.Data, strings.Join(errs, "\n"))
	}
	type asked struct {
		by      string
		request Request
		want    string
	}
	var all []asked
	kinds, variants := map[string]bool{}, 0
	for _, s := range shared {
		for _, operation := range s.operations {
			for _, variables := range s.variables {
				for _, by := range slices.Sorted(maps.Keys(who)) {
					if variants++; variants%longtest.Size(2, 1) > 0 {
						continue
					}
					r := Request{Query: s.document, OperationName: operation, Variables: variables}
					fresh := oracle{newAuthenticatedExecutor(t, Options{Store: e.resolver.store})}
					a := asked{by, r, answer(fresh.Execute, who[by], r)}
					all = append(all, a)
					kinds[a.want] = true
				}
			}
		}
	}
	if len(kinds) < longtest.Size(10, 20) {
		t.Fatalf("there are only %d different responses", len(kinds))
	}
	var asking sync.WaitGroup
	for shift := range 4 {
		asking.Go(func() {
			for i := range longtest.Size(1, 2) * len(all) {
				a := all[(i*7+shift*11)%len(all)]
				if got := answer(e.Execute, who[a.by], a.request); got != a.want {
					t.Errorf("%s executes %s of %s with %v and gets\n%s\nwant\n%s", a.by, a.request.OperationName, a.request.Query, a.request.Variables, got, a.want)
				}
			}
		})
	}
	asking.Wait()
}
