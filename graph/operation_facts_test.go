package graph

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever was asked for before, an operation costs what counting says.
func TestRememberedCostsAreThoseThatAreCounted(t *testing.T) {
	e := NewExecutor(Options{})
	for _, query := range []string{
		`query($n: Int, $m: Int = 3) { orders(first: $n) { nodes { id } } customer(id: "a") { orders(last: $m) { nodes { id } } } }`,
		`query($n: Int) { ...F } fragment F on Query { orders(first: $n) { nodes { customer { orders(first: 2) { edges { cursor } } } } } }`,
		`query($r: [_Any!]!) { _entities(representations: $r) { ... on Order { id } } }`,
		`query($n: Int) { orders(statuses: [PENDING]) { nodes { id } } a: __typename @skip(if: false) orders2: orders(first: $n) { nodes { id } } }`,
	} {
		for _, variables := range []map[string]any{
			nil, {"n": json.Number("5")}, {"n": json.Number("7"), "m": json.Number("2")}, {"n": nil}, {"n": json.Number("5")}, {}, {"m": nil}, {"m": json.Number("100")},
			{"r": []any{map[string]any{}}}, {"r": []any{map[string]any{}, map[string]any{}}}, {"r": map[string]any{}},
		} {
			for range 2 {
				operation, _, errs := e.prepare(t.Context(), Request{Query: query, Variables: variables})
				if len(errs) > 0 {
					if _, given := variables["r"]; given || !strings.Contains(query, "$r: ") {
						t.Fatal(query, variables, errs)
					}
					continue
				}
				if counted := e.costs.of(operation.Operation, operation.Variables); operation.cost != counted {
					t.Errorf("%s with %v costs %d, counted %d", query, variables, operation.cost, counted)
				}
			}
		}
	}
}
