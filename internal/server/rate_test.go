package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/server"
)

// responseCost is extensions.cost of a response.
type responseCost struct{ Requested, Actual, Available, Maximum, RestoreRate int }

func costOf(t testing.TB, w *httptest.ResponseRecorder) responseCost {
	t.Helper()
	var got struct{ Extensions struct{ Cost *responseCost } }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Extensions.Cost == nil {
		t.Fatalf("no cost in %s (%v)", w.Body, err)
	}
	return *got.Extensions.Cost
}

// newRateLimited starts a server with rate limits: buckets of 100 points, which refill by two
// points per second. It also returns a function that advances the clock.
func newRateLimited(t *testing.T) (http.Handler, *journal, func(time.Duration)) {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	h, j := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{
		Origins: []string{"https://shop.example"},
		Graph:   graph.Options{Limits: document.Limits{Cost: 100}, Rates: rate.Options{Burst: 100, Restore: 2, Now: clock}},
	})
	return h, j, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
}

// A caller without points gets 429 with any media type and method. Retry-After is the time until
// the request is accepted.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	h, j, forward := newRateLimited(t)
	const orders = `{ orders(first: 40) { nodes { id status } } }` // the cost is 1 + 10 + 1 + 40*3, too much; with 20 orders it is 72
	checkRefusal(t, ask(h, http.MethodPost, server.PathGraphQL, post(orders), "Accept", asGraphQL), http.StatusBadRequest, "TOO_EXPENSIVE", asGraphQL)
	w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ a: orders(first: 20) { nodes { id status } } }`))
	cost := costOf(t, w)
	if want := (responseCost{72, cost.Actual, 99 - cost.Actual, 100, 2}); w.Code != http.StatusOK || cost != want || cost.Actual < 12+3 || cost.Actual > 72 {
		t.Fatalf("status %d, %+v, %s", w.Code, cost, w.Body)
	}
	left := cost.Available
	ask(h, http.MethodPost, server.PathGraphQL, post(`{ `+typenames(left-12)+` }`))
	left = 12
	for _, request := range []struct{ method, target, body string }{
		{http.MethodPost, server.PathGraphQL, post(`{ customers(first: 5) { nodes { id } } }`)}, // the cost is 22
		{http.MethodGet, get(`{ customers(first: 5) { nodes { id } } }`), ""},
	} {
		for accept, contentType := range map[string]string{"": asJSON, asJSON: asJSON, asGraphQL: asGraphQL, "text/event-stream": asJSON} {
			w := ask(h, request.method, request.target, request.body, "Accept", accept, "Origin", "https://shop.example", "Apollo-Require-Preflight", "true")
			got := checkRefusal(t, w, http.StatusTooManyRequests, "RATE_LIMITED", contentType)
			left--
			wait := float64(22-left) / 2
			if retry := got.Errors[0].Extensions["retryAfter"]; retry != wait {
				t.Errorf("%s: retryAfter is %v, want %v", request.method, retry, wait)
			}
			if retry, err := time.ParseDuration(w.Header().Get("Retry-After") + "s"); err != nil || retry < time.Duration(wait*float64(time.Second)) || retry >= time.Duration((wait+1)*float64(time.Second)) {
				t.Errorf("%s: Retry-After is %q, want %v rounded up", request.method, w.Header().Get("Retry-After"), wait)
			}
			if cost, want := costOf(t, w), (responseCost{22, 1, left, 100, 2}); cost != want || got.Errors[0].Extensions["cost"] == nil {
				t.Errorf("%s: %+v, want %+v", request.method, cost, want)
			}
		}
	}
	// Cheap requests are accepted meanwhile.
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Code != http.StatusOK || costOf(t, w) != (responseCost{2, 2, 2, 100, 2}) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	forward(10 * time.Second)
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ customers(first: 5) { nodes { id } } }`)); w.Code != http.StatusOK {
		t.Errorf("after the time of Retry-After: status %d, %s", w.Code, w.Body)
	}
	j.checkEmpty(t)
}

func typenames(n int) string {
	text := ""
	for i := range n {
		text += " a" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ": __typename"
	}
	return text
}

