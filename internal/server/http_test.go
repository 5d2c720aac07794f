package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/graphiql"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// alice is a query that makes one DynamoDB request, and aliceAnswer its response.
const (
	aliceQuery  = `{ customer(id: "cust_01") { name } }`
	aliceAnswer = `{"data":{"customer":{"name":"Alice Chen"}}}`
)

// interceptor intercepts the requests of the SDK. It forwards a request with next, or responds
// itself.
type interceptor func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error)

type httpClient func(*http.Request) (*http.Response, error)

func (c httpClient) Do(r *http.Request) (*http.Response, error) { return c(r) }

// journal records the log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// entries returns the lines of the log.
func (j *journal) entries(t testing.TB) []map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []map[string]any
	for d := json.NewDecoder(bytes.NewReader(j.text.Bytes())); d.More(); {
		var entry map[string]any
		if err := d.Decode(&entry); err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// checkShedding checks that the log has exactly one line, which reports shed requests. It ignores
// their number.
func (j *journal) checkShedding(t testing.TB) {
	t.Helper()
	if all := j.entries(t); len(all) != 1 || all[0]["msg"] != "requests are shed" || all[0]["level"] != "WARN" {
		t.Errorf("the log contains %v, want one warning that requests are shed", all)
	}
}

func (j *journal) checkEmpty(t testing.TB) {
	t.Helper()
	if all := j.entries(t); len(all) > 0 {
		t.Errorf("the log contains %v, want no entries", all)
	}
}

// sampleThrough returns a store with the sample data. Its requests pass b.
func sampleThrough(t testing.TB, b interceptor) *dynamo.Store {
	t.Helper()
	var through atomic.Bool // set once the data is loaded
	client := embedded.New().Client(func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = httpClient(func(r *http.Request) (*http.Response, error) {
			if !through.Load() {
				return next.Do(r)
			}
			return b(r, next)
		})
	})
	store := storetest.SampleStore(t, client)
	through.Store(true)
	return store
}

func forward(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) { return next.Do(r) }

// handler starts a server of a store, and records its log.
func handler(t testing.TB, store *dynamo.Store, level slog.Level, origins ...string) (http.Handler, *journal) {
	t.Helper()
	return newHandler(t, store, level, server.Options{Origins: origins})
}

// handlerWithLimits starts a server with limits, and records its log.
func handlerWithLimits(t testing.TB, store *dynamo.Store, opts server.Options) (http.Handler, *journal) {
	t.Helper()
	return newHandler(t, store, slog.LevelInfo, opts)
}

func newHandler(t testing.TB, store *dynamo.Store, level slog.Level, opts server.Options) (http.Handler, *journal) {
	t.Helper()
	j := &journal{}
	opts.Graph.Store, opts.Graph.Cursors = store, paging.NewCursorSigner([]byte("a key for tests"))
	opts.Log = slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: level}))
	opts.Hosts = append(opts.Hosts, "example.com") // the Host header of httptest
	h, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return h, j
}

// ask sends one request to a handler. header has names and values in turn. A body is sent as JSON.
func ask(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// post returns the request body of a query.
func post(query string) string {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// answerTypes maps values of Accept to the media types of the responses.
var answerTypes = map[string]string{"": "application/json", "application/json": "application/json", "application/graphql-response+json": "application/graphql-response+json"}

// checkRefusal checks that a response is a refusal: one GraphQL error in JSON, no data, and a
// request ID.
func checkRefusal(t testing.TB, w *httptest.ResponseRecorder, status int, code, contentType string) answer {
	t.Helper()
	var got answer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("status %d, no JSON: %.200s", w.Code, w.Body)
	}
	if w.Code != status || len(got.Errors) != 1 || got.Errors[0].Message == "" || got.Errors[0].Extensions["code"] != code || strings.Contains(w.Body.String(), `"data"`) {
		t.Errorf("status %d, body %.300s, want %d %s", w.Code, w.Body, status, code)
	}
	for name, want := range map[string]string{"Content-Type": contentType + "; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if w.Header().Get(name) != want {
			t.Errorf("%s is %q, want %q", name, w.Header().Get(name), want)
		}
	}
	if w.Header().Get("X-Request-Id") == "" {
		t.Error("the reply has no request id")
	}
	return got
}

