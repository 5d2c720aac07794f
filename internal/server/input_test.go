package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/introspection"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// An invalid argument gets BAD_USER_INPUT and a message that names the argument. Nothing is read,
// and nothing is logged as an error.
func TestBadInput(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	var foreignCursor struct {
		Customers struct{ PageInfo struct{ EndCursor string } }
	}
	api.read(t, &foreignCursor, `{ customers(first: 1) { pageInfo { endCursor } } }`)
	cursor := foreignCursor.Customers.PageInfo.EndCursor
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct{ name, query, argument string }{
		{"first 0", `{ customers(first: 0) { nodes { id } } }`, "first"},
		{"first 101", `{ customers(first: 101) { nodes { id } } }`, "first"},
		{"first negative", `{ customers(first: -1) { nodes { id } } }`, "first"},
		{"first too large for Int", `{ customers(first: 3000000000) { nodes { id } } }`, "first"},
		{"last 101", `{ customers(last: 101) { nodes { id } } }`, "last"},
		{"first with last", `{ customers(first: 1, last: 1) { nodes { id } } }`, "last"},
		{"nested first", `{ customer(id: "cust_01") { orders(first: 101) { nodes { id } } } }`, "first"},
		{"items' first", `{ order(id: "01HVMK3P2Q0000000000000001") { items(first: 0) { nodes { name } } } }`, "first"},
		{"timeline's last", `{ order(id: "01HVMK3P2Q0000000000000001") { timeline(last: 0) { nodes { id } } } }`, "last"},
		{"inventory's first", `{ product(sku: "prod_100") { inventory(first: 1000) { nodes { quantity } } } }`, "first"},
		{"101 SKUs", `{ productsBySku(skus: [` + strings.Repeat(`"prod_100" `, 101) + `]) { name } }`, "skus"},
		{"101 order ids", `{ ordersById(ids: [` + strings.Repeat(`"x" `, 101) + `]) { id } }`, "ids"},
		{"malformed cursor", `{ customers(after: "hello") { nodes { id } } }`, "after"},
		{"malformed cursor backwards", `{ customers(before: "") { nodes { id } } }`, "before"},
		{"cursor of 10,000 characters", `{ customers(after: "` + long + `") { nodes { id } } }`, "after"},
		{"another list's cursor", `{ employees(after: "` + cursor + `") { nodes { id } } }`, "after"},
		{"a cursor of other arguments", `{ orders(statuses: [PENDING], after: "` + cursor + `") { nodes { id } } }`, "after"},
		{"from after to", `{ orders(placed: {from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z"}) { nodes { id } } }`, "placed"},
		{"nested from after to", `{ customer(id: "cust_01") { orders(placed: {from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z"}) { nodes { id } } } }`, "placed"},
		{"hired backwards", `{ employees(hired: {from: "2026-01-02", to: "2026-01-01"}) { nodes { id } } }`, "hired"},
		{"no time", `{ orders(placed: {from: "yesterday"}) { nodes { id } } }`, "from"},
		{"no day", `{ employees(hired: {to: "2026-02-30"}) { nodes { id } } }`, "to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := api.ask(t, c.query, nil)
			if got.Status >= 500 {
				t.Errorf("status %d", got.Status)
			}
			if len(got.Errors) != 1 {
				t.Fatalf("errors are %+v, want one", got.Errors)
			}
			e := got.Errors[0]
			if e.Extensions["code"] != "BAD_USER_INPUT" || !strings.Contains(e.Message, fmt.Sprintf("%q", c.argument)) {
				t.Errorf("error is %q, code %v; want BAD_USER_INPUT and the name %q", e.Message, e.Extensions["code"], c.argument)
			}
			if len(e.Message) > 300 {
				t.Errorf("the message has %d bytes: it repeats too much of the input", len(e.Message))
			}
			for _, r := range got.Extensions.Explain.Requests {
				if !strings.HasPrefix(r.Path, "customer") && !strings.HasPrefix(r.Path, "order") && !strings.HasPrefix(r.Path, "product") {
					t.Errorf("%s was read for it", r.Key)
				}
			}
		})
	}
}

