package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph/document"
)

// Reads beyond the budget are not made. Their fields become errors, and null propagates to the
// nearest nullable field.
func TestOperationsMakeNoMoreRequestsThanTheyMay(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{Requests: 12}})
	pages := `{ customers(first: 7) { nodes { name`
	for i := range 10 {
		pages += fmt.Sprintf(" o%d: orders(first: %d) { __typename }", i, i+1)
	}
	pages += ` } } }`
	text, got := execute(t, e, Request{Query: pages})
	if made := got.Extensions.Explain.Totals.Requests; made != 12 || len(got.Errors) == 0 {
		t.Errorf("%d requests, %d errors, data %.300s", made, len(got.Errors), got.Data)
	}
	if n := strings.Count(text, document.LimitCodes.Requests); n != len(got.Errors) {
		t.Errorf("%d of %d errors have the code", n, len(got.Errors))
	}
	// Each operation has its own budget.
	if _, got := execute(t, e, Request{Query: `{ customer(id: "cust_01") { name } }`}); len(got.Errors) > 0 {
		t.Error(got.Errors)
	}
	// A mutation is executed even if the budget has no reads left for its payload.
	if _, got := execute(t, e, Request{Query: `mutation { a: createCustomer(input: {id: "n", name: "N", email: "n@example.com"}) { customer { id } } }`}); len(got.Errors) > 0 || !strings.Contains(string(got.Data), `"id":"n"`) {
		t.Errorf("%s, %v", got.Data, got.Errors)
	}
}