func TestHealth(t *testing.T) {
	h, j := handler(t, sampleThrough(t, func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		t.Error("the health check reads the table")
		return nil, errors.New("no")
	}), slog.LevelInfo)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if w := ask(h, method, server.PathHealth, ""); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: status %d, header %v", method, w.Code, w.Header())
		}
	}
	j.checkEmpty(t)
}

// Probes read the table only now and then. At least one of 50 responses must be cached, unless they
// took 50 seconds.
func TestReady(t *testing.T) {
	var reads atomic.Int64
	h, j := handler(t, sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		reads.Add(1)
		return next.Do(r)
	}), slog.LevelInfo)
	const asked = 50
	for range asked {
		if w := ask(h, http.MethodGet, server.PathReady, ""); w.Code != http.StatusOK || w.Body.String() != "ready\n" || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("status %d, body %q, header %v", w.Code, w.Body, w.Header())
		}
	}
	if n := reads.Load(); n < 1 || n >= asked {
		t.Errorf("%d checks made %d reads, want fewer", asked, n)
	}
	j.checkEmpty(t)
}

func TestNotReadyWithoutTable(t *testing.T) {
	store, err := dynamo.New(embedded.New().Client(), dynamo.Options{Table: "missing-table"})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := handler(t, store, slog.LevelInfo)
	w := ask(h, http.MethodGet, server.PathReady, "")
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "missing-table") {
		t.Errorf("status %d, body %q, want 503 without the table's name", w.Code, w.Body)
	}
}

// A server whose clock is wrong is not ready and refuses mutations. Queries work.
func TestNotReadyWithAWrongClock(t *testing.T) {
	const change = `mutation { createWarehouse(input: {id: "w9", name: "Nine"}) { warehouse { id } } }`
	h, j := handler(t, sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		response, err := next.Do(r)
		if err == nil {
			response.Header.Set("Date", time.Now().Add(25*time.Hour).UTC().Format(http.TimeFormat))
		}
		return response, err
	}), slog.LevelInfo)
	w := ask(h, http.MethodGet, server.PathReady, "")
	if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), "the server's clock is 2") || !strings.HasSuffix(w.Body.String(), " behind DynamoDB's\n") {
		t.Errorf("status %d, body %q", w.Code, w.Body)
	}
	var got answer
	w = ask(h, http.MethodPost, server.PathGraphQL, post(change))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" || !strings.Contains(got.Errors[0].Message, "behind DynamoDB's") {
		t.Errorf("a change got %s", w.Body)
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Body.String() != aliceAnswer {
		t.Errorf("a query got %s", w.Body)
	}
	var logged []string
	for _, entry := range j.entries(t) {
		logged = append(logged, fmt.Sprint(entry["msg"]))
	}
	if want := []string{"not ready", "query failed"}; !slices.Equal(logged, want) {
		t.Errorf("the log has %q, want %q", logged, want)
	}
}

// If the client of a readiness check disconnects, the next check must not report an error.
func TestReadyOutlivesItsCaller(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, server.PathReady, nil).WithContext(cancelled))
	if w := ask(h, http.MethodGet, server.PathReady, ""); w.Code != http.StatusOK {
		t.Errorf("status %d after a readiness check that was canceled", w.Code)
	}
}

