package hostile_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// depths are the nesting depths of the attacks.
var depths = []int{100, 1_000, 10_000, 100_000, 3_000_000}

// repeat concatenates one(0) to one(n-1).
func repeat(n int, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(text(i))
	}
	return b.String()
}

// nestedQuery returns a query that selects a customer's orders and their customer, nested several
// times.
func nestedQuery(times int, arguments string) string {
	return `{ customer(id: "cust_01") ` + strings.Repeat("{ orders"+arguments+" { nodes { customer ", times) + "{ id }" + strings.Repeat(" } } }", times) + " }"
}

// doublingFragments returns a query with n fragments. Each fragment spreads the next one twice.
func doublingFragments(n int, inner string) string {
	return "query { ...F0 } " + repeat(n, func(i int) string {
		return fmt.Sprintf("fragment F%d on Query { ...F%d ...F%d } ", i, i+1, i+1)
	}) + fmt.Sprintf("fragment F%d on Query { %s }", n, inner)
}

// invalidDocuments sends documents that are valid GraphQL or nearly valid.
func invalidDocuments(t *testing.T, binary string) {
	v := newVictim(t, binary)
	run := func(name string, a attack) {
		t.Run(name, func(t *testing.T) { v.check(t, a) })
	}
	for _, n := range depths {
		run(fmt.Sprintf("%d lists in an argument", n), attack{body: queryBody(`{ orders(statuses: `+strings.Repeat("[", n)+strings.Repeat("]", n)+`) { nodes { id } } }`, nil)})
		run(fmt.Sprintf("%d open lists", n), attack{body: queryBody(`{ orders(statuses: `+strings.Repeat("[", n), nil)})
		run(fmt.Sprintf("%d objects in an argument", n), attack{body: queryBody(`{ orders(placed: `+strings.Repeat("{from: ", n)+"1"+strings.Repeat("}", n)+`) { nodes { id } } }`, nil)})
		run(fmt.Sprintf("%d list types", n), attack{body: queryBody(`query ($v: `+strings.Repeat("[", n)+"Int"+strings.Repeat("]", n)+`) { orders(first: $v) { nodes { id } } }`, nil)})
		run(fmt.Sprintf("%d selections", n), attack{body: queryBody(strings.Repeat("{a", n)+strings.Repeat("}", n), nil)})
		run(fmt.Sprintf("%d open selections", n), attack{body: queryBody(strings.Repeat("{a", n), nil)})
		run(fmt.Sprintf("%d inline fragments", n), attack{body: queryBody("{ "+strings.Repeat("... {", n)+"__typename"+strings.Repeat("}", n)+" }", nil), maySucceed: n == 100})
		run(fmt.Sprintf("%d times round in a circle", n), attack{body: queryBody(nestedQuery(min(n, 50_000), ""), nil)})
		run(fmt.Sprintf("%d lists in a variable", n), attack{body: strings.NewReader(`{"query":"query ($v: [OrderStatus!]) { orders(statuses: $v) { nodes { id } } }","variables":{"v":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`)})
		run(fmt.Sprintf("%d objects in a variable", n), attack{body: strings.NewReader(`{"query":"query ($v: TimeRange) { orders(placed: $v) { nodes { id } } }","variables":{"v":` + strings.Repeat(`{"from":`, n) + "1" + strings.Repeat("}", n) + `}}`)})
		run(fmt.Sprintf("%d open lists as a body", n), attack{body: strings.NewReader(strings.Repeat("[", n)), wantCode: wantSizeCode(n)})
		run(fmt.Sprintf("%d representations in one another", n), attack{body: strings.NewReader(`{"query":"query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }","variables":{"r":[` + strings.Repeat(`{"__typename":"Order","id":`, n) + "1" + strings.Repeat("}", n) + `]}}`)})
	}
	run("a circle of large pages", attack{body: queryBody(nestedQuery(6, "(first: 100)"), nil)})
	run("a circle within the depth", attack{body: queryBody(nestedQuery(3, "(first: 100)"), nil), wantCode: "TOO_EXPENSIVE"})
	for _, n := range []int{200, 10_000} {
		run(fmt.Sprintf("%d aliases", n), attack{body: queryBody("{ "+repeat(n, func(i int) string { return fmt.Sprintf("a%d: __typename ", i) })+"}", nil)})
		run(fmt.Sprintf("%d aliased lists", n), attack{body: queryBody("{ "+repeat(n, func(i int) string { return fmt.Sprintf("a%d: orders(first: 100) { nodes { id } } ", i) })+"}", nil)})
		run(fmt.Sprintf("%d aliases below the root", n), attack{body: queryBody(`{ customer(id: "cust_01") { `+repeat(n, func(i int) string { return fmt.Sprintf("a%d: name ", i) })+"} }", nil)})
		run(fmt.Sprintf("%d mutations", n), attack{body: queryBody("mutation { "+repeat(n, func(i int) string {
			return fmt.Sprintf(`m%d: createWarehouse(input: {id: "w%d", name: "n"}) { userErrors { code } } `, i, i)
		})+"}", nil)})
		run(fmt.Sprintf("%d variables", n), attack{body: queryBody("query ("+repeat(n, func(i int) string { return fmt.Sprintf("$v%d: Int ", i) })+") { __typename }", nil)})
		run(fmt.Sprintf("%d unknown fields", n), attack{body: queryBody("{ "+repeat(n, func(i int) string { return fmt.Sprintf("field%d ", i) })+"}", nil)})
		run(fmt.Sprintf("%d unknown fields of input", n), attack{body: queryBody(`mutation { createWarehouse(input: {id: "w", name: "n" `+repeat(n, func(i int) string { return fmt.Sprintf("f%d: 1 ", i) })+"}) { userErrors { code } } }", nil)})
		run(fmt.Sprintf("%d unknown arguments", n), attack{body: queryBody("{ orders("+repeat(n, func(i int) string { return fmt.Sprintf("a%d: 1 ", i) })+") { nodes { id } } }", nil)})
		run(fmt.Sprintf("%d operations", n), attack{body: queryBody(repeat(n, func(i int) string { return fmt.Sprintf("query Q%d { __typename } ", i) }), nil)})
		run(fmt.Sprintf("%d unused fragments", n), attack{body: queryBody("{ __typename } "+repeat(n, func(i int) string { return fmt.Sprintf("fragment F%d on Query { __typename } ", i) }), nil)})
		run(fmt.Sprintf("%d spreads of what is not there", n), attack{body: queryBody("{ "+repeat(n, func(i int) string { return fmt.Sprintf("...F%d ", i) })+"}", nil)})
		for _, d := range []string{"@skip(if: false)", "@include(if: true)", "@nonsense", "@key(fields: \"id\")", "@defer"} {
			run(fmt.Sprintf("%d times %s", n, d), attack{body: queryBody("{ __typename "+strings.Repeat(d+" ", n)+"}", nil)})
			run(fmt.Sprintf("%d times %s on the query", n, d), attack{body: queryBody("query "+strings.Repeat(d+" ", n)+"{ __typename }", nil)})
		}
	}
	for _, n := range []int{900, 10_000} {
		run(fmt.Sprintf("%d equal fields", n), attack{body: queryBody("{ "+strings.Repeat("__typename ", n)+"}", nil), maySucceed: n < 1000})
		run(fmt.Sprintf("%d equal fields of a record", n), attack{body: queryBody(`{ customer(id: "cust_01") { `+strings.Repeat("name ", n)+"} }", nil), maySucceed: n < 1000})
		run(fmt.Sprintf("%d equal lists", n/4), attack{body: queryBody(`{ customer(id: "cust_01") { `+strings.Repeat("orders{nodes{id}} ", n/4)+"} }", nil), maySucceed: n < 1000})
		run(fmt.Sprintf("%d equal fields at odds", n), attack{body: queryBody(`{ customer(id: "cust_01") { `+repeat(n/2, func(i int) string { return []string{"a: name ", "a: email "}[i%2] })+"} }", nil)})
	}
	for _, n := range []int{5, 10, 30, 200} {
		run(fmt.Sprintf("fragments that double %d times", n), attack{body: queryBody(doublingFragments(n, "__typename"), nil), maySucceed: true})
		run(fmt.Sprintf("aliases that double %d times", n), attack{body: queryBody(doublingFragments(n, "a: __typename"), nil), maySucceed: true})
		run(fmt.Sprintf("lists that double %d times", n), attack{body: queryBody(doublingFragments(n, "orders { nodes { id } }"), nil), maySucceed: true})
		run(fmt.Sprintf("fields with fragments that double %d times", n), attack{body: queryBody(`{ customer(id: "cust_01") { ...F0 } } `+repeat(n, func(i int) string {
			return fmt.Sprintf("fragment F%d on Customer { a: orders { nodes { customer { ...F%d } } } b: orders { nodes { customer { ...F%d } } } } ", i, i+1, i+1)
		})+fmt.Sprintf("fragment F%d on Customer { name }", n), nil)})
	}
	for _, n := range []int{1, 2, 100} {
		cycle := repeat(n, func(i int) string {
			return fmt.Sprintf(`fragment F%d on Customer { orders { nodes { customer { ...F%d } } } } `, i, (i+1)%n)
		})
		run(fmt.Sprintf("a cycle of %d fragments", n), attack{body: queryBody(`{ customer(id: "cust_01") { ...F0 } } `+cycle, nil)})
		run(fmt.Sprintf("a cycle of %d fragments that nobody spreads", n), attack{body: queryBody("{ __typename } "+cycle, nil)})
		bare := repeat(n, func(i int) string { return fmt.Sprintf(`fragment F%d on Query { ...F%d } `, i, (i+1)%n) })
		run(fmt.Sprintf("a cycle of %d bare fragments", n), attack{body: queryBody("{ ...F0 } "+bare, nil)})
	}
	for _, n := range []int{4, 10, 100, 400} {
		run(fmt.Sprintf("introspection %d deep", n), attack{body: queryBody("{ __schema { types { "+strings.Repeat("fields { type { ", n)+"name"+strings.Repeat(" } }", n)+" } } }", nil)})
		run(fmt.Sprintf("introspection %d deep by name", n), attack{body: queryBody(`{ __type(name: "Query") { `+strings.Repeat("fields { type { ", n)+"name"+strings.Repeat(" } }", n)+" } }", nil)})
		run(fmt.Sprintf("introspection %d deep in fragments", n), attack{body: queryBody("{ __schema { types { ...T0 } } } "+repeat(n, func(i int) string {
			return fmt.Sprintf("fragment T%d on __Type { fields { type { ...T%d } } } ", i, i+1)
		})+fmt.Sprintf("fragment T%d on __Type { name }", n), nil)})
		run(fmt.Sprintf("introspection %d wide", n), attack{body: queryBody("{ "+repeat(n, func(i int) string { return fmt.Sprintf("s%d: __schema { types { name fields { name } } } ", i) })+"}", nil), maySucceed: n <= 10})
		run(fmt.Sprintf("ofType %d deep", n), attack{body: queryBody(`{ __type(name: "Query") { `+strings.Repeat("ofType { ", n)+"name"+strings.Repeat(" }", n)+" } }", nil), maySucceed: n <= 10})
	}
	for _, size := range []int{60_000, 120_000} {
		run(fmt.Sprintf("a name of %d bytes", size), attack{body: queryBody("{ "+strings.Repeat("a", size)+" }", nil)})
		run(fmt.Sprintf("an alias of %d bytes", size), attack{body: queryBody("{ "+strings.Repeat("a", size)+": __typename }", nil), maySucceed: true})
		run(fmt.Sprintf("a text of %d bytes", size), attack{body: queryBody(`{ products(category: "`+strings.Repeat("a", size)+`") { nodes { sku } } }`, nil), maySucceed: true})
		run(fmt.Sprintf("a number of %d digits", size), attack{body: queryBody(`{ orders(first: `+strings.Repeat("1", size)+`) { nodes { id } } }`, nil)})
		run(fmt.Sprintf("a number of %d digits in a variable", size), attack{body: strings.NewReader(`{"query":"query ($n: Int) { orders(first: $n) { nodes { id } } }","variables":{"n":` + strings.Repeat("1", size) + `}}`)})
		run(fmt.Sprintf("an exponent of %d digits", size), attack{body: strings.NewReader(`{"query":"query ($n: Int) { orders(first: $n) { nodes { id } } }","variables":{"n":1e` + strings.Repeat("9", size) + `}}`)})
		run(fmt.Sprintf("an amount of %d digits", size), attack{body: queryBody(`mutation { createProduct(input: {sku: "s", name: "n", category: "c", unitPrice: {amount: "`+strings.Repeat("9", size)+`"}}) { userErrors { code } } }`, nil), maySucceed: true})
		run(fmt.Sprintf("an exponent of %d digits in an amount", size), attack{body: queryBody(`mutation { createProduct(input: {sku: "s", name: "n", category: "c", unitPrice: {amount: "1e`+strings.Repeat("9", size)+`"}}) { userErrors { code } } }`, nil), maySucceed: true})
		run(fmt.Sprintf("a comment of %d bytes", size), attack{body: queryBody("{ __typename } #"+strings.Repeat("x", size), nil), maySucceed: true})
		run(fmt.Sprintf("%d commas", size), attack{body: queryBody("{ __typename "+strings.Repeat(",", size)+"}", nil), maySucceed: true})
		run(fmt.Sprintf("%d empty comments", size/2), attack{body: queryBody("{ __typename "+strings.Repeat("#\n", size/2)+"}", nil)})
		run(fmt.Sprintf("a block string of %d lines", size/2), attack{body: queryBody(`{ products(category: """`+strings.Repeat(" \n", size/2)+`""") { nodes { sku } } }`, nil), maySucceed: true})
		run(fmt.Sprintf("a cursor of %d bytes", size), attack{body: queryBody(`{ orders(after: "`+strings.Repeat("A", size)+`") { nodes { id } } }`, nil)})
		run(fmt.Sprintf("%d statuses", size/10), attack{body: queryBody(`query ($s: [OrderStatus!]) { orders(statuses: $s, first: 1) { nodes { id } } }`, map[string]any{"s": strings.Split(strings.Repeat("SHIPPED ", size/11)+"SHIPPED", " ")}), maySucceed: true})
		run(fmt.Sprintf("%d unknown variables", size/10), attack{body: strings.NewReader(`{"query":"{ __typename }","variables":{` + repeat(size/12, func(i int) string { return fmt.Sprintf("\"v%d\":1,", i) }) + `"v":1}}`), maySucceed: true})
	}
	run("10,000 representations", attack{body: strings.NewReader(`{"query":"query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }","variables":{"r":[` + strings.Repeat("{},", 9_999) + `{}]}}`)})
	run("3,000 orders by reference", attack{body: strings.NewReader(`{"query":"query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }","variables":{"r":[` + strings.Repeat(`{"__typename":"Order","id":"x"},`, 2_999) + `{}]}}`)})
	long := repeat(95, func(i int) string { return fmt.Sprintf("%0*d: name ", 199, i) })
	long = strings.ReplaceAll(long, "0000", "aaaa")
	run("the longest answer", attack{body: strings.NewReader(`{"query":"query ($r: [_Any!]!) { _entities(representations: $r) { ... on Customer { ` + long + `} } }","variables":{"r":[` +
		strings.Repeat(`{"__typename":"Customer","id":"cust_01"},`, 999) + `{"__typename":"Customer","id":"cust_01"}]}}`), wantCode: "ANSWER_TOO_LARGE"})
	run("10,000 lines of an order", attack{body: strings.NewReader(`{"query":"mutation ($i: PlaceOrderInput!) { placeOrder(input: $i) { userErrors { code } } }","variables":{"i":{"customerId":"cust_01","items":[` + strings.Repeat(`{},`, 9_999) + `{}]}}}`)})
}

func wantSizeCode(n int) string {
	if n >= 10_000 { // more than 10,000 values or 128 KiB
		return "BODY_TOO_LARGE"
	}
	return "BAD_REQUEST"
}

// floodOfPersistedQueries registers many documents. They must not exhaust the server's memory.
func floodOfPersistedQueries(t *testing.T, binary string) {
	longtest.Skip(t)
	v := newVictim(t, binary)
	for i := range 2_000 { // together larger than the allowed growth
		text := fmt.Sprintf("{ a%d: __typename } #%s", i, strings.Repeat("x", 100_000))
		body, err := json.Marshal(map[string]any{"query": text, "extensions": map[string]any{
			"persistedQuery": map[string]any{"version": 1, "sha256Hash": fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}}})
		if err != nil {
			t.Fatal(err)
		}
		response, err := v.client.Post(v.URL, "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("document %d: status %d", i, response.StatusCode)
		}
	}
	v.checkHealthy(t)
}
