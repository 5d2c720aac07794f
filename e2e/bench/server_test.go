// Package bench_test measures the whole HTTP handler with the options of `ordergraph serve` on
// DynamoDB. DynamoDB's responses are replayed from memory, so the results do not include DynamoDB's
// response times. docs/performance.md explains the results.
package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/test/replay"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// testServer is the handler with its table.
type testServer struct {
	handler http.Handler
	table   *replay.Client
}

// newTestServer returns the handler with a table that contains the dataset. The
// functions in configure change the options of the table and of the telemetry.
func newTestServer(t testing.TB, configure ...func(*config.Config, *telemetry.Receivers)) *testServer {
	t.Helper()
	return newServerWithMetrics(t, nil, configure...)
}

// newServerWithMetrics returns the handler of newTestServer for a server that records the metrics
// m. If m is nil, the server records no metrics.
func newServerWithMetrics(t testing.TB, m *telemetry.Metrics, configure ...func(*config.Config, *telemetry.Receivers)) *testServer {
	t.Helper()
	// These are the required settings of `serve`; all other settings have their defaults.
	cfg, err := config.Read(func(name string) string {
		return map[string]string{"ORDERGRAPH_STORE": "dynamodb", "ORDERGRAPH_AUTH": "none"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	var observed telemetry.Receivers
	for _, change := range configure {
		change(&cfg, &observed)
	}
	engine := embedded.New()
	db, table := replay.WrapClient(engine.Client())
	var observeBatch func(string, int)
	if m != nil {
		cfg.Table.Observer, observeBatch = telemetry.Receivers{Metrics: m}.RequestObserver(cfg.Table.Table), m.ObserveBatch
	}
	store := storetest.NewTable(t, db, cfg.Table)
	storetest.LoadDataset(t, store, newDataset(t))
	table.ReplayTransactions()
	log := slog.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: cfg.LogLevel}))
	feed := store.OpenFeed(feed.EngineSource(engine), feed.Options{Log: log})
	t.Cleanup(feed.Close)
	handler, err := server.New(server.Options{
		Graph: graph.Options{
			Store: store, Extension: cfg.Extension, Cursors: paging.NewCursorSigner(cfg.CursorKey), Limits: cfg.Limits, Rates: cfg.Rates, NoIntrospection: !cfg.Introspection, Feed: feed, ObserveBatch: observeBatch,
		},
		Origins: cfg.Origins, Limits: cfg.ServerLimits, Log: log, Telemetry: observed,
	})
	if err != nil {
		t.Fatal(err)
	}
	if reason := store.FastPathDisabledBy(); reason != "" {
		t.Fatalf("the fast path is disabled: %s", reason)
	}
	return &testServer{handler, table}
}

// operation is an operation to measure.
type operation struct {
	name, document string
	// variables returns the variables of the n-th request.
	variables func(n int) map[string]any
	// The budget of the operation: requests is the number of DynamoDB requests, and units is the
	// number of DynamoDB read units.
	requests  int
	readUnits float64
	// orders and items are the numbers of orders and line items in each response.
	orders, items int
	// allocations is the maximum number of allocations. It is 20 % above the current number, because
	// new releases of Go or of a library may allocate more. Lower the maximum after an optimization.
	allocations float64
}

// distinctRequests is the number of different requests of each operation.
const distinctRequests = 12