func TestPaths(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{http.MethodGet, "/", http.StatusOK},
		{http.MethodGet, "/nothing-here", http.StatusNotFound},
		{http.MethodGet, "/graphql/", http.StatusNotFound},
		{http.MethodGet, "/healthz/x", http.StatusNotFound},
		{http.MethodGet, "/../../etc/passwd", http.StatusNotFound},
		{http.MethodPost, "/", http.StatusMethodNotAllowed},
	} {
		w := ask(h, c.method, c.target, "")
		// The mux first redirects paths that are not clean.
		if w.Code == http.StatusMovedPermanently || w.Code == http.StatusTemporaryRedirect {
			w = ask(h, c.method, w.Header().Get("Location"), "")
		}
		if w.Code != c.status {
			t.Errorf("%s %s: status %d, want %d", c.method, c.target, w.Code, c.status)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if w := ask(h, method, server.PathGraphQL, post(aliceQuery)); w.Code < 400 || w.Code > 499 || strings.Contains(w.Body.String(), "Alice") {
			t.Errorf("%s: status %d, body %s", method, w.Code, w.Body)
		}
	}
	j.checkEmpty(t)
}

func TestSecurityHeaders(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	if got := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)).Header(); got.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(got.Get("Content-Type"), "application/json") {
		t.Errorf("GraphQL: %v", got)
	}
	if got := ask(h, http.MethodGet, "/", "").Header(); got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Content-Security-Policy") != graphiql.ContentSecurityPolicy {
		t.Errorf("GraphiQL: %v", got)
	}
}

func TestRequestID(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	seen := map[string]bool{"chosen-by-the-client": true}
	for _, target := range []string{"/", "/nothing-here", server.PathHealth, server.PathReady, server.PathGraphQL + "?query=" + url.QueryEscape(aliceQuery), server.PathGraphQL} {
		for range 2 {
			id := ask(h, http.MethodGet, target, "", "X-Request-Id", "chosen-by-the-client").Header().Get("X-Request-Id")
			if id == "" || seen[id] {
				t.Errorf("%s: request id %q, want a new one", target, id)
			}
			seen[id] = true
		}
	}
}

func TestQueriesByGetAndPost(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	get := server.PathGraphQL + "?query=" + url.QueryEscape(`query($id: ID!) { customer(id: $id) { name } }`) + "&variables=" + url.QueryEscape(`{"id":"cust_01"}`)
	for _, w := range []*httptest.ResponseRecorder{ask(h, http.MethodGet, get, ""), ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery))} {
		if w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
			t.Errorf("status %d, body %s", w.Code, w.Body)
		}
	}
	j.checkEmpty(t)
}

// GET must not execute mutations. Otherwise any page could make a browser execute one.
func TestMutationByGetIsRefused(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for _, query := range []string{
		`mutation { confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"}) { order { status } } }`,
		`mutation { confirmOrder(input: {}) { nonsense } }`, // mutations with any other error in them
		`query A { orders { nodes { id } } } mutation B { confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"}) { order { status } } }`,
	} {
		for accept, contentType := range answerTypes {
			w := ask(h, http.MethodGet, server.PathGraphQL+"?operationName=B&query="+url.QueryEscape(strings.Replace(query, "mutation {", "mutation B {", 1)), "", "Accept", accept)
			checkRefusal(t, w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", contentType)
			if w.Header().Get("Allow") != "POST" {
				t.Errorf("Allow is %q, want POST", w.Header().Get("Allow"))
			}
		}
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ order(id: "01HVNR4Q3R0000000000000002") { status } }`)); !strings.Contains(w.Body.String(), "PENDING") {
		t.Errorf("the order is %s", w.Body)
	}
}

// A form on another site can post text/plain without a preflight request.
func TestOnlyJSONIsPosted(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Content-Type", contentType)
		if w.Code < 400 || w.Code > 499 || strings.Contains(w.Body.String(), "Alice") {
			t.Errorf("%s: status %d, body %s", contentType, w.Code, w.Body)
		}
	}
}

func TestBodies(t *testing.T) {
	h, j := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	padded := func(n int) string { return strings.Replace(post(aliceQuery), "{", "{"+strings.Repeat(" ", n), 1) }
	if w := ask(h, http.MethodPost, server.PathGraphQL, padded(100<<10)); w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
		t.Errorf("a body of 100 kB: status %d, body %s", w.Code, w.Body)
	}
	for name, body := range map[string]string{
		"a body over 128 kB":    padded(128 << 10),
		"a body of 10 MB":       padded(10 << 20),
		"no JSON":               "query",
		"JSON of another form":  `["query"]`,
		"a query of other type": `{"query": 5}`,
		"no query":              `{}`,
		"half a body":           `{"query": "{ customer(`,
		"deep nesting":          strings.Repeat(`{"query":`, 10_000),
	} {
		w := ask(h, http.MethodPost, server.PathGraphQL, body)
		var got answer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Errorf("%s: the response is not JSON: %.200s", name, w.Body)
		}
		if w.Code > 499 || len(got.Errors) == 0 || got.Errors[0].Message == "" {
			t.Errorf("%s: status %d, body %.200s", name, w.Code, w.Body)
		}
	}
	j.checkEmpty(t)
}