// A look-up by a value that no record can have returns nothing, as for an unknown value, and does
// not read it.
func TestLookupsByImpossibleValues(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct {
		name, query, want string
		// requests is the number of requests that read the parent of the look-up.
		requests int
	}{
		{"empty id", `{ customer(id: "") { name } }`, `{"customer":null}`, 0},
		{"id with #", `{ customer(id: "a#METADATA") { name } }`, `{"customer":null}`, 0},
		{"id of 10,000 characters", `{ customer(id: "` + long + `") { name } }`, `{"customer":null}`, 0},
		{"id with NUL", `{ customer(id: "a\u0000b") { name } }`, `{"customer":null}`, 0},
		{"id with a space", `{ product(sku: "a b") { name } }`, `{"product":null}`, 0},
		{"employee id", `{ employee(id: "é") { name } }`, `{"employee":null}`, 0},
		{"warehouse id", `{ warehouse(id: "/") { name } }`, `{"warehouse":null}`, 0},
		{"second id of two", `{ inventoryLevel(sku: "prod_100", warehouseId: "#") { quantity } }`, `{"inventoryLevel":null}`, 0},
		{"order item's product", `{ orderItem(orderId: "01HVMK3P2Q0000000000000001", productId: "") { name } }`, `{"orderItem":null}`, 0},
		{"order item's order", `{ orderItem(orderId: "x", productId: "prod_def") { name } }`, `{"orderItem":null}`, 0},
		{"ULID with U", `{ order(id: "01HVMK3P2Q000000000000000U") { id } }`, `{"order":null}`, 0},
		{"ULID too large", `{ order(id: "81HVMK3P2Q0000000000000001") { id } }`, `{"order":null}`, 0},
		{"ULID too short", `{ order(id: "01HVMK3P2Q000000000000000") { id } }`, `{"order":null}`, 0},
		{"nested ULID", `{ customer(id: "cust_01") { order(id: "nope") { id } } }`, `{"customer":{"order":null}}`, 1},
		{"nested SKU", `{ order(id: "01HVMK3P2Q0000000000000001") { item(productId: "#") { name } } }`, `{"order":{"item":null}}`, 1},
		{"no e-mail address", `{ customerByEmail(email: "alice") { id } }`, `{"customerByEmail":null}`, 0},
		{"e-mail address with #", `{ customerByEmail(email: "a#b@example.com") { id } }`, `{"customerByEmail":null}`, 0},
		{"no statuses", `{ orders(statuses: [], placed: {from: "2026-01-01T00:00:00Z"}) { nodes { id } } }`, `{"orders":{"nodes":[]}}`, 0},
		{"name with #", `{ employeesByName(name: "a#b") { nodes { id } } }`, `{"employeesByName":{"nodes":[]}}`, 0},
		{"empty job title", `{ employeesByJobTitle(jobTitle: "") { nodes { id } } }`, `{"employeesByJobTitle":{"nodes":[]}}`, 0},
		{"category of 10,000 characters", `{ products(category: "` + long + `") { nodes { sku } } }`, `{"products":{"nodes":[]}}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := api.ask(t, c.query, nil)
			if len(got.Errors) > 0 || string(got.Data) != c.want {
				t.Errorf("the answer is %s, errors %+v; want %s", got.Data, got.Errors, c.want)
			}
			if n := len(got.Extensions.Explain.Requests); n != c.requests {
				t.Errorf("%d requests were made, want %d", n, c.requests)
			}
		})
	}
}

// Errors in variables have the same messages as errors in literals.
func TestBadVariables(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	for query, variables := range map[string]string{
		`query($s: OrderStatus!) { ordersByStatus(status: $s) { nodes { id } } }`: `{"s": "NOPE"}`,
		`query($p: TimeRange) { orders(placed: $p) { nodes { id } } }`:            `{"p": {"from": 5}}`,
		`query($n: Int) { orders(first: $n) { nodes { id } } }`:                   `{"n": 99999999999}`,
		`query($id: ID!) { customer(id: $id) { name } }`:                          `{}`,
		`query($c: String) { customers(after: $c) { nodes { id } } }`:             `{"c": "\u0000"}`,
		`query($d: DateRange) { employees(hired: $d) { nodes { id } } }`:          `{"d": {"since": "2026-01-01"}}`,
	} {
		got := api.ask(t, query, json.RawMessage(variables))
		if got.Status >= 500 || len(got.Errors) == 0 || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" {
			t.Errorf("%s with %s: status %d, errors %+v", query, variables, got.Status, got.Errors)
		}
	}
}

// An enum value in another case is rejected. If it were ignored, the filter would be missing and
// the list would contain other records.
func TestEnumVariablesAreReadStrictly(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	for query, variables := range map[string]string{
		`query($s: [OrderStatus!]) { orders(statuses: $s) { nodes { id } } }`:                         `{"s": ["pending"]}`,
		`query($s: [OrderStatus!]) { orders(statuses: $s) { nodes { status } } }`:                     `{"s": "Pending"}`,
		`query($s: [OrderStatus!]!) { orders(statuses: $s) { nodes { id } } }`:                        `{"s": ["PENDING", "delivered"]}`,
		`query($s: OrderStatus!) { orders(statuses: [$s]) { nodes { id } } }`:                         `{"s": "pending"}`,
		`query($s: OrderStatus!) { ordersByStatus(status: $s) { nodes { id } } }`:                     `{"s": "pending"}`,
		`query($s: OrderStatus!, $n: Int) { ordersByStatus(status: $s, first: $n) { nodes { id } } }`: `{"s": "", "n": 1}`,
	} {
		got := api.ask(t, query, json.RawMessage(variables))
		if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" || !strings.Contains(got.Errors[0].Message, `"s"`) {
			t.Errorf("%s with %s: data %s, errors %+v", query, variables, got.Data, got.Errors)
		}
	}
	got := api.ask(t, `query($s: [OrderStatus!]) { orders(statuses: $s) { nodes { id } } }`, json.RawMessage(`{"s": "SHIPPED"}`))
	if want := `{"orders":{"nodes":[{"id":"01KNVV2HR00000000000000101"}]}}`; string(got.Data) != want {
		t.Errorf("a single value for a list argument returns %s %+v, want %s", got.Data, got.Errors, want)
	}
}

// A circular query, whose response grows by a page per level, is rejected before its execution. A
// large query is accepted.
func TestQueriesOverTheLimits(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	circle := `id`
	for range 4 {
		circle = `orders(first: 100) { nodes { customer { ` + circle + ` } } }`
	}
	schema := `name`
	for range 100 {
		schema = `fields { type { ` + schema + ` } }`
	}
	doubled := `query { customer(id: "c1") { ...F0 } }`
	for i := range 30 {
		doubled += fmt.Sprintf(" fragment F%d on Customer { a%d: orders { nodes { customer { ...F%d } } } b%d: orders { nodes { customer { ...F%d } } } }", i, i, i+1, i, i+1)
	}
	doubled += " fragment F30 on Customer { id }"
	for query, code := range map[string]string{
		`{ customer(id: "cust_001") { ` + circle + ` } }`: "TOO_EXPENSIVE",
		doubled: "TOO_DEEP",
		`{ __schema { types { ` + schema + ` } } }`: "INTROSPECTION_TOO_DEEP",
		`{ customers(last: 100) { edges { node { orders(first: 100) { edges { node { items(first: 100) { edges { node { name } } } } } } } } } }`: "TOO_EXPENSIVE",
	} {
		got := api.ask(t, query, nil)
		if len(got.Errors) == 0 || got.Errors[0].Extensions["code"] != code {
			t.Errorf("%.100s: status %d, errors %+v, want %s", query, got.Status, got.Errors, code)
		}
	}
	for _, query := range []string{
		introspection.Query,
		`{ customers(first: 100) { nodes { orders { nodes { items(first: 10) { nodes { product { name } } } } } } } }`,
		`query($n: Int) { customers(first: $n) { nodes { orders(first: $n) { nodes { items(first: $n) { nodes { name } } } } } } }`,
	} {
		if got := api.ask(t, query, json.RawMessage(`{"n": 30}`)); len(got.Errors) > 0 {
			t.Errorf("%s is refused: %+v", query, got.Errors)
		}
	}
}

// A malformed request is rejected with a message that does not repeat it.
func TestMalformedRequests(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	for body, want := range map[string]struct{ says, code string }{
		`[{"query": "{ secret }"}]`:                          {"JSON object", "BAD_REQUEST"},
		`{"query": "{ secret`:                                {"valid JSON", "BAD_REQUEST"},
		`{"query": "query A { secret } query B { secret }"}`: {"secret", "BAD_USER_INPUT"}, // the validator names the field
		`{"query": "query A { customers { nodes { id } } } query B { customers { nodes { id } } }"}`: {"operationName", "BAD_USER_INPUT"},
		`{"query": "query A { customers { nodes { id } } }", "operationName": "B"}`:                  {`no operation with the name "B": set operationName to the name of one of its operations, such as "A"`, "BAD_USER_INPUT"},
	} {
		response, err := http.Post(api.url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var got answer
		err = json.NewDecoder(response.Body).Decode(&got)
		_ = response.Body.Close()
		if err != nil || response.StatusCode >= 500 || len(got.Errors) == 0 || !strings.Contains(got.Errors[0].Message, want.says) || got.Errors[0].Extensions["code"] != want.code {
			t.Errorf("%s: status %d, %v, errors %+v", body, response.StatusCode, err, got.Errors)
		}
		if want.code == "BAD_REQUEST" && strings.Contains(got.Errors[0].Message, "secret") {
			t.Errorf("%s is repeated: %s", body, got.Errors[0].Message)
		}
	}
}

// A null bound of a range means that the range is open.
func TestNullEndsOfRanges(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	for query, variables := range map[string]string{
		`{ list: orders(placed: {from: null, to: "2024-04-17T00:00:00Z"}) { nodes { id } } }`:                                        `{}`,
		`query($f: DateTime) { list: orders(placed: {from: $f, to: "2024-04-17T00:00:00Z"}) { nodes { id } } }`:                      `{"f": null}`,
		`query($p: TimeRange) { list: orders(placed: $p, last: 1) { nodes { id } } }`:                                                `{"p": null}`,
		`query($p: TimeRange) { list: orders(placed: $p) { nodes { id } } }`:                                                         `{"p": {"from": null, "to": "2024-04-17T00:00:00Z"}}`,
		`{ list: orders(first: 1, last: null, after: null, statuses: null, placed: {to: "2024-04-17T00:00:00Z"}) { nodes { id } } }`: `{}`,
	} {
		got := api.ask(t, query, json.RawMessage(variables))
		if want := `{"list":{"nodes":[{"id":"01HVMK3P2Q0000000000000001"}]}}`; string(got.Data) != want {
			t.Errorf("%s with %s returns %s %+v, want %s", query, variables, got.Data, got.Errors, want)
		}
	}
	got := api.ask(t, `{ employees(hired: {from: "2025-12-01", to: null}) { nodes { id } } }`, nil)
	if want := `{"employees":{"nodes":[{"id":"emp_005"}]}}`; string(got.Data) != want {
		t.Errorf("a range without an end returns %s %+v, want %s", got.Data, got.Errors, want)
	}
	got = api.ask(t, `{ orders(placed: {to: "0001-01-01T00:00:00Z"}) { nodes { id } } }`, nil)
	if want := `{"orders":{"nodes":[]}}`; string(got.Data) != want {
		t.Errorf("a range that ends with the first year returns %s %+v, want %s", got.Data, got.Errors, want)
	}
}

// A null variable for a required value is rejected before anything is read.
func TestNullVariablesInThePlaceOfValues(t *testing.T) {
	store := storetest.SampleStore(t, storetest.Engines()[0].Client(t))
	api := serve(t, store)
	for query, variables := range map[string]string{
		`query($b: Boolean = true) { customer(id: "cust_01") { name @skip(if: $b) } }`:                            `{"b": null}`,
		`query($b: Boolean = true) { ...F @include(if: $b) } fragment F on Query { customer(id: "c1") { name } }`: `{"b": null}`,
		`query($id: ID = "cust_01") { customer(id: $id) { name } }`:                                               `{"id": null}`,
		`query($id: ID = "cust_01") { ...F } fragment F on Query { customer(id: $id) { name } }`:                  `{"id": null}`,
		`query($s: OrderStatus = PENDING) { ordersByStatus(status: $s) { nodes { ... on Order { id } } } }`:       `{"s": null}`,
	} {
		got := api.ask(t, query, json.RawMessage(variables))
		if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" || !strings.Contains(got.Errors[0].Message, "null") {
			t.Errorf("%s with %s: status %d, errors %+v", query, variables, got.Status, got.Errors)
		}
		if n := got.Extensions.Explain.Totals.Requests; n != 0 {
			t.Errorf("%s with %s made %d requests", query, variables, n)
		}
	}
	// Null is accepted for optional values.
	got := api.ask(t, `query($n: Int = 5) { customers(first: $n) { nodes { id } } }`, json.RawMessage(`{"n": null}`))
	if len(got.Errors) > 0 {
		t.Errorf("a null page size is refused: %+v", got.Errors)
	}
}

// For any text as an ID, a name or a cursor, the result is a record, null or BAD_USER_INPUT.
func TestNoTextBreaksTheServer(t *testing.T) {
	api := serve(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)))
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[#A-Z0-9a-z._-]{0,30}`)).Draw(rt, "text")
		variables, err := json.Marshal(map[string]string{"t": text})
		if err != nil {
			rt.Fatal(err)
		}
		got := api.ask(t, `query($t: String!, $i: ID!) {
			a: customer(id: $i) { name } b: order(id: $i) { id } c: product(sku: $i) { name inventory { nodes { quantity } } }
			d: customerByEmail(email: $t) { id } e: inventoryLevel(sku: $i, warehouseId: $i) { quantity } }`,
			json.RawMessage(strings.TrimSuffix(string(variables), "}")+`,"i":`+strings.TrimPrefix(string(variables), `{"t":`)))
		for _, e := range got.Errors {
			if got.Status >= 500 || e.Extensions["code"] != "BAD_USER_INPUT" {
				rt.Fatalf("%q: status %d, %+v", text, got.Status, e)
			}
		}
	})
}

