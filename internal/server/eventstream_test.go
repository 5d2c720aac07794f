package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
)

func listenLocal(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// events is a client's end of an event stream.
type events struct {
	t        testing.TB
	response *http.Response
	lines    *bufio.Reader
	leave    context.CancelFunc
	comments int
}

func (l *liveServer) stream(query string) *events {
	l.t.Helper()
	e := l.request(http.MethodPost, l.url(), post(query))
	if e.response.StatusCode != http.StatusOK || e.response.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		l.t.Fatalf("status %d, header %v", e.response.StatusCode, e.response.Header)
	}
	return e
}

func (l *liveServer) request(method, url, body string, header ...string) *events {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	l.t.Cleanup(cancel)
	e, err := l.try(ctx, cancel, method, url, body, header...)
	if err != nil {
		l.t.Fatal(err)
	}
	return e
}

func (l *liveServer) try(ctx context.Context, cancel context.CancelFunc, method, url, body string, header ...string) (*events, error) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	l.t.Cleanup(func() { response.Body.Close() })
	return &events{l.t, response, bufio.NewReader(response.Body), cancel, 0}, nil
}

// retryStream opens an event stream on a server with short timeouts. On a busy machine, sending the
// request or starting the operation can exceed them. Then the server closes the connection or
// responds with a timeout, and begun tries again.
func (l *liveServer) retryStream(method, url, body string) *events {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	l.t.Cleanup(cancel)
	for {
		e, err := l.try(ctx, cancel, method, url, body)
		switch {
		case ctx.Err() != nil:
			l.t.Fatalf("the stream did not begin: %v", err)
		case err != nil:
		case e.response.StatusCode == http.StatusOK:
			return e
		default:
			e.response.Body.Close()
		}
	}
}

// next returns the next event, or io.EOF after the end of the stream.
func (e *events) next() (name, data string, err error) {
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return name, data, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && name != "":
			return name, data, nil
		case line == "":
		case field == "":
			e.comments++
		case field == "event":
			name = value
		case field == "data":
			data += value
		default:
			e.t.Fatalf("line %q", line)
		}
	}
}

func (e *events) want(name, data string) {
	e.t.Helper()
	gotName, gotData, err := e.next()
	if err != nil || gotName != name || gotData != data {
		e.t.Fatalf("received the event %q %s, %v, want %q %s", gotName, gotData, err, name, data)
	}
}

// A query is one event and a subscription many, by GET and by POST.
func TestEventStreams(t *testing.T) {
	l := newLive(t, server.Options{})
	order := l.place()
	once := l.stream(aliceQuery)
	once.want("next", aliceAnswer)
	once.want("complete", "")
	if _, _, err := once.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the complete event: %v, want EOF", err)
	}
	done := l.stream(fmt.Sprintf(`mutation { setOrderItem(input: {orderId: %q, sku: "prod_100", quantity: 3}) { userErrors { message } } }`, order))
	done.want("next", `{"data":{"setOrderItem":{"userErrors":[]}}}`)
	done.want("complete", "")

	query := fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { order { items { nodes { quantity } } } } }`, order, l.last(order))
	byPost := l.stream(query)
	byGet := l.request(http.MethodGet, "http://"+l.addr+get(query), "")
	if header := byGet.response.Header; header.Get("Cache-Control") != "no-store" || header.Get("X-Request-Id") == "" || header.Get("Content-Encoding") != "" {
		t.Errorf("header %v", header)
	}
	l.waitForSubscriptions(2)
	for quantity := 4; quantity < 7; quantity++ {
		l.set(order, quantity)
		for _, e := range []*events{byPost, byGet} {
			e.want("next", fmt.Sprintf(`{"data":{"orderUpdated":{"order":{"items":{"nodes":[{"quantity":%d}]}}}}}`, quantity))
		}
	}
	byPost.leave()
	l.waitForSubscriptions(1)
	byGet.leave()
	l.waitForNoSubscriptions()
	l.log.checkEmpty(t)
}

// An event has its warehouse, both when it happens and when it is delivered again.
func TestEventsHaveTheWarehouse(t *testing.T) {
	l := newLive(t, server.Options{})
	order := l.place()
	query := fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { event { type warehouse { name } } } }`, order, l.last(order))
	delivered := func(e *events) {
		t.Helper()
		e.want("next", `{"data":{"orderUpdated":{"event":{"type":"CONFIRMED","warehouse":null}}}}`)
		e.want("next", `{"data":{"orderUpdated":{"event":{"type":"SHIPPED","warehouse":{"name":"Seattle"}}}}}`)
	}
	live := l.stream(query)
	l.waitForSubscriptions(1)
	l.stream(fmt.Sprintf(`mutation { confirmOrder(input: {orderId: %q}) { userErrors { message } } }`, order)).want("next", `{"data":{"confirmOrder":{"userErrors":[]}}}`)
	l.stream(fmt.Sprintf(`mutation { shipOrder(input: {orderId: %q, warehouseId: "wh_sea", withoutAddress: true}) { userErrors { message } } }`, order)).want("next", `{"data":{"shipOrder":{"userErrors":[]}}}`)
	delivered(live)
	delivered(l.stream(query))
}

