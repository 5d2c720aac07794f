package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
)

// The most expensive operations come first, with aligned numbers. An operation over the budget is
// listed with the excess and its access patterns.
func TestWriteDocuments(t *testing.T) {
	operations := []graph.CheckedOperation{
		{ID: "a", Name: "Small", Type: "query", Bound: bound.Bound{Requests: 1, RoundTrips: 1, ReadUnits: 0.5}},
		{ID: "b", Name: "Large", Type: "query", Bound: bound.Bound{Requests: 112, RoundTrips: 3, ReadUnits: 1520.5, Patterns: []bound.PatternBound{
			{AccessPattern: "AP1", Requests: 1, ReadUnits: 20.5}, {AccessPattern: "AP10", Requests: 111, ReadUnits: 1500},
		}}},
		{ID: "c", Type: "mutation", Bound: bound.Bound{Requests: 1, RoundTrips: 1, ReadUnits: 20}},
		{ID: "d", Name: "Wrong", Errors: []document.Error{{Message: "one", Line: 2, Column: 5}, {Message: "as a whole"}}},
	}
	sortByBound(operations)
	const bounds = `requests  round trips  read units  operation
     112            3      1520.5  query Large (b)
       1            1          20  mutation c
       1            1         0.5  query Small (a)
`
	for _, c := range []struct {
		allowed budget
		want    string
	}{
		{budget{math.MaxInt, math.Inf(1)}, bounds + "\n3 operations: fine\n"},
		{budget{112, 1520.5}, bounds + "\n3 operations: fine\n"},
		{budget{100, 1000}, bounds + `
over the budget  Large (b): 112 requests, 12 more than 100; 1520.5 read units, 520.5 more than 1000
    AP1  1 request, 20.5 read units
    AP10  111 requests, 1500 read units

3 operations: 1 over the budget: request smaller pages or fewer nested lists in these operations, or raise the budget
`},
		{budget{0, 20}, bounds + `
over the budget  Large (b): 112 requests, 112 more than 0; 1520.5 read units, 1500.5 more than 20
    AP1  1 request, 20.5 read units
    AP10  111 requests, 1500 read units
over the budget  c: 1 request, 1 more than 0
over the budget  Small (a): 1 request, 1 more than 0

3 operations: 3 over the budget: request smaller pages or fewer nested lists in these operations, or raise the budget
`},
	} {
		var out strings.Builder
		fine := writeDocuments(&out, operations[1:], c.allowed)
		if out.String() != c.want || fine != strings.Contains(c.want, "fine") {
			t.Errorf("%+v: fine %v, output\n%s\nwant\n%s", c.allowed, fine, out.String(), c.want)
		}
	}
	var out strings.Builder
	if fine := writeDocuments(&out, operations, budget{112, 1000}); fine || !strings.HasPrefix(out.String(), "invalid  Wrong (d): 2:5: one\ninvalid  Wrong (d): as a whole\n\nrequests") ||
		!strings.HasSuffix(out.String(), "\n4 operations: 1 invalid (the server would reject them); 1 over the budget: request smaller pages or fewer nested lists in these operations, or raise the budget\n") {
		t.Errorf("fine %v, output\n%s", fine, out.String())
	}
}

func TestWriteDocumentsAsJSON(t *testing.T) {
	var out strings.Builder
	fine := writeDocumentsAsJSON(&out, []graph.CheckedOperation{
		{ID: "b", Name: "Large", Type: "query", Bound: bound.Bound{Requests: 2, RoundTrips: 1, ReadUnits: 1.5, Patterns: []bound.PatternBound{{AccessPattern: "AP1", Requests: 2, ReadUnits: 1.5}}}},
	}, budget{1, 2})
	const want = `{"id":"b","name":"Large","type":"query","bound":{"requests":2,"roundTrips":1,"readUnits":1.5,"writeUnits":0,"patterns":[{"accessPattern":"AP1","requests":2,"readUnits":1.5}]},"overBudget":["2 requests, 1 more than 1"]}
{"summary":{"fine":false,"operations":1,"invalid":0,"overBudget":1}}
`
	if fine || out.String() != want {
		t.Errorf("fine %v, output\n%s\nwant\n%s", fine, out.String(), want)
	}
}

// The bound of a subscription is per event. A note describes the additional reads at its start.
func TestWriteSubscriptions(t *testing.T) {
	operations := []graph.CheckedOperation{{ID: "a", Name: "Follow", Type: "subscription", Bound: bound.Bound{Requests: 1, RoundTrips: 1, ReadUnits: 3}}}
	const text = `requests  round trips  read units  operation
       1            1           3  subscription Follow (a), for each event

A subscription also reads records when it starts. With the argument "after", it first reads all events after the given event.

1 operation: fine
`
	var out strings.Builder
	if fine := writeDocuments(&out, operations, budget{1, 3}); !fine || out.String() != text {
		t.Errorf("fine %v, output\n%s", fine, out.String())
	}
	out.Reset()
	if writeDocumentsAsJSON(&out, operations, budget{1, 3}); !strings.Contains(out.String(), `"bound":{"per":"event","requests":1,`) {
		t.Errorf("output\n%s", out.String())
	}
}