// cursorList is a page with cursors.
type cursorList struct {
	Edges []struct {
		Cursor string
		Node   struct{ ID string }
	}
	Nodes    []struct{ ID string }
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       *string
	}
}

// Relay-style paging returns each record once and in order, in both directions and with any page
// size. By default few sizes are tested.
func TestWalkingConnections(t *testing.T) {
	t.Parallel()
	store := storetest.NewTable(t, storetest.Engines()[0].Client(t), dynamo.Options{Shards: 2})
	dataset := generateDataset(t, datasetOptions{customers: 7, orders: 19, items: 5, products: 9, status: func(n int) commerce.Status { return commerce.Statuses()[n%4] }})
	storetest.LoadDataset(t, store, dataset)
	api := serve(t, store)
	const of = `{ %s { edges { cursor node { id%s } } nodes { id%s } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`
	for name, list := range map[string]struct{ field, id string }{
		"orders":         {`orders(%s)`, ``},
		"of a status":    {`ordersByStatus(status: CONFIRMED, %s)`, ``},
		"customers":      {`customers(%s)`, ``},
		"items":          {`order(id: "` + string(orderID(3)) + `") { items(%s)`, `: productId`},
		"product orders": {`product(sku: "product-003") { orderItems(%s)`, `: orderId`},
		"products":       {`products(category: "Things", %s)`, `: sku`},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(arguments string) cursorList {
				query := fmt.Sprintf(of, fmt.Sprintf(list.field, arguments), list.id, list.id)
				query += strings.Repeat(" }", strings.Count(list.field, "{"))
				var data map[string]json.RawMessage
				api.read(t, &data, "%s", query)
				return findPage(t, data)
			}
			all := read(`first: 100`)
			if len(all.Edges) == 0 || all.PageInfo.HasNextPage || all.PageInfo.HasPreviousPage {
				t.Fatalf("the list in one page is %+v, want all records and no other pages", all)
			}
			var want []string
			for _, e := range all.Edges {
				want = append(want, e.Node.ID)
			}
			for _, size := range longtest.Size([]int{5, len(want)}, []int{1, 2, 5, len(want), len(want) + 1}) {
				forwards, backwards := walk(t, size, true, read), walk(t, size, false, read)
				if !slices.Equal(forwards, want) || !slices.Equal(backwards, want) {
					t.Errorf("pages of %d contain %v forwards and %v backwards, want %v", size, forwards, backwards, want)
				}
			}
			// before without a size returns the preceding page.
			if n := len(want); n >= 3 && n <= 20 {
				before := read(fmt.Sprintf(`before: %q`, all.Edges[n-1].Cursor))
				if len(before.Nodes) != n-1 || before.Nodes[n-2].ID != want[n-2] || before.PageInfo.HasPreviousPage || !before.PageInfo.HasNextPage {
					t.Errorf("the page before the last record is %+v", before)
				}
			}
			// after and before together return the records between two cursors.
			if n := len(want); n >= 4 {
				between := read(fmt.Sprintf(`after: %q, before: %q`, all.Edges[0].Cursor, all.Edges[n-1].Cursor))
				if len(between.Nodes) != min(n-2, 20) || between.Nodes[0].ID != want[1] {
					t.Errorf("the page between the first and the last record is %+v", between.Nodes)
				}
			}
		})
	}
}

