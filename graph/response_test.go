package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph/document"
)

// Data at the limit is returned. Longer data is replaced by null and one error, no matter which
// field exceeds the limit.
func TestAnswersAreNoLongerThanTheirLimit(t *testing.T) {
	alias := strings.Repeat("a", 200)
	for _, query := range []string{
		`{ a: customer(id: "cust_01") { id name email } }`,
		`{ a: customer(id: "cust_01") { ` + alias + `: id } b: customer(id: "cust_01") { ` + alias + `: id } }`,
		`{ a: __type(name: "Order") { fields { description } } }`,
		`{ a: __schema { types { ` + alias + `: name } } }`,
		`{ a: _service { sdl } }`,
		`{ a: _entities(representations: [{__typename: "Customer", id: "cust_01"}]) { ... on Customer { ` + alias + `: name } } }`,
		`{ a: customer(id: "a#b") { id } b: customer(id: "cust_01") { name } }`,
	} {
		whole := executor(t, Options{Limits: document.Limits{}}).Execute(t.Context(), Request{Query: query})
		length := len(whole.Data)
		if got := executor(t, Options{Limits: document.Limits{Answer: length}}).Execute(t.Context(), Request{Query: query}); string(got.Data) != string(whole.Data) || len(got.Errors) != len(whole.Errors) {
			t.Errorf("%s\nwith a limit of %d bytes has the response %.200s, %v", query, length, got.Data, got.Errors)
		}
		got := executor(t, Options{Limits: document.Limits{Answer: length - 1}}).Execute(t.Context(), Request{Query: query})
		if got.Outcome != Executed || got.Data != nil || len(got.Errors) != 1+len(whole.Errors) || got.Errors[0].Extensions["code"] != document.LimitCodes.Answer ||
			!strings.Contains(got.Errors[0].Message, fmt.Sprint(length-1)) || len(got.Errors[0].Locations) != 1 {
			t.Errorf("%s\nwith a limit of %d bytes has the response %.200s, %v", query, length-1, got.Data, got.Errors)
		}
	}
}

// A mutation is executed before its response turns out to exceed the limit, and the error says so.
func TestMutationsWithOversizedResponses(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{Answer: 50}})
	got := e.Execute(t.Context(), Request{Query: `mutation { createCustomer(input: {id: "cust_new", name: "Ann", email: "ann@example.com"}) { customer { id name email version } } }`})
	if !got.Mutation || got.Data != nil || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != document.LimitCodes.Answer || !strings.Contains(got.Errors[0].Message, "was executed") {
		t.Errorf("the mutation has the data %s and errors %v, want only an error that it was executed", got.Data, got.Errors)
	}
	if after := e.Execute(t.Context(), Request{Query: `{ customer(id: "cust_new") { name } }`}); string(after.Data) != `{"customer":{"name":"Ann"}}` || after.Mutation {
		t.Errorf("afterwards: %s, %v", after.Data, after.Errors)
	}
}
