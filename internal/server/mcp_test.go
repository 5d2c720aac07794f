package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// toolDocuments returns documents of all kinds, including some that are not tools.
func toolDocuments() []document.TrustedDocument {
	documents := []document.TrustedDocument{
		{ID: "place", Text: "# Places an order.\n# The prices are the current ones\nmutation Place($input: PlaceOrderInput!) { placed: placeOrder(input: $input) { order { id } failures: userErrors { code message } } }"},
		{ID: "restock", Text: `mutation Restock($sku: ID!, $delta: Int!, $key: String) { adjustInventory(input: {sku: $sku, warehouseId: "north", delta: $delta, idempotencyKey: $key}) { inventoryLevel { quantity } userErrors { code } } }`},
		{ID: "fixed", Text: `mutation Fixed { createWarehouse(input: {name: "East", idempotencyKey: "east"}) { warehouse { id } userErrors { code } } }`},
		{ID: "careless", Text: `mutation Careless { createWarehouse(input: {name: "West"}) { warehouse { id } userErrors { code } } }`},
		{ID: "rename", Text: `mutation Rename($sku: ID!, $name: String) { updateProduct(input: {sku: $sku, name: $name}) { product { name } ...U } } fragment U on UpdateProductPayload { userErrors { code message } }`},
		{ID: "find", Text: `"""Finds orders.""" query Find("Statuses to find." $statuses: [OrderStatus!], $placed: TimeRange, $size: Int = 2, $long: Boolean = false) { orders(statuses: $statuses, placed: $placed, first: $size) { nodes { id status note: timeline(first: 1) @include(if: $long) { nodes { type } } } } }`},
		{ID: "some", Text: `query Some($ids: [ID!]!) { ordersById(ids: $ids) { id } }`},
		{ID: "sales", Text: `query Sales($placed: DateRange!) { sales(placed: $placed, currency: "USD") { day } }`},
		{ID: "quote", Text: `query Quote($input: QuoteInput!) { quote(input: $input) { total { amount } userErrors { code } } }`},
		{ID: "viewer/1", Name: "who am i?", Text: `{ viewer { role } }`},
		{ID: "v1", Text: `query Catalog { products { nodes { sku } } }`},
		{ID: "v2", Text: `query Catalog { products { nodes { sku name } } }`},
		{ID: "both", Text: `query First { products(first: 1) { nodes { sku } } } query Second { products(first: 2) { nodes { sku } } }`},
		{ID: "alike", Text: `query ` + strings.Repeat("Alike", 20) + `1 { viewer { role } } query ` + strings.Repeat("Alike", 20) + `2 { viewer { role } }`},
		{ID: "follow", Text: `subscription Follow { orderStatusChanged { id } }`},
	}
	return append(documents, document.TrustedDocument{ID: "long", Text: "query " + strings.Repeat("Long", 20) + " { products(first: 1) { nodes { sku } } }"})
}

// connectMCP connects an MCP client to a server. header has names and values in turn.
func connectMCP(t testing.TB, url string, header ...string) *mcp.ClientSession {
	t.Helper()
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + server.PathMCP, HTTPClient: client}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// callTool calls a tool, and returns the GraphQL response. It fails t if the text is not the same as
// the structured content, or if the result is an error and failed is false, or the reverse.
func callTool(t testing.TB, session *mcp.ClientSession, name string, arguments map[string]any, failed bool) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var fromText any
	text := result.Content[0].(*mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &fromText); err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(fromText), fmt.Sprint(result.StructuredContent); a != b || result.IsError != failed {
		t.Errorf("%s: isError is %t, the text is %s, the structured content is %s", name, result.IsError, a, b)
	}
	return text
}