// A request that HTTP refuses is charged one point and its bytes, as every request is. Without
// points the request is not decoded, so the response is 429 for any malformed request.
func TestRefusedRequestsAreCharged(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" ", 10<<10)
	for name, c := range map[string]struct {
		method, target, body string
		header               []string
		status, cost         int
	}{
		"JSON that breaks off":      {http.MethodPost, server.PathGraphQL, `{"query":`, nil, http.StatusBadRequest, 1},
		"a long body of no JSON":    {http.MethodPost, server.PathGraphQL, long, nil, http.StatusBadRequest, 1 + 10},
		"no Content-Type":           {http.MethodPost, server.PathGraphQL, post(aliceQuery), []string{"Content-Type", ""}, http.StatusUnsupportedMediaType, 1},
		"a body that is too long":   {http.MethodPost, server.PathGraphQL, strings.Repeat(" ", 200<<10), nil, http.StatusRequestEntityTooLarge, 1},
		"a GET that may be forged":  {http.MethodGet, get(aliceQuery), "", []string{"Origin", "https://evil.example"}, http.StatusForbidden, 1},
		"a URL that is too long":    {http.MethodGet, get(`{` + strings.Repeat("a", 17<<10) + `}`), "", []string{"Apollo-Require-Preflight", "true"}, http.StatusRequestURITooLong, 1 + 17},
		"a long document that fits": {http.MethodPost, server.PathGraphQL, post(`{ __typename #` + long + "\n}"), nil, http.StatusOK, 1 + 10},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, _ := newRateLimited(t)
			for points := 100; points > 0; points -= c.cost {
				w := ask(h, c.method, c.target, c.body, c.header...)
				if points < c.cost {
					checkRefusal(t, w, http.StatusTooManyRequests, "RATE_LIMITED", asJSON)
					if cost := costOf(t, w); cost != (responseCost{c.cost, 0, points, 100, 2}) || w.Header().Get("Retry-After") == "" {
						t.Errorf("with %d points, the refusal has the cost %+v and Retry-After %q", points, cost, w.Header().Get("Retry-After"))
					}
					return
				}
				if w.Code != c.status {
					t.Fatalf("with %d points: status %d, want %d: %s", points, w.Code, c.status, w.Body)
				}
			}
			checkRefusal(t, ask(h, c.method, c.target, c.body, c.header...), http.StatusTooManyRequests, "RATE_LIMITED", asJSON)
		})
	}
}

// On a socket, an operation costs as much as over HTTP. If the caller has too few points for a
// message, the server waits until it has enough. A caller without points cannot send invalid
// messages for free on new sockets.
func TestMessagesAreCharged(t *testing.T) {
	t.Parallel()
	c := &paidClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	l := newLive(t, server.Options{}, func(o *server.Options) {
		o.Graph.Rates = rate.Options{Burst: 20, Restore: 1, Now: c.Now, Sleep: c.sleep}
	})
	began := c.Now()
	w, blanks := l.open(), strings.Repeat(" ", 5<<10)
	w.send(frame{Type: "ping", Payload: json.RawMessage(`{"a":"` + blanks + `"}`)})
	w.want("pong", "")
	w.subscribe("a", `{ __typename #`+blanks+"\n}")
	const want = `{"requested":6,"actual":6,"available":7,"maximum":20,"restoreRate":1}` // 1 point for connection_init, and 6 for the ping
	if got := w.want("next", "a"); !strings.Contains(string(got.Payload), want) {
		t.Errorf("%s, want %s", got.Payload, want)
	}
	w.want("complete", "a")
	w.subscribe("b", `{ customers(first: 5) { nodes { id } } }`) // the cost is 22
	if got := codes(t, w.want("error", "b")); got != "TOO_EXPENSIVE" {
		t.Errorf("an operation that costs more than the maximum balance gets %s", got)
	}
	w.subscribe("c", `{ orders(first: 1) { nodes { id } } }`) // the cost is 14, more than is left
	if got := codes(t, w.want("error", "c")); got != "RATE_LIMITED" {
		t.Errorf("an operation without points gets %s", got)
	}
	if waited := c.Now().Sub(began); waited != 0 {
		t.Errorf("the server waited for %v, although there were points for each message", waited)
	}
	w.send(frame{Type: "ping", Payload: json.RawMessage(`{"a":"` + blanks + blanks + `"}`)})
	w.want("pong", "")
	if waited := c.Now().Sub(began); waited < 3*time.Second || waited > 12*time.Second {
		t.Errorf("the server waited for %v, want about the time to regain the missing points", waited)
	}
	w.text(`{"id":"d","type":"subscribe","payload":{"query":1}}`)
	w.closed(4400)
	before := c.Now()
	w = l.open()
	w.subscribe("e", `{ __typename }`)
	w.want("next", "e")
	if waited := c.Now().Sub(before); waited < time.Second {
		t.Errorf("the next socket waited for %v, want at least a second", waited)
	}
}