func operations() []operation {
	const order = `id status total { amount } placedAt items { nodes { productId name quantity unitPrice { amount } } }`
	return []operation{
		{
			name:      "CustomerWithOrders",
			document:  `query Customer($id: ID!, $first: Int) { customer(id: $id) { id name email orders(first: $first) { nodes { ` + order + ` } } } }`,
			variables: func(n int) map[string]any { return map[string]any{"id": customerID(n), "first": ordersPerCustomer} },
			requests:  2, readUnits: 1.5, orders: ordersPerCustomer, items: ordersPerCustomer * itemsPerOrder, allocations: 370,
		},
		{
			name:      "OrderWithCustomer",
			document:  `query Order($id: ID!) { order(id: $id) { ` + order + ` customer { id name email } } }`,
			variables: func(n int) map[string]any { return map[string]any{"id": orderID(n * 7)} },
			requests:  2, readUnits: 1, orders: 1, items: itemsPerOrder, allocations: 290,
		},
		{
			name:     "OrdersOfAStatus",
			document: `query Status($status: OrderStatus!, $first: Int) { ordersByStatus(status: $status, first: $first) { nodes { ` + order + ` customer { name } } } }`,
			variables: func(int) map[string]any {
				return map[string]any{"status": "PENDING", "first": pendingOrders}
			},
			requests: 2, readUnits: 28.5, orders: pendingOrders, items: pendingOrders * itemsPerOrder, allocations: 920,
		},
		{
			name:     "EntitiesOf100Orders",
			document: `query Entities($of: [_Any!]!) { _entities(representations: $of) { ... on Order { ` + order + ` } } }`,
			variables: func(n int) map[string]any {
				of := make([]map[string]any, 100)
				for i := range of {
					of[i] = map[string]any{"__typename": "Order", "id": orderID(n*100 + i)}
				}
				return map[string]any{"of": of}
			},
			requests: 1, readUnits: 50, orders: 100, items: 100 * itemsPerOrder, allocations: 3360,
		},
		{
			name:     "PlaceOrder",
			document: `mutation Place($input: PlaceOrderInput!) { placeOrder(input: $input) { order { ` + order + ` } userErrors { __typename } } }`,
			variables: func(n int) map[string]any {
				return map[string]any{"input": map[string]any{
					"customerId":     customerID(n),
					"items":          []map[string]any{{"sku": productSKU(n), "quantity": 1}, {"sku": productSKU(n + 1), "quantity": 2}},
					"idempotencyKey": fmt.Sprintf("4dcb8ec3-5b3c-4b3c-8a6c-%012d", n),
				}}
			},
			requests: 2, readUnits: 3, orders: 1, items: 2, allocations: 1660,
		},
		{
			name:     "ConfirmOrder",
			document: `mutation Confirm($input: ConfirmOrderInput!) { confirmOrder(input: $input) { order { ` + order + ` } userErrors { __typename } } }`,
			variables: func(n int) map[string]any {
				return map[string]any{"input": map[string]any{"orderId": pendingOrderID(n), "idempotencyKey": fmt.Sprintf("9c7f3ad1-54c4-4d57-a3a2-%012d", n)}}
			},
			requests: 2, readUnits: 1, orders: 1, items: itemsPerOrder, allocations: 1330,
		},
	}
}

// bodies returns the request bodies of the operation.
func (o operation) bodies(t testing.TB) [][]byte {
	t.Helper()
	bodies := make([][]byte, distinctRequests)
	for n := range bodies {
		var err error
		if bodies[n], err = json.Marshal(map[string]any{"query": o.document, "variables": o.variables(n)}); err != nil {
			t.Fatal(err)
		}
	}
	return bodies
}

// check verifies that a response is complete and belongs to the operation.
func (o operation) check(status int, answer []byte) error {
	text := string(answer)
	if status != http.StatusOK || strings.Contains(text, `"errors"`) || strings.Count(text, `"placedAt":`) != o.orders || strings.Count(text, `"productId":`) != o.items {
		return fmt.Errorf("status %d with %d orders and %d items, want %d and %d: %.300s", status, strings.Count(text, `"placedAt":`), strings.Count(text, `"productId":`), o.orders, o.items, text)
	}
	return nil
}

// client sends requests one after the other with little overhead, so that the benchmark measures
// the handler. It is not safe for concurrent use.
type client struct {
	handler  http.Handler
	template *http.Request
	body     bytes.Reader
	response responseRecorder
}

func (a *testServer) client() *client {
	c := &client{handler: a.handler, template: httptest.NewRequest(http.MethodPost, "http://localhost"+server.PathGraphQL, http.NoBody)}
	c.template.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "User-Agent": {"bench"}}
	c.response.header = http.Header{}
	return c
}

// do sends one request. As in net/http, the context of the request is cancelled after the response.
func (c *client) do(ctx context.Context, body []byte) (int, []byte) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.body.Reset(body)
	r := c.template.WithContext(ctx)
	r.Body, r.ContentLength = io.NopCloser(&c.body), int64(len(body))
	clear(c.response.header)
	c.response.status = http.StatusOK
	c.response.body.Reset()
	c.handler.ServeHTTP(&c.response, r)
	return c.response.status, c.response.body.Bytes()
}

// responseRecorder keeps the last response. Like the ResponseWriter of a connection, it supports
// deadlines.
type responseRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *responseRecorder) Header() http.Header { return w.header }

func (w *responseRecorder) WriteHeader(status int) { w.status = status }

func (w *responseRecorder) Write(b []byte) (int, error) { return w.body.Write(b) }

func (w *responseRecorder) SetReadDeadline(time.Time) error { return nil }

func (w *responseRecorder) SetWriteDeadline(time.Time) error { return nil }

func (w *responseRecorder) Flush() {}