func TestExplainOnlyIfRequested(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for value, want := range map[string]bool{"true": true, "": false, "false": false, "1": true, "TRUE": true, "0": false, "yes": false} {
		w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), server.ExplainHeader, value)
		if got := strings.Contains(w.Body.String(), `"explain"`); got != want {
			t.Errorf("%q: the response contains explain: %v, want %v", value, got, want)
		}
	}
}

const origin = "https://shop.example"

// Without configured origins, pages of other sites cannot read responses.
func TestNoOriginByDefault(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo)
	for _, w := range []*httptest.ResponseRecorder{
		ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Origin", origin),
		ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Origin", "null"),
		ask(h, http.MethodOptions, server.PathGraphQL, "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type"),
	} {
		if allowed := w.Header().Get("Access-Control-Allow-Origin"); allowed != "" {
			t.Errorf("origin %q is allowed", allowed)
		}
	}
}

func TestConfiguredOrigins(t *testing.T) {
	h, _ := handler(t, sampleThrough(t, forward), slog.LevelInfo, origin, "http://localhost:3000")
	for from, want := range map[string]string{origin: origin, "http://localhost:3000": "http://localhost:3000", "https://evil.example": "", "http://shop.example": "", "https://shop.example.evil.example": ""} {
		w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Origin", from)
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("from %s: the allowed origin is %q, want %q", from, got, want)
		}
		if want != "" && !strings.EqualFold(w.Header().Get("Access-Control-Expose-Headers"), "X-Request-Id, Retry-After") {
			t.Errorf("pages can read the headers %q, want the request id and Retry-After", w.Header().Get("Access-Control-Expose-Headers"))
		}
		if !slices.Contains(w.Header().Values("Vary"), "Origin") {
			t.Errorf("from %s: the response does not vary by origin: %v", from, w.Header())
		}
		// The browser sends a preflight request with the names of the page's headers.
		preflight := ask(h, http.MethodOptions, server.PathGraphQL, "", "Origin", from, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-ordergraph-explain")
		got := preflight.Header()
		if got.Get("Access-Control-Allow-Origin") != want || preflight.Code > 299 {
			t.Errorf("preflight from %s: status %d, %v", from, preflight.Code, got)
		}
		if want != "" && (!strings.Contains(strings.ToLower(got.Get("Access-Control-Allow-Headers")), "x-ordergraph-explain") || got.Get("Access-Control-Allow-Methods") != "POST") {
			t.Errorf("preflight from %s allows %v", from, got)
		}
		if got.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("cookies are allowed")
		}
	}
}

// failure responds to every request with an error, as a failing engine would.
func failure(status int, kind, message string) interceptor {
	return func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
		body, err := json.Marshal(map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + kind, "message": message})
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
	}
}

