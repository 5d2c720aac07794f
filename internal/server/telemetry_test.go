package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/tracetest"
)

// receivers contains the access log and the metrics of one server.
type receivers struct {
	metrics *telemetry.Metrics
	access  journal
}

func (m *receivers) open() telemetry.Receivers {
	m.metrics = telemetry.NewMetrics()
	return telemetry.Receivers{Metrics: m.metrics, AccessLog: telemetry.NewAccessLog(slog.New(telemetry.NewLogHandler(&m.access, telemetry.LogJSON, slog.LevelInfo)), []byte("a key"), time.Now)}
}

// counted returns the operations and the responses that the metrics contain, each as often as it
// was counted: the name, type and code of an operation, or the status of a response.
func (m *receivers) counted() (operations, statuses []string) {
	page := ask(m.metrics.Handler(), http.MethodGet, "/metrics", "").Body.String()
	for _, c := range regexp.MustCompile(`(?m)^ordergraph_(?:operations_total\{code="(\w+)",operation="(\w+)",type="(\w+)"\}|http_responses_total\{status="(\w+)"\}) (\d+)$`).FindAllStringSubmatch(page, -1) {
		n, _ := strconv.Atoi(c[5])
		for range n {
			if c[4] != "" {
				statuses = append(statuses, c[4])
			} else {
				operations = append(operations, c[2]+" "+c[3]+" "+c[1])
			}
		}
	}
	slices.Sort(operations)
	slices.Sort(statuses)
	return operations, statuses
}

// lines waits until the access log has n entries, and returns the given attributes of each entry.
// It must wait, because the server writes an entry after the client has received the response.
func (m *receivers) lines(t testing.TB, n int, names ...string) []string {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	for len(m.access.entries(t)) < n {
		if time.Now().After(deadline) {
			t.Fatalf("the access log has %v, want %d entries", m.access.entries(t), n)
		}
		<-time.After(time.Millisecond)
	}
	var lines []string
	for _, entry := range m.access.entries(t) {
		var values []string
		for _, name := range names {
			if value := entry[name]; value != nil {
				values = append(values, fmt.Sprint(value))
			}
		}
		lines = append(lines, strings.Join(values, " "))
	}
	return lines
}

