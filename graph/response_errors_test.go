package graph

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/explain"
)

// entityFlood returns a short request that looks up n entities under each of several aliases.
func entityFlood(aliases, n int, representation any) Request {
	representations := make([]any, n)
	for i := range representations {
		representations[i] = representation
	}
	return Request{Query: `query($r:[_Any!]!){` + repeatNumbered(aliases, "a%d:_entities(representations:$r){__typename}") + `}`, Variables: map[string]any{"r": representations}}
}

// A response has a limited number of errors. The last one contains the number of omitted errors.
func TestErrorsAreLimited(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{Cost: 1 << 30}})
	result := e.Execute(t.Context(), entityFlood(50, 1000, json.Number("0")))
	if len(result.Errors) != 101 {
		t.Fatalf("%d errors, want 100 and the closing one", len(result.Errors))
	}
	if last := result.Errors[100]; last.Extensions["code"] != document.LimitCodes.Errors || !strings.HasPrefix(last.Message, "49900 further errors") {
		t.Errorf("the last error is %v", last)
	}
	if size := encodedLength(result.Errors); size > 30_000 {
		t.Errorf("the errors have %d bytes", size)
	}
	e = executor(t, Options{Limits: document.Limits{Cost: 1 << 30, Errors: 3}})
	if result := e.Execute(t.Context(), entityFlood(1, 3, json.Number("0"))); len(result.Errors) != 3 || result.Errors[2].Extensions["code"] != errcode.BadUserInput {
		t.Errorf("%v, want three errors", result.Errors)
	}
}

// Data, errors and explain output together do not exceed the limit of the response.
// A slightly smaller limit rejects the response.
func TestErrorsCountAgainstTheResponse(t *testing.T) {
	t.Parallel()
	request := entityFlood(2, 10, json.Number("0"))
	size := 0
	for _, limit := range []int{1 << 20, 0, -1} {
		if limit < 1 {
			limit += size
		}
		e := executor(t, Options{Limits: document.Limits{Answer: limit}})
		result := e.Execute(WithExplain(t.Context()), request)
		tooLarge := len(result.Errors) == 1 && result.Errors[0].Extensions["code"] == document.LimitCodes.Answer
		if tooLarge != (limit < size) || (len(result.Data) > 0) == tooLarge {
			t.Errorf("with the limit %d: %s %v", limit, result.Data, result.Errors)
		}
		if size == 0 {
			size = len(result.Data)
			for _, err := range result.Errors {
				size += encodedLength(err)
			}
		}
	}
	// The explain output gets the bytes that remain.
	request = Request{Query: `{customers(first:100){nodes{orders(first:1){nodes{timeline(first:1){nodes{id}}}}}}}`}
	limit, all := 1<<20, 0
	for range 2 {
		e := executor(t, Options{Limits: document.Limits{Answer: limit}})
		result := e.Execute(WithExplain(t.Context()), request)
		output, ok := result.Extensions["explain"].(explain.Explanation)
		size := len(result.Data) + encodedLength(output.Requests)
		if !ok || len(result.Errors) > 0 || size > limit+len("[]") {
			t.Fatalf("with the limit %d, data and explain output have %d bytes: %v", limit, size, result.Errors)
		}
		if all == 0 {
			all, limit = output.Totals.Requests, size-100
		} else if len(output.Requests) != all-1 || output.Totals.Requests != all {
			t.Errorf("explain contains %d of %d requests, want all but one of %d", len(output.Requests), output.Totals.Requests, all)
		}
	}
}

// A caller without permissions gets one error for each operation, which names what is forbidden.
func TestOnePermissionErrorPerOperation(t *testing.T) {
	e := newAuthenticatedExecutor(t, Options{})
	anonymous := access.Principal{ID: "anonymous", Role: access.RoleAnonymous}
	many := `{` + repeatNumbered(20, "a%d:customers{nodes{id name}} ") + `orders{nodes{id}}}`
	product := map[string]any{"__typename": "Customer", "id": "cust_01"}
	for _, c := range []struct {
		principal access.Principal
		request   Request
		code      string
		message   string
		locations int
	}{
		{anonymous, Request{Query: many}, errcode.Unauthenticated, `may not use the fields "customers", "id", "name" and "orders": send a token`, errcode.MaxErrors},
		{anonymous, Request{Query: `{viewer{role} order(id:"x"){status}}`}, errcode.Unauthenticated, `use the fields "order" and "status": send a token`, 2},
		{anonymous, Request{Query: `mutation{a:confirmOrder(input:{orderId:"x"}){userErrors{code}} b:cancelOrder(input:{orderId:"x"}){userErrors{code}}}`}, errcode.Unauthenticated, `"confirmOrder"`, 2},
		{anonymous, Request{Query: `subscription{customerOrders(customerId:"x"){id order{id status}}}`}, errcode.Unauthenticated, `"customerOrders"`, 5},
		{anonymous, entityFlood(1, 100, product), errcode.Unauthenticated, `may not use the type "Customer"`, 0},
		{anonymous, entityFlood(3, 100, product), errcode.Unauthenticated, `may not use the type "Customer"`, 0},
		{ann, Request{Query: `{` + repeatNumbered(20, "a%d:employees{nodes{id}} ") + `}`}, errcode.Forbidden, `CUSTOMER may not use the field`, errcode.MaxErrors},
	} {
		_, result := e.Start(WithPrincipal(t.Context(), c.principal), c.request)
		if len(result.Errors) != 1 {
			t.Errorf("%.80s: %d errors: %.300s", c.request.Query, len(result.Errors), fmt.Sprint(result.Errors))
			continue
		}
		if err := result.Errors[0]; err.Extensions["code"] != c.code || !strings.Contains(err.Message, c.message) || len(err.Locations) != c.locations {
			t.Errorf("%.80s: %v at %v, want %s at %d locations", c.request.Query, err, err.Locations, c.message, c.locations)
		}
	}
}