// If the store fails, the client gets UNAVAILABLE or INTERNAL without details. The log has the
// details once, under the request ID of the response.
func TestFailuresOfTheStore(t *testing.T) {
	const secret = "arn:aws:dynamodb:eu-west-1:123456789012:table/orders"
	for _, c := range []struct {
		name  string
		fails interceptor
		code  string
	}{
		{"connection refused", func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused to " + secret)}
		}, "UNAVAILABLE"},
		{"timeout", func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) { return nil, context.DeadlineExceeded }, "UNAVAILABLE"},
		{"server error", failure(500, "InternalServerError", secret), "UNAVAILABLE"},
		{"unknown server error", failure(503, "Oops", secret), "UNAVAILABLE"},
		{"a gateway's page", func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
			return &http.Response{StatusCode: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader("<html>" + secret)), Request: r}, nil
		}, "UNAVAILABLE"},
		{"throttled", failure(400, "ProvisionedThroughputExceededException", secret), "UNAVAILABLE"},
		{"no table", failure(400, "ResourceNotFoundException", secret), "UNAVAILABLE"},
		{"access denied", failure(400, "AccessDeniedException", secret), "UNAVAILABLE"},
		{"expired token", failure(400, "ExpiredTokenException", secret), "UNAVAILABLE"},
		{"a request that is wrong", failure(400, "ValidationException", secret), "INTERNAL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, j := handler(t, sampleThrough(t, c.fails), slog.LevelInfo)
			w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery))
			var got answer
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != http.StatusOK || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != c.code {
				t.Fatalf("status %d, errors %+v, want one %s", w.Code, got.Errors, c.code)
			}
			want := map[string]any{"code": c.code}
			if c.code == "INTERNAL" {
				want["requestId"] = w.Header().Get("X-Request-Id")
			}
			if !maps.Equal(got.Errors[0].Extensions, want) {
				t.Errorf("extensions %v, want %v", got.Errors[0].Extensions, want)
			}
			for _, internal := range []string{"arn:", "test-", "cust_01", "CUSTOMER", "#", "GetItem", "refused", "Exception", "aws"} {
				if strings.Contains(got.Errors[0].Message, internal) {
					t.Errorf("the message contains %s: %s", internal, got.Errors[0].Message)
				}
			}
			if strings.Contains(strings.ToLower(got.Errors[0].Message), "dynamodb") {
				t.Errorf("the message names the store: %s", got.Errors[0].Message)
			}
			log := j.entries(t)
			if len(log) != 1 || log[0]["level"] != "ERROR" || log[0]["requestId"] != w.Header().Get("X-Request-Id") || !strings.Contains(log[0]["error"].(string), "GetItem") {
				t.Errorf("request %s, log %v, want one error that names the operation", w.Header().Get("X-Request-Id"), log)
			}
		})
	}
}

// blocked is an engine whose requests wait for the test.
type blocked struct{ arrived, release chan struct{} }

func newBlocked() blocked { return blocked{make(chan struct{}, 10), make(chan struct{})} }

func (b blocked) pass(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	b.arrived <- struct{}{}
	select {
	case <-b.release:
		return next.Do(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// If a client disconnects, its reads are cancelled and no error is logged.
func TestAClientThatGoesAwayIsNotLogged(t *testing.T) {
	b := newBlocked()
	h, j := handler(t, sampleThrough(t, b.pass), slog.LevelInfo)
	s := httptest.NewServer(h)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+server.PathGraphQL, strings.NewReader(post(aliceQuery)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	done := make(chan error)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	<-b.arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	s.Close() // waits until the request has ended, which the test has not released
	j.checkEmpty(t)
}

// When the server stops, it accepts no new connections and completes the requests in progress.
func TestServeDrains(t *testing.T) {
	b := newBlocked()
	h, j := handler(t, sampleThrough(t, b.pass), slog.LevelInfo)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, l, h, server.Options{Log: slog.New(slog.DiscardHandler)}) }()
	got := make(chan string)
	go func() {
		res, err := http.Post("http://"+l.Addr().String()+server.PathGraphQL, "application/json", strings.NewReader(post(aliceQuery)))
		if err != nil {
			got <- err.Error()
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		got <- string(body)
	}()
	<-b.arrived
	stop()
	for { // until the server has closed its listener
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break
		}
		_ = c.Close()
	}
	close(b.release)
	if body := <-got; body != aliceAnswer {
		t.Errorf("the request that was in progress got %s", body)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	j.checkEmpty(t)
}

func TestServeReturnsListenErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := server.Serve(context.Background(), l, http.NotFoundHandler(), server.Options{Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want net.ErrClosed", err)
	}
}