// serveTools serves a store with toolDocuments.
func serveTools(t testing.TB, s *fixture, opts server.Options) string {
	t.Helper()
	opts.Graph.Store, opts.Graph.Cursors, opts.Graph.Documents = s.store, paging.NewCursorSigner([]byte("a key for tests")), toolDocuments()
	opts.Log = slog.New(slog.NewTextHandler(failOnWrite{t}, nil))
	h, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func listTools(t testing.TB, session *mcp.ClientSession) (tools []*mcp.Tool) {
	t.Helper()
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	return tools
}

func toolNames(tools []*mcp.Tool) (names []string) {
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestGoldenMCPTools(t *testing.T) {
	s := newFixture(t, embedded.New().Client(), smallDataset(t))
	text, err := json.MarshalIndent(listTools(t, connectMCP(t, serveTools(t, s, server.Options{}))), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckFile(t, "testdata/mcp-tools.golden", string(text)+"\n")
}

// Without trusted documents, the tools are a few queries, which are valid and have descriptions.
func TestGoldenMCPToolsWithoutDocuments(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	srv := httptest.NewServer(h)
	defer srv.Close()
	session := connectMCP(t, srv.URL)
	tools := listTools(t, session)
	if names := toolNames(tools); !slices.Equal(names, []string{"customerWithOrders", "order", "ordersByStatus", "searchProducts"}) {
		t.Errorf("the tools are %q", names)
	}
	var text strings.Builder
	for _, tool := range tools {
		if !tool.Annotations.ReadOnlyHint || !tool.Annotations.IdempotentHint {
			t.Errorf("%s has the hints %+v", tool.Name, tool.Annotations)
		}
		fmt.Fprintf(&text, "%s: %s\n", tool.Name, tool.Description)
	}
	golden.CheckFile(t, "testdata/mcp-standard.golden", text.String())
	if got := callTool(t, session, "customerWithOrders", map[string]any{"id": "cust_01"}, false); !strings.Contains(got, `"name":"Alice Chen"`) || !strings.Contains(got, `"orders":{"nodes":[{"id"`) {
		t.Errorf("the customer is %s", got)
	}
	if got := callTool(t, session, "searchProducts", map[string]any{"namePrefix": "widget"}, false); !strings.Contains(got, `"name":"Widget A"`) {
		t.Errorf("the products are %s", got)
	}
}

// Arguments of each kind reach the operation.
func TestMCPArguments(t *testing.T) {
	s := newFixture(t, embedded.New().Client(), smallDataset(t))
	session := connectMCP(t, serveTools(t, s, server.Options{}))
	order := s.place(t, "ann", "mug")
	s.place(t, "bob", "mug")
	s.place(t, "bob", "plate")
	find := func(arguments map[string]any) string { return callTool(t, session, "Find", arguments, false) }
	for name, c := range map[string]struct {
		got  string
		want string
	}{
		"a default":           {fmt.Sprint(strings.Count(find(nil), `"status":"PENDING"`)), "2"},
		"an integer":          {fmt.Sprint(strings.Count(find(map[string]any{"size": 3}), `"status":"PENDING"`)), "3"},
		"a list of enums":     {find(map[string]any{"statuses": []string{"SHIPPED", "DELIVERED"}}), `{"data":{"orders":{"nodes":[]}}}`},
		"times in an object":  {find(map[string]any{"placed": map[string]any{"to": opening.Add(-time.Hour)}}), `{"data":{"orders":{"nodes":[]}}}`},
		"a boolean":           {fmt.Sprint(strings.Contains(find(map[string]any{"long": true}), `"note":{"nodes":[{"type"`)), "true"},
		"a list of IDs":       {callTool(t, session, "Some", map[string]any{"ids": []string{order, "01HVMK3P2QRSV8T4X6Y9ZABCDE"}}, false), `{"data":{"ordersById":[{"id":"` + order + `"},null]}}`},
		"objects in an input": {fmt.Sprint(strings.HasPrefix(callTool(t, session, "Quote", map[string]any{"input": map[string]any{"items": lines("mug")}}, false), `{"data":{"quote":{"total":{"amount":"`)), "true"},
		"a negative number":   {callTool(t, session, "Restock", map[string]any{"sku": "mug", "delta": -1, "key": "k"}, false), `{"data":{"adjustInventory":{"inventoryLevel":{"quantity":`},
		"no arguments":        {callTool(t, session, "who_am_i_", nil, false), `{"data":{"viewer":{"role":"ADMIN"}}}`},
		"a second operation":  {fmt.Sprint(strings.Count(callTool(t, session, "Second", nil, false), `"sku"`)), "2"},
	} {
		if !strings.HasPrefix(c.got, c.want) {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

// Wrong arguments result in an error that the agent can read. Nothing is read or written.
func TestMCPWrongArguments(t *testing.T) {
	s := newFixture(t, embedded.New().Client(), smallDataset(t))
	session := connectMCP(t, serveTools(t, s, server.Options{}))
	s.wire.reset()
	input := map[string]any{"customerId": "ann", "items": lines("mug")}
	for name, c := range map[string]struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		"a wrong enum":       {"Find", map[string]any{"statuses": []string{"LOST"}}, "is not a value of OrderStatus"},
		"a wrong type":       {"Find", map[string]any{"size": "2"}, "expected an Int"},
		"an unknown name":    {"Find", map[string]any{"status": "PENDING"}, `no argument \"status\"`},
		"a missing one":      {"Some", nil, `\"ids\"`},
		"a missing key":      {"Place", map[string]any{"input": input}, "input.idempotencyKey is missing"},
		"a key that is null": {"Restock", map[string]any{"sku": "mug", "delta": 1, "key": nil}, "the argument key is missing"},
		"no object":          {"Place", map[string]any{"input": 1}, "input.idempotencyKey is missing"},
		"a wrong page":       {"Find", map[string]any{"size": 1000}, "100"},
	} {
		if got := callTool(t, session, c.tool, c.arguments, true); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if sent := len(s.wire.operationNames()); sent > 0 {
		t.Errorf("the calls sent %d requests to DynamoDB", sent)
	}
	// Business rules, too, are errors.
	if got := callTool(t, session, "Place", map[string]any{"input": map[string]any{"customerId": "ann", "items": lines("missing"), "idempotencyKey": "k"}}, true); !strings.Contains(got, `"failures":[{"code":"NOT_FOUND"`) {
		t.Errorf("the order is %s", got)
	}
	if got := callTool(t, session, "Rename", map[string]any{"sku": "missing", "name": "x"}, true); !strings.Contains(got, `"code":"NOT_FOUND"`) {
		t.Errorf("the product is %s", got)
	}
}

// An agent places an order and calls the tool again, because the response was lost. There is one order.
// The second call goes to another server, and writes nothing.
func TestMCPPlacesAnOrderOnce(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		before := len(s.ordersOf(t))
		arguments := map[string]any{"input": map[string]any{"customerId": "ann", "items": lines("mug", "plate"), "idempotencyKey": "0d4b8ad2-52b6-4b54-8bd3-2c6e1c2f1a10"}}
		one, two := connectMCP(t, serveTools(t, s, server.Options{})), connectMCP(t, serveTools(t, s, server.Options{}))
		for _, tool := range listTools(t, one) {
			if tool.Name == "Place" && (!tool.Annotations.IdempotentHint || tool.Annotations.ReadOnlyHint) {
				t.Errorf("the hints are %+v", tool.Annotations)
			}
		}
		s.wire.reset()
		first := callTool(t, one, "Place", arguments, false)
		if committed := s.wire.committed(); len(committed) != 1 {
			t.Errorf("the first call commits %d transactions", len(committed))
		}
		if sent := s.wire.operationNames(); !slices.Equal(sent, []string{"BatchGetItem", "TransactWriteItems"}) {
			t.Errorf("the first call sends %q", sent)
		}
		s.wire.reset()
		again := callTool(t, two, "Place", arguments, false)
		if first != again || !strings.HasPrefix(first, `{"data":{"placed":{"order":{"id":"`) {
			t.Errorf("the first call returns %s, the second one %s", first, again)
		}
		// The transaction is cancelled, and its record of the first call is read.
		if committed, sent := s.wire.committed(), s.wire.operationNames(); len(committed) > 0 || !slices.Equal(sent, []string{"BatchGetItem", "TransactWriteItems", "GetItem"}) {
			t.Errorf("the second call commits %+v, and sends %q", committed, sent)
		}
		if got := len(s.ordersOf(t)); got != before+1 {
			t.Errorf("there are %d orders, want %d", got, before+1)
		}
	})
}

// ordersOf returns the keys of the orders in the table.
func (s *fixture) ordersOf(t testing.TB) (keys []string) {
	t.Helper()
	for k := range s.records(t) {
		if strings.HasPrefix(k, "ORDER#") && strings.HasSuffix(k, " #METADATA") {
			keys = append(keys, k)
		}
	}
	return keys
}

// rawMCP sends a message without the SDK.
func rawMCP(h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	return ask(h, http.MethodPost, server.PathMCP, body, header...)
}

// callMessage returns the message that calls a tool.
func callMessage(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

const listMessage = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

// Callers see and read what they may: without a token nothing, customers their own orders.
func TestMCPPermissions(t *testing.T) {
	var reads atomic.Int64
	store := sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		reads.Add(1)
		return next.Do(r)
	})
	documents := slices.Concat(toolDocuments(), []document.TrustedDocument{{ID: "order", Text: `query Order($id: ID!) { order(id: $id) { id } }`}})
	g := newAuthenticatedServer(t, store, server.Options{Graph: graph.Options{Documents: documents}})
	reads.Store(0)
	for _, message := range []string{listMessage, callMessage("Order", `{"id":"x"}`), `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`, "[", ""} {
		for challenge, header := range map[string][]string{"Bearer": nil, `Bearer error="invalid_token"`: {"Authorization", "Bearer x.y.z"}} {
			w := rawMCP(g, message, header...)
			if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != challenge || strings.Contains(w.Body.String(), "Place") || !strings.Contains(w.Body.String(), `"UNAUTHENTICATED"`) {
				t.Errorf("%s with %q: status %d, header %v, %s", message, header, w.Code, w.Header(), w.Body)
			}
		}
	}
	if reads.Load() > 0 {
		t.Errorf("%d requests to DynamoDB without a token", reads.Load())
	}
	srv := httptest.NewServer(g)
	defer srv.Close()
	as := func(claims authtest.Object) *mcp.ClientSession {
		return connectMCP(t, srv.URL, "Authorization", "Bearer "+g.token(t, claims))
	}
	admin, alice, bob := as(nil), as(authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"}), as(authtest.Object{"role": "CUSTOMER", "customer_id": "cust_002", "sub": "bob"})
	all, theirs := toolNames(listTools(t, admin)), toolNames(listTools(t, alice))
	for _, name := range []string{"Restock", "Find", "Rename", "Sales"} {
		if !slices.Contains(all, name) || slices.Contains(theirs, name) {
			t.Errorf("admins see the tools %q, customers see %q", all, theirs)
		}
	}
	for _, name := range []string{"Place", "Order", "Quote"} {
		if !slices.Contains(theirs, name) {
			t.Errorf("customers see %q, without %s", theirs, name)
		}
	}
	// A hidden tool responds like one that does not exist.
	customer := []string{"Authorization", "Bearer " + g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"})}
	for _, arguments := range []string{`{"sku":"prod_100","delta":1,"key":"k"}`, `{"unknown":1}`, `[]`} {
		hidden, unknown := rawMCP(g, callMessage("Restock", arguments), customer...), rawMCP(g, callMessage("Missing", arguments), customer...)
		if got := strings.ReplaceAll(hidden.Body.String(), "Restock", "Missing"); hidden.Code != unknown.Code || got != unknown.Body.String() || !strings.Contains(got, "unknown tool") {
			t.Errorf("%s: a hidden tool: status %d, %s, a missing one: status %d, %s", arguments, hidden.Code, hidden.Body, unknown.Code, unknown.Body)
		}
	}
	placed := callTool(t, alice, "Place", map[string]any{"input": map[string]any{"customerId": "cust_01", "items": lines("prod_100"), "idempotencyKey": "k"}}, false)
	id := strings.Split(strings.TrimPrefix(placed, `{"data":{"placed":{"order":{"id":"`), `"`)[0]
	for want, session := range map[string]*mcp.ClientSession{`{"data":{"order":{"id":"` + id + `"}}}`: alice, `{"data":{"order":null}}`: bob} {
		if got := callTool(t, session, "Order", map[string]any{"id": id}, false); got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	}
	if got := callTool(t, bob, "Place", map[string]any{"input": map[string]any{"customerId": "cust_01", "items": lines("prod_100"), "idempotencyKey": "k"}}, true); strings.Contains(got, id) {
		t.Errorf("another customer receives %s", got)
	}
}

// A server that needs no token for the catalog shows strangers only the tools of the catalog.
func TestMCPWithoutAToken(t *testing.T) {
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Anonymous: true})
	if w := rawMCP(g, listMessage); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"searchProducts"`) || strings.Contains(w.Body.String(), `"ordersByStatus"`) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	if w := rawMCP(g, callMessage("ordersByStatus", `{"statuses":["PENDING"]}`)); !strings.Contains(w.Body.String(), `unknown tool`) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	if w := rawMCP(g, callMessage("searchProducts", `{}`), server.ExplainHeader, "true"); !strings.Contains(w.Body.String(), "Widget A") || strings.Contains(w.Body.String(), "explain") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// The limits of /graphql apply.
func TestMCPLimits(t *testing.T) {
	store := sampleThrough(t, forward)
	serving := func(opts server.Options) http.Handler {
		h, _ := newHandler(t, store, slog.LevelInfo, opts)
		return h
	}
	find := callMessage("ordersByStatus", `{"statuses":["PENDING"]}`)
	limited := serving(server.Options{Graph: graph.Options{Rates: rate.Options{Burst: 300, Restore: 1, Now: func() time.Time { return time.Unix(0, 0) }}}})
	for name, c := range map[string]struct {
		handler    http.Handler
		body, want string
		status     int
	}{
		"a long body":             {serving(server.Options{Limits: server.Limits{Body: 50}}), find, "BODY_TOO_LARGE", http.StatusRequestEntityTooLarge},
		"many values":             {serving(server.Options{}), strings.Repeat("[", 20_000), "values", http.StatusBadRequest},
		"a high cost":             {serving(server.Options{Graph: graph.Options{Limits: document.Limits{Cost: 3}}}), find, `"TOO_EXPENSIVE"`, http.StatusOK},
		"no time":                 {serving(server.Options{Limits: server.Limits{RequestTime: time.Nanosecond}}), find, `"TIMED_OUT"`, http.StatusOK},
		"no explain by default":   {serving(server.Options{}), find, `"PENDING"`, http.StatusOK},
		"too many bytes of names": {serving(server.Options{}), callMessage(strings.Repeat("x", 1000), `{}`), "unknown tool", http.StatusOK},
	} {
		w := rawMCP(c.handler, c.body)
		for w.Code == http.StatusServiceUnavailable { // the time ended before the tools were built
			w = rawMCP(c.handler, c.body)
		}
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || strings.Contains(w.Body.String(), "goroutine") {
			t.Errorf("%s: status %d, %.500s", name, w.Code, w.Body)
		}
	}
	var w *httptest.ResponseRecorder
	for range 50 {
		if w = rawMCP(limited, find); strings.Contains(w.Body.String(), "RATE_LIMITED") {
			break
		}
	}
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"isError":true`) || !strings.Contains(w.Body.String(), `"RATE_LIMITED"`) {
		t.Errorf("after 50 calls: status %d, %s", w.Code, w.Body)
	}
	status := 0
	for range 400 {
		if status = rawMCP(limited, listMessage).Code; status != http.StatusOK {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after 400 lists, the status is %d", status)
	}
}

// Calls use the slots of all requests. If the client disconnects, its call ends.
func TestMCPSharesSlots(t *testing.T) {
	b := newBlocked()
	h, j := newHandler(t, sampleThrough(t, b.pass), slog.LevelInfo, server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequests: 1})})
	ctx, disconnect := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, server.PathMCP, strings.NewReader(callMessage("searchProducts", `{}`)))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-b.arrived
	if w := rawMCP(h, listMessage); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"OVERLOADED"`) {
		t.Errorf("a list: status %d, %v, %s", w.Code, w.Header(), w.Body)
	}
	if w := rawMCP(h, callMessage("order", `{"id":"x"}`)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"OVERLOADED"`) || !strings.Contains(w.Body.String(), `"id":7`) {
		t.Errorf("a call: status %d, %s", w.Code, w.Body)
	}
	disconnect()
	<-done
	j.checkShedding(t)
}

