package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/server"
)

// costTold is extensions.cost of an answer.
type costTold struct{ Requested, Actual, Available, Maximum, RestoreRate int }

func toldCost(t testing.TB, w *httptest.ResponseRecorder) costTold {
	t.Helper()
	var got struct{ Extensions struct{ Cost *costTold } }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Extensions.Cost == nil {
		t.Fatalf("no cost in %s (%v)", w.Body, err)
	}
	return *got.Extensions.Cost
}

// rated is a server with a bucket of 100 points, of which two come back each second, and what puts
// its clock forward.
func rated(t *testing.T) (http.Handler, *journal, func(time.Duration)) {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	h, j := newHandler(t, sampleThrough(t, direct), slog.LevelInfo, server.Options{
		Origins: []string{"https://shop.example"},
		Graph:   graph.Options{Limits: document.Limits{Cost: 100}, Rates: rate.Options{Burst: 100, Restore: 2, Now: clock}},
	})
	return h, j, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
}

// Who has used up their points is answered 429, whatever the answer's type and the method, with the
// time after which it fits; it fits then.
func TestRateLimits(t *testing.T) {
	h, j, forward := rated(t)
	const orders = `{ orders(first: 40) { nodes { id status } } }` // 1 + 10 + 1 + 40*3 is too much, with 20 it is 72
	check(t, ask(h, http.MethodPost, server.PathGraphQL, post(orders), "Accept", asGraphQL), http.StatusBadRequest, "TOO_EXPENSIVE", asGraphQL)
	w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ a: orders(first: 20) { nodes { id status } } }`))
	told := toldCost(t, w)
	if want := (costTold{72, told.Actual, 99 - told.Actual, 100, 2}); w.Code != http.StatusOK || told != want || told.Actual < 12+3 || told.Actual > 72 {
		t.Fatalf("status %d, %+v, %s", w.Code, told, w.Body)
	}
	left := told.Available
	ask(h, http.MethodPost, server.PathGraphQL, post(`{ `+typenames(left-12)+` }`))
	left = 12
	for _, by := range []struct{ method, target, body string }{
		{http.MethodPost, server.PathGraphQL, post(`{ customers(first: 5) { nodes { id } } }`)}, // 22
		{http.MethodGet, get(`{ customers(first: 5) { nodes { id } } }`), ""},
	} {
		for accept, contentType := range map[string]string{"": asJSON, asJSON: asJSON, asGraphQL: asGraphQL, "text/event-stream": asJSON} {
			w := ask(h, by.method, by.target, by.body, "Accept", accept, "Origin", "https://shop.example", "Apollo-Require-Preflight", "true")
			got := check(t, w, http.StatusTooManyRequests, "RATE_LIMITED", contentType)
			left--
			wait := float64(22-left) / 2
			if retry := got.Errors[0].Extensions["retryAfter"]; retry != wait {
				t.Errorf("%s: retryAfter is %v, want %v", by.method, retry, wait)
			}
			if retry, err := time.ParseDuration(w.Header().Get("Retry-After") + "s"); err != nil || retry < time.Duration(wait*float64(time.Second)) || retry >= time.Duration((wait+1)*float64(time.Second)) {
				t.Errorf("%s: Retry-After is %q, want %v rounded up", by.method, w.Header().Get("Retry-After"), wait)
			}
			if told, want := toldCost(t, w), (costTold{22, 1, left, 100, 2}); told != want || got.Errors[0].Extensions["cost"] == nil {
				t.Errorf("%s: %+v, want %+v", by.method, told, want)
			}
		}
	}
	// Small ones fit meanwhile.
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(alice)); w.Code != http.StatusOK || toldCost(t, w) != (costTold{2, 2, 2, 100, 2}) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	forward(10 * time.Second)
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ customers(first: 5) { nodes { id } } }`)); w.Code != http.StatusOK {
		t.Errorf("after the wait: status %d, %s", w.Code, w.Body)
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