// Each event explains its reads if the request asks for explain.
func TestEventStreamsExplain(t *testing.T) {
	l := newLive(t, server.Options{})
	order := l.place()
	e := l.request(http.MethodPost, l.url(), post(fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { order { customer { name } } } }`, order, l.last(order))), server.ExplainHeader, "true")
	l.set(order, 2)
	if name, data, err := e.next(); err != nil || name != "next" || !strings.Contains(data, `"accessPattern":"AP6"`) {
		t.Errorf("%q %s, %v", name, data, err)
	}
}

// A request that is refused before the stream begins gets an HTTP status and a JSON body.
func TestEventStreamsThatAreRefused(t *testing.T) {
	l := newLive(t, server.Options{Admission: admission.New(admission.Sizes{admission.PoolSubscriptions: 1})})
	const follow = `subscription { orderStatusChanged { id } }`
	for name, c := range map[string]struct {
		events *events
		status int
		code   string
	}{
		"an unknown order":  {l.request(http.MethodPost, l.url(), post(`subscription { orderUpdated(id: "01HVMK3P2QRSV8T4X6Y9ZABCDZ") { id } }`)), http.StatusBadRequest, "NOT_FOUND"},
		"a bad document":    {l.request(http.MethodPost, l.url(), post(`{`)), http.StatusBadRequest, "BAD_USER_INPUT"},
		"a mutation by GET": {l.request(http.MethodGet, "http://"+l.addr+get(`mutation { __typename }`), ""), http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED"},
		"a forged GET":      {l.request(http.MethodGet, "http://"+l.addr+get(follow), "", "Origin", "https://evil.example"), http.StatusForbidden, "CSRF_PREVENTED"},
		"no JSON":           {l.request(http.MethodPost, l.url(), `{`), http.StatusBadRequest, "BAD_REQUEST"},
		"DELETE":            {l.request(http.MethodDelete, l.url(), ""), http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED"},
	} {
		t.Run(name, func(t *testing.T) { c.events.refused(t, c.status, c.code) })
	}
	first := l.stream(follow)
	l.waitForSubscriptions(1)
	l.request(http.MethodPost, l.url(), post(follow)).refused(t, http.StatusServiceUnavailable, "TOO_MANY_SUBSCRIPTIONS")
	l.log.checkShedding(t)
	first.leave()
	l.waitForNoSubscriptions()
	// A server without a change feed refuses subscriptions.
	h, _ := newHandler(t, sampleThrough(t, forward), 12, server.Options{})
	unfed := &liveServer{t: t, addr: listenTCP(t, h, server.Options{})}
	unfed.request(http.MethodPost, unfed.url(), post(follow)).refused(t, http.StatusBadRequest, "SUBSCRIPTIONS_OFF")
}

func (e *events) refused(t testing.TB, status int, code string) {
	t.Helper()
	body, err := io.ReadAll(e.response.Body)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	w.Code = e.response.StatusCode
	w.Body.Write(body)
	for name, values := range e.response.Header {
		w.Header()[name] = values
	}
	checkRefusal(t, w, status, code, asJSON)
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		t.Error("no response has Retry-After")
	}
}

// A rate-limited request gets Retry-After, as without a stream.
func TestRateLimitedStreams(t *testing.T) {
	now := time.Now()
	l := newLive(t, server.Options{}, func(o *server.Options) {
		o.Graph.Rates = rate.Options{Burst: 10, Restore: 2, Now: func() time.Time { return now }}
	})
	if _, data, err := l.stream(`{ ` + typenames(9) + ` }`).next(); err != nil || !strings.Contains(data, `"available":1`) {
		t.Fatalf("%s, %v", data, err)
	}
	e := l.request(http.MethodPost, l.url(), post(`{ `+typenames(4)+` }`))
	e.refused(t, http.StatusTooManyRequests, "RATE_LIMITED")
	if got := e.response.Header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After is %q, want 2", got)
	}
}

// The response to a subscription by a plain request names the supported transports.
func TestSubscriptionsNeedAStream(t *testing.T) {
	l := newLive(t, server.Options{})
	const follow = `subscription { orderStatusChanged { id } }`
	l.request(http.MethodPost, l.url(), post(follow), "Accept", asGraphQL).told(t)
	l.request(http.MethodGet, "http://"+l.addr+get(follow), "", "Accept", asGraphQL).told(t)
}

func (e *events) told(t *testing.T) {
	t.Helper()
	body, err := io.ReadAll(e.response.Body)
	if err != nil || e.response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "text/event-stream") || !strings.Contains(string(body), "BAD_USER_INPUT") {
		t.Errorf("status %d, %s, %v", e.response.StatusCode, body, err)
	}
}

// A silent stream sends comments. The timeouts of requests do not end it.
func TestEventStreamsAreKeptAlive(t *testing.T) {
	l := newLive(t, server.Options{Limits: server.Limits{KeepAlive: 5 * time.Millisecond, HeaderTime: 20 * time.Millisecond, BodyTime: 20 * time.Millisecond, RequestTime: 100 * time.Millisecond, AnswerTime: time.Second}})
	order := l.place()
	query := fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { orderId } }`, order, l.last(order))
	byPost := l.retryStream(http.MethodPost, l.url(), post(query))
	byGet := l.retryStream(http.MethodGet, "http://"+l.addr+get(query), "")
	l.waitForSubscriptions(2)
	for _, e := range []*events{byPost, byGet} {
		for e.comments < 30 { // longer than 100 ms
			line, err := e.lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, ":") {
				e.comments++
			}
		}
	}
	l.set(order, 2)
	for _, e := range []*events{byPost, byGet} {
		e.want("next", fmt.Sprintf(`{"data":{"orderUpdated":{"orderId":%q}}}`, order))
	}
}

// If the change feed drops a slow subscription, the stream ends with the reason.
func TestEventStreamsThatAreTooSlow(t *testing.T) {
	l := newLiveWith(t, server.Options{Limits: server.Limits{AnswerTime: testTimeout}}, feed.Options{QueueCapacity: 4})
	order := l.place()
	e := l.stream(fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { id %s } }`, order, l.last(order), largeSelection()))
	l.waitForSubscriptions(1)
	for n := 0; l.feed.Subscriptions() > 0 && n < 50_000; n++ {
		l.set(order, n%90+2)
	}
	for {
		name, data, err := e.next()
		if err != nil {
			t.Fatal(err)
		}
		if name == "next" && strings.Contains(data, "TOO_SLOW") {
			break
		}
	}
	e.want("complete", "")
}

// The connection of a client that reads nothing is closed.
func TestEventStreamsThatAreNotRead(t *testing.T) {
	l := newLive(t, server.Options{Limits: server.Limits{AnswerTime: time.Second}})
	order := l.place()
	l.stream(fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { id %s } }`, order, l.last(order), largeSelection()))
	l.waitForSubscriptions(1)
	for n := 0; l.feed.Subscriptions() > 0; n++ {
		if n > 50_000 {
			t.Fatal("it is not cut")
		}
		l.set(order, n%90+2)
	}
	l.waitForNoSubscriptions()
}
