package graph

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
)

// The check reports the errors that the server would return, and the bounds of the operations that
// it would execute.
func TestCheckDocuments(t *testing.T) {
	dear := document.TrustedDocument{ID: "dear", Text: `{ orders(first: 100) { nodes { customer { orders(first: 100) { nodes { items(first: 100) { nodes { product { orderItems(first: 100) { nodes { quantity } } } } } } } } } } }`}
	several := document.TrustedDocument{ID: "several", Name: "X", Text: `query One { __typename } mutation Two { confirmOrder(input: {orderId: "x"}) { order { id } } }`}
	introspecting := document.TrustedDocument{ID: "schema", Text: `query Schema { __schema { queryType { name } } }`}
	literal := document.TrustedDocument{ID: "literal", Text: `query Literal { customers(first: 2147483648) { nodes { id } } employees(hired: {from: "2023-02-29"}) { nodes { id } } }`}
	given := append(slices.Clone(manifest), dear, several, introspecting, literal)
	opts := Options{Documents: given}
	schema := Schema()
	wrong := map[string]string{"wrong": "2:3: Cannot query field", "broken": "1:15: Expected Name", "dear": "1:1: ", "literal": `1:34: argument "first" does not fit`}
	var ids []string
	for _, o := range CheckDocuments(opts, 3) {
		ids = append(ids, o.ID+" "+o.Type+" "+o.Name)
		if message := wrong[o.ID]; message != "" {
			if len(o.Errors) == 0 || !strings.HasPrefix(o.Errors[0].Error(), message) || !reflect.DeepEqual(o.Bound, bound.Bound{}) {
				t.Errorf("%s: %+v, want %s", o.ID, o, message)
			}
			continue
		}
		if len(o.Errors) > 0 {
			t.Errorf("%s: %+v", o.ID, o.Errors)
		}
		var text string
		for _, d := range given {
			if d.ID == o.ID {
				text = d.Text
			}
		}
		d := document.NewStore(schema, document.Options{}).Parse(text, false)
		if want := bound.Compute(schema, NewExecutor(Options{}).preparer.PrepareForAllVariables(d.Parsed.Operations.ForName(o.Name)), dynamo.NewCostBounds(3)); !reflect.DeepEqual(o.Bound, want) {
			t.Errorf("%s: %+v, want %+v", o.ID, o.Bound, want)
		}
	}
	want := []string{"alice query Alice", manifest[1].ID + " query Bob", "wrong query Wrong", "broken  Broken", "confirm mutation Confirm", "large query Large",
		"dear query ", "several query One", "several mutation Two", "schema query Schema", "literal query Literal"}
	if !slices.Equal(ids, want) {
		t.Errorf("the checked operations are %q, want %q", ids, want)
	}
}