// Every HTTP request is logged in one entry of the access log and counted once, even if the server
// refuses it.
func TestAccessLog(t *testing.T) {
	m := &receivers{}
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Telemetry: m.open(), Graph: graph.Options{
		Documents: []document.TrustedDocument{{ID: "d1", Text: `query Alice { customer(id: "cust_01") { name } }`}},
	}})
	staff := g.token(t, authtest.Object{"role": "STAFF"})
	for _, c := range []struct {
		method, body string
		header       []string
	}{
		{http.MethodPost, `{"documentId": "d1"}`, []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, post(aliceQuery), []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, post(`mutation { setInventoryLevel(input: {sku: "prod_100", warehouseId: "wh_pdx", quantity: 5}) { userErrors { message } } }`), []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, post(`query A { nothing }`), []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, post(`{ unbalanced`), []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, post(`subscription { orderStatusChanged(status: PENDING) { id } }`), []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, `{`, []string{"Authorization", "Bearer " + staff}},
		{http.MethodPost, post(aliceQuery), nil},
		{http.MethodDelete, "", nil},
	} {
		w := ask(g, c.method, server.PathGraphQL, c.body, c.header...)
		all := m.access.entries(t)
		last := all[len(all)-1]
		if last["bytes"] != float64(w.Body.Len()) || last["status"] != float64(w.Code) || last["requestId"] != w.Header().Get("X-Request-Id") || last["transport"] != "http" {
			t.Errorf("%s %s with status %d and %d bytes is logged as %v", c.method, c.body, w.Code, w.Body.Len(), last)
		}
		if (last["principal"] != nil) != (c.header != nil) || (last["document"] == nil) != (last["operation"] == "Alice" || !strings.Contains(c.body, "query") || c.header == nil) {
			t.Errorf("%s is logged as %v", c.body, last)
		}
	}
	ask(g, http.MethodGet, server.PathHealth, "")
	want := []string{
		"Alice query OK 200 STAFF 1 0.5 0", "other query OK 200 STAFF 1 0.5 0", "other mutation OK 200 STAFF 2 3 6", "other query BAD_USER_INPUT 200 STAFF 0 0 0", "other unknown BAD_USER_INPUT 200 STAFF 0 0 0",
		"other subscription SUBSCRIPTIONS_OFF 200 STAFF 0 0 0", "other unknown BAD_REQUEST 400 STAFF 0 0 0", "other unknown UNAUTHENTICATED 401 0 0 0", "other unknown METHOD_NOT_ALLOWED 405 0 0 0",
	}
	if lines := m.lines(t, len(want), "operation", "type", "code", "status", "role", "requests", "readUnits", "writeUnits"); !slices.Equal(lines, want) {
		t.Errorf("the access log has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	var wantOperations, wantStatuses []string
	for _, line := range want {
		fields := strings.Fields(line)
		wantOperations, wantStatuses = append(wantOperations, strings.Join(fields[:3], " ")), append(wantStatuses, fields[3])
	}
	slices.Sort(wantOperations)
	slices.Sort(wantStatuses)
	if operations, statuses := m.counted(); !slices.Equal(operations, wantOperations) || !slices.Equal(statuses, wantStatuses) {
		t.Errorf("the requests are counted as %q with the statuses %q, want %q with %q", operations, statuses, wantOperations, wantStatuses)
	}
	m.access.mu.Lock()
	defer m.access.mu.Unlock()
	for _, secret := range []string{"user-1", "cust_01", "eyJ", "unbalanced"} {
		if strings.Contains(m.access.text.String(), secret) {
			t.Errorf("the access log contains %q", secret)
		}
	}
}

// The access log contains requests that a pool refuses, requests for other hosts, and requests
// whose handler panics.
func TestAccessLogOfFailedRequests(t *testing.T) {
	m := &receivers{}
	pools := admission.New(admission.Sizes{admission.PoolRequests: 1})
	h, j := newHandler(t, sampleThrough(t, panicking("a secret")), slog.LevelInfo, server.Options{Telemetry: m.open(), Admission: pools})
	if full := pools[admission.PoolRequests].TryAcquire(admission.Caller{}, 1); full != nil {
		t.Fatal(full)
	}
	ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery))
	pools[admission.PoolRequests].Release(admission.Caller{}, 1)
	ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery))
	ask(h, http.MethodPost, "http://attacker.test"+server.PathGraphQL, post(aliceQuery))
	want := []string{"other unknown OVERLOADED 503 requests", "other query INTERNAL 200", "other unknown HOST_NOT_ALLOWED 421"}
	if lines := m.lines(t, 3, "operation", "type", "code", "status", "pool"); !slices.Equal(lines, want) {
		t.Errorf("the access log has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if len(j.entries(t)) != 2 { // the shed request and the panic
		t.Errorf("the log has %v", j.entries(t))
	}
}

