package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A literal or a variable that its type does not allow is an error of the request, wherever it is:
// the response has the status 400 and no data, and the other mutations of the request are not
// executed.
func TestInvalidLiteralsPreventExecution(t *testing.T) {
	t.Parallel()
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	before := s.records(t)
	const order = `a: placeOrder(input: {customerId: "ann", items: [{sku: "mug", quantity: 1}]}) { order { id } userErrors { message } }`
	const product = `createProduct(input: {sku: "x", name: "x", category: "x", unitPrice: {amount: %s, currencyCode: %s}}) { product { sku } }`
	const hire = `hireEmployee(input: {name: "x", jobTitle: "x", hireDate: %s}) { employee { id } }`
	const level = `setInventoryLevel(input: {sku: "mug", warehouseId: "north", quantity: %s}) { __typename }`
	var documents []string
	for _, literal := range []string{"2147483648", "-2147483649", "345345345345", "99999999999999999999", "1.0", `"1"`, "true", "{}", "[[1]]", "ONE"} {
		documents = append(documents, fmt.Sprintf("mutation { %s %s }", order, fmt.Sprintf(level, literal)))
	}
	for _, literal := range []string{`"1.0.0"`, `"much"`, `"1,50"`, "true", `""`, "{}", `["1"]`, "1e400", "99999999999999999999", "null"} {
		documents = append(documents, fmt.Sprintf("mutation { %s %s }", order, fmt.Sprintf(product, literal, `"USD"`)))
	}
	for _, literal := range []string{`"QQQ"`, `"usd"`, `""`, "840", "true", "{}"} {
		documents = append(documents, fmt.Sprintf("mutation { %s %s }", order, fmt.Sprintf(product, `"1"`, literal)))
	}
	for _, literal := range []string{`"2023-02-29"`, `"today"`, "20260101", "{}", "null"} {
		documents = append(documents, fmt.Sprintf("mutation { %s %s }", order, fmt.Sprintf(hire, literal)))
	}
	documents = append(documents,
		// The argument of a field that is nested, excluded or in a fragment.
		`mutation { `+order+` b: confirmOrder(input: {orderId: "x"}) { order { items(first: 2147483648) { nodes { name } } } } }`,
		`mutation { `+order+` b: confirmOrder(input: {orderId: "x"}) { order { customer { orders(placed: {from: "now"}) { nodes { id } } } } } }`,
		`mutation { `+order+` b: confirmOrder(input: {orderId: "x", expectedVersion: 2147483648}) @skip(if: true) { __typename } }`,
		`mutation { `+order+` ...F } fragment F on Mutation { `+fmt.Sprintf(hire, `"x"`)+` }`,
		// A directive, and defaults of variables.
		`mutation { `+order+` b: confirmOrder(input: {orderId: "x"}) @include(if: {}) { __typename } }`,
		`mutation($v: Int = 2147483648) { `+order+` b: confirmOrder(input: {orderId: "x", expectedVersion: $v}) { __typename } }`,
		`mutation($v: [OrderLineInput!]! = [{sku: "mug", quantity: 2147483648}]) { `+order+` b: placeOrder(input: {customerId: "ann", items: $v}) { __typename } }`,
	)
	for _, document := range documents {
		expectRejected(t, s.api, document, "")
	}
	for variable, values := range map[string][]string{
		"Int":          {"2147483648", "1.5", `"1"`, "true", "{}", "[1]"},
		"Date":         {`"2023-02-29"`, "20260101", "true", "[]"},
		"Decimal":      {`"1.0.0"`, "true", "1e400", "{}"},
		"CurrencyCode": {`"QQQ"`, "840", "{}"},
	} {
		for _, value := range values {
			second := map[string]string{
				"Int": strings.Replace(level, "%s", "$v", 1), "Date": strings.Replace(hire, "%s", "$v", 1),
				"Decimal": fmt.Sprintf(product, "$v", `"USD"`), "CurrencyCode": fmt.Sprintf(product, `"1"`, "$v"),
			}[variable]
			expectRejected(t, s.api, fmt.Sprintf("mutation($v: %s!) { %s %s }", variable, order, second), `{"v": `+value+`}`)
		}
	}
	if diff := changes(before, s.records(t)); diff != "" {
		t.Errorf("invalid requests wrote\n%s", diff)
	}
}

// expectRejected checks that a request gets status 400, BAD_USER_INPUT and no data.
func expectRejected(t *testing.T, a api, document, variables string) {
	t.Helper()
	if variables == "" {
		variables = "null"
	}
	status, body := a.send(t, document, json.RawMessage(variables), "application/graphql-response+json")
	if text := string(body); status != http.StatusBadRequest || !strings.Contains(text, `"code":"BAD_USER_INPUT"`) || strings.Contains(text, `"data"`) {
		t.Errorf("%s with %s: status %d, %s", document, variables, status, text)
	}
}