// Responses that clients do not read have limited memory. A mutation that was executed never gets an
// error that asks for a retry.
func TestMCPAnswersThatAreNotReadAreBounded(t *testing.T) {
	long := longSelection("id", 17)
	h, j := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{
		Admission: admission.New(admission.Sizes{admission.PoolRequestBodies: 60 << 10}),
		Graph: graph.Options{Documents: []document.TrustedDocument{
			{ID: "read", Text: `query Read { customer(id: "cust_01") { ` + long + `} }`},
			{ID: "write", Text: `mutation Write { createCustomer(input: {id: "cust_new", name: "Ann", email: "ann@example.com"}) { customer { ` + long + `} } }`},
		}},
	})
	first := slowReader{httptest.NewRecorder(), make(chan struct{}, 10), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequest(http.MethodPost, server.PathMCP, strings.NewReader(callMessage("Read", `{}`)))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(first, r)
	}()
	<-first.waiting
	if w := rawMCP(h, callMessage("Read", `{}`)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"OVERLOADED"`) {
		t.Errorf("a second response: status %d, %.300s", w.Code, w.Body)
	}
	if w := rawMCP(h, callMessage("Write", `{}`)); w.Code != http.StatusOK || w.Header().Get("Retry-After") != "" || !strings.Contains(w.Body.String(), "was executed") || !strings.Contains(w.Body.String(), `"id":7`) {
		t.Errorf("a mutation: status %d, %.300s", w.Code, w.Body)
	}
	close(first.readAllowed)
	<-done
	for range 3 {
		if w := rawMCP(h, callMessage("Read", `{}`)); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
			t.Errorf("after the first was read: status %d, %.300s", w.Code, w.Body)
		}
	}
	j.checkShedding(t)
}

// A list has several pages. They contain, also in their cursors, only tools that the caller may call.
func TestMCPPages(t *testing.T) {
	var documents []document.TrustedDocument
	for i := range 300 {
		documents = append(documents, document.TrustedDocument{ID: fmt.Sprint(i), Text: fmt.Sprintf(`query Open%03d { products(first: 1) { nodes { sku } } }`, i)})
	}
	for i := range 250 {
		documents = append(documents, document.TrustedDocument{ID: fmt.Sprint("h", i), Text: fmt.Sprintf(`query Hidden%03d { orders(first: 1) { nodes { id } } }`, i)})
	}
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Anonymous: true, Limits: server.Limits{RequestTime: testTimeout}, Graph: graph.Options{Documents: documents, Rates: rate.Options{Burst: 500, Restore: 1, Now: func() time.Time { return time.Unix(0, 0) }}}})
	var names []string
	for cursor := ""; ; {
		w := rawMCP(g, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":%q}}`, cursor))
		var got struct{ Result mcp.ListToolsResult }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Result.Tools) == 0 || got.Result.CacheScope != "private" {
			t.Fatalf("status %d, %v, %.300s", w.Code, err, w.Body)
		}
		names = append(names, toolNames(got.Result.Tools)...)
		if cursor = got.Result.NextCursor; cursor == "" {
			break
		}
		if cursor != "Open249" {
			t.Fatalf("the cursor is %q", cursor)
		}
	}
	if len(names) != 300 || names[0] != "Open000" || names[299] != "Open299" || !slices.IsSorted(names) {
		t.Errorf("the tools are %q", names)
	}
	// Callers pay for the bytes of a list: the first page has over 100 KiB.
	refused := 0
	for range 5 {
		if w := rawMCP(g, listMessage); w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("each of 7 lists is returned")
	}
}