// The access log contains one entry for each operation of a WebSocket or an event stream, written
// when the operation ends. Each event is counted.
func TestAccessLogOfSubscriptions(t *testing.T) {
	m := &receivers{}
	l := newLive(t, server.Options{Telemetry: m.open()})
	order := l.place()
	subscription := fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { event { type } order { id } } }`, order, l.last(order))
	w := l.open()
	w.subscribe("q", aliceQuery)
	w.want("next", "q")
	w.want("complete", "q")
	w.subscribe("refused", `subscription { orderUpdated(id: "01HVMK3P2Q0000000000000009") { orderId } }`)
	w.want("error", "refused")
	w.subscribe("s", subscription)
	stream := l.stream(subscription)
	l.waitForSubscriptions(2)
	for quantity := range 2 {
		l.set(order, 3+quantity)
		w.want("next", "s")
		if name, _, err := stream.next(); name != "next" || err != nil {
			t.Fatalf("the stream has %s: %v", name, err)
		}
	}
	w.send(frame{ID: "s", Type: "complete"})
	l.waitForSubscriptions(1)
	stream.leave()
	lines := m.lines(t, 5, "transport", "type", "code", "status", "events", "requests")
	for i, line := range lines {
		// A subscription that reads missed events while the order changes needs up to two more requests.
		lines[i] = regexp.MustCompile(` 2 [234]$`).ReplaceAllString(line, " 2 2")
	}
	slices.Sort(lines)
	want := []string{"event-stream subscription OK 200 2 2", "http unknown OK 101 0", "websocket query OK 1", "websocket subscription NOT_FOUND 1", "websocket subscription OK 2 2"}
	if !slices.Equal(lines, want) {
		t.Errorf("the access log has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if operations, _ := m.counted(); len(operations) != 8 { // a query, three starts and four events
		t.Errorf("%d operations are counted: %v", len(operations), operations)
	}
}

// Telemetry does not disable the fast path: the AWS SDK sends no reads.
func TestTelemetryKeepsTheFastPath(t *testing.T) {
	c := tracetest.New(t)
	c.Configure(t)
	tracer, err := telemetry.NewTracer(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var fast, bySDK atomic.Int64
	db := embedded.New().Client(func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = httpClient(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Amz-Sdk-Invocation-Id") == "" {
				fast.Add(1)
			} else {
				bySDK.Add(1)
			}
			return next.Do(r)
		})
	})
	store := storetest.NewTable(t, db, dynamo.Options{Observer: telemetry.Receivers{Tracer: tracer}.RequestObserver("ordergraph")})
	dataset, _ := storetest.SampleDataset(t)
	storetest.LoadDataset(t, store, dataset)
	m := &receivers{}
	options := m.open()
	options.Tracer = tracer
	h, _ := newHandler(t, store, slog.LevelInfo, server.Options{Telemetry: options})
	fast.Store(0)
	bySDK.Store(0)
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Body.String() != aliceAnswer {
		t.Errorf("the response is %s", w.Body)
	}
	tracer.Close()
	if reason := store.FastPathDisabledBy(); reason != "" || fast.Load() != 1 || bySDK.Load() != 0 {
		t.Errorf("the fast path made %d requests and the SDK %d; it is disabled by %q", fast.Load(), bySDK.Load(), reason)
	}
	if spans := c.Spans(); len(spans) != 1 || len(spans[0].Children) != 1 {
		t.Errorf("the spans are\n%s", tracetest.Tree(spans))
	}
}

// Spans of a WebSocket's operations continue the trace in the payload of connection_init. Each
// event has its own trace with a link to the start of the subscription.
func TestTracesOfSubscriptions(t *testing.T) {
	c := tracetest.New(t)
	c.Configure(t)
	tracer, err := telemetry.NewTracer(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	m := &receivers{}
	options := m.open()
	options.Tracer = tracer
	l := newLive(t, server.Options{Telemetry: options})
	order := l.place()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	w := l.dial("Traceparent", "00-11111111111111111111111111111111-b7ad6b7169203331-01")
	w.send(frame{Type: "connection_init", Payload: json.RawMessage(`{"traceparent": "00-` + trace + `-b7ad6b7169203331-01"}`)})
	w.want("connection_ack", "")
	w.subscribe("s", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { order { id } } }`, order, l.last(order)))
	l.waitForSubscriptions(1)
	l.set(order, 3)
	w.want("next", "s")
	w.send(frame{ID: "s", Type: "complete"})
	m.lines(t, 2)
	tracer.Close()
	spans := c.Spans()
	if len(spans) != 3 || spans[0].Name != "GET /graphql" || spans[1].Name != "subscription" || spans[2].Name != "subscription" {
		t.Fatalf("the spans are\n%s", tracetest.Tree(spans))
	}
	upgrade, begin, event := spans[0], spans[1], spans[2]
	if upgrade.TraceID != "11111111111111111111111111111111" || begin.TraceID != trace || begin.Attributes["network.protocol.name"] != "websocket" {
		t.Errorf("the upgrade has the trace %s, the subscription has the trace %s and %v", upgrade.TraceID, begin.TraceID, begin.Attributes)
	}
	if event.TraceID == trace || event.ParentID != "" || event.LinkedSpan != begin.SpanID {
		t.Errorf("the event has the trace %s, the parent %q and a link to %s, want a link to %s", event.TraceID, event.ParentID, event.LinkedSpan, begin.SpanID)
	}
}