// findPage returns the page that a response contains at any depth.
func findPage(t *testing.T, data map[string]json.RawMessage) cursorList {
	t.Helper()
	for _, raw := range data {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(raw, &inner); err != nil {
			t.Fatal(err)
		}
		if _, ok := inner["edges"]; !ok {
			return findPage(t, inner)
		}
		var p cursorList
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Fatal("the response contains no page")
	return cursorList{}
}

// walk reads a list in pages of one size, from the start or from the end.
func walk(t *testing.T, size int, forwards bool, read func(arguments string) cursorList) []string {
	t.Helper()
	var ids []string
	arguments := map[bool]string{true: fmt.Sprintf("first: %d", size), false: fmt.Sprintf("last: %d", size)}[forwards]
	for from := ""; ; {
		p := read(arguments + from)
		more := map[bool]bool{true: p.PageInfo.HasNextPage, false: p.PageInfo.HasPreviousPage}[forwards]
		if len(p.Edges) != len(p.Nodes) || more && len(p.Nodes) != size {
			t.Fatalf("a page of size %d has %d edges and %d nodes, with more pages: %v", size, len(p.Edges), len(p.Nodes), more)
		}
		var page []string
		for i, n := range p.Nodes {
			if p.Edges[i].Node.ID != n.ID {
				t.Fatalf("edge %d is %s, node %s", i, p.Edges[i].Node.ID, n.ID)
			}
			page = append(page, n.ID)
		}
		if forwards {
			ids = append(ids, page...)
		} else {
			ids = append(page, ids...)
		}
		if !more {
			return ids
		}
		if forwards {
			from = fmt.Sprintf(", after: %q", *p.PageInfo.EndCursor)
		} else {
			from = fmt.Sprintf(", before: %q", *p.PageInfo.StartCursor)
		}
	}
}