// The server repeats IDs without changing them, or refuses them.
func TestMCPIDs(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for id, valid := range map[string]bool{"0": true, "-1": true, "9007199254740992": true, "-9007199254740992": true, `"9007199254740993"`: true, `"1.5"`: true, "9007199254740993": false, "-9007199254740993": false, "1.5": false, "1e300": false, "99999999999999999999": false} {
		for _, method := range []string{"ping", "unknown"} {
			w := rawMCP(h, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`"}`)
			if repeated := strings.Contains(w.Body.String(), `"id":`+id); repeated != valid || !valid && (w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"id":null`) || !strings.Contains(w.Body.String(), "2^53")) {
				t.Errorf("%s: status %d, %s", id, w.Code, w.Body)
			}
		}
	}
}

// The operator sees once which documents are not tools.
func TestMCPLogsInvalidDocuments(t *testing.T) {
	h, j := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{Graph: graph.Options{Documents: []document.TrustedDocument{
		{ID: "valid", Text: `{ viewer { role } }`}, {ID: "invalid", Text: `query Invalid { noSuchField }`}, {ID: "follow", Text: `subscription Follow { orderStatusChanged { id } }`},
	}}})
	for range 2 {
		if w := rawMCP(h, listMessage); strings.Count(w.Body.String(), `"inputSchema"`) != 1 {
			t.Errorf("the tools are %s", w.Body)
		}
	}
	log := j.entries(t)
	if len(log) != 1 || log[0]["level"] != "WARN" || log[0]["documents"] != 1.0 || !strings.Contains(fmt.Sprint(log[0]["failures"]), "invalid: ") || !strings.Contains(fmt.Sprint(log[0]["failures"]), "noSuchField") {
		t.Errorf("the log has %v", log)
	}
}

// Holders of the permission receive the explain output.
func TestMCPExplains(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	if w := rawMCP(h, callMessage("searchProducts", `{}`), server.ExplainHeader, "true"); !strings.Contains(w.Body.String(), `"dollarsPerMillion"`) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// Pages of other sites cannot call tools, also not through a host name that they control.
func TestMCPOrigins(t *testing.T) {
	store := sampleThrough(t, forward)
	h, _ := newHandler(t, store, slog.LevelInfo, server.Options{Origins: []string{origin}})
	for name, c := range map[string]struct {
		host, origin string
		status       int
	}{
		"a page of another site": {"example.com", "https://evil.example", http.StatusForbidden},
		"an allowed page":        {"example.com", origin, http.StatusOK},
		"a page of the server":   {"example.com", "http://example.com", http.StatusOK},
		"DNS rebinding":          {"evil.example", "", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequest(http.MethodPost, server.PathMCP, strings.NewReader(listMessage))
		r.Header.Set("Content-Type", "application/json")
		if r.Host = c.host; c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%s: status %d, %s", name, w.Code, w.Body)
		}
	}
	if w := ask(h, http.MethodOptions, server.PathMCP, "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version"); w.Header().Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("the preflight has the header %v", w.Header())
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if w := ask(h, method, server.PathMCP, ""); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: status %d, %v", method, w.Code, w.Header())
		}
	}
	off, _ := newHandler(t, store, slog.LevelInfo, server.Options{NoMCP: true})
	if w := rawMCP(off, listMessage); w.Code != http.StatusNotFound {
		t.Errorf("status %d although MCP is off", w.Code)
	}
}

// A panic does not end the process. The client receives the ID of the request, and no details.
func TestMCPPanics(t *testing.T) {
	h, j := newHandler(t, sampleThrough(t, panicking("secret")), slog.LevelInfo, server.Options{})
	w := rawMCP(h, callMessage("searchProducts", `{}`))
	if strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), `"INTERNAL"`) || !strings.Contains(w.Body.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	if log := j.entries(t); len(log) != 1 || !strings.Contains(fmt.Sprint(log[0]["error"]), "secret") {
		t.Errorf("the log has %v", log)
	}
}

// FuzzMCP sends arbitrary messages to /mcp. The response must be JSON or empty, arrive in time and never
// be a server fault.
func FuzzMCP(f *testing.F) {
	h, _ := handler(f, sampleThrough(f, forward), slog.LevelInfo)
	for _, body := range []string{
		listMessage, callMessage("order", `{"id":"x"}`), callMessage("searchProducts", `{"first":1e999,"after":"\ud800"}`), callMessage("order", `[1,{}]`), callMessage("order", `null`),
		`{"jsonrpc":"2.0","id":{},"method":"tools/call"}`, `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":1}}`, `{"jsonrpc":"2.0","method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":3}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x","_meta":{"progressToken":[]}}}`, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `[` + listMessage + `]`, `null`, ``, `{`, `{"jsonrpc":"1.0"}`, "{\"\xff\":1}", `{"a":` + strings.Repeat(`{"a":`, 5000), `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`[`, 3000) + strings.Repeat(`]`, 3000) + `}`,
	} {
		f.Add(body, "2025-06-18")
		f.Add(body, "2026-07-28")
		f.Add(body, "")
	}
	f.Fuzz(func(t *testing.T, body, protocol string) {
		r := httptest.NewRequest(http.MethodPost, server.PathMCP, struct{ io.Reader }{strings.NewReader(body)})
		r.Header.Set("Content-Type", "application/json")
		if protocol != "" {
			r.Header.Set("Mcp-Protocol-Version", protocol)
		}
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, r)
		}()
		select {
		case <-done:
		case <-time.After(testTimeout):
			t.Fatal("no answer in time")
		}
		if w.Code > 499 || strings.Contains(w.Body.String(), "goroutine ") {
			t.Errorf("status %d, %.300s", w.Code, w.Body)
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("status %d, no JSON: %.300s", w.Code, w.Body)
		}
	})
}
