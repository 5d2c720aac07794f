package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
)

// slowReader is a client that reads nothing of a response until the test releases it.
type slowReader struct {
	*httptest.ResponseRecorder
	waiting, readAllowed chan struct{}
}

func (r slowReader) Write(b []byte) (int, error) {
	r.waiting <- struct{}{}
	<-r.readAllowed
	return r.ResponseRecorder.Write(b)
}

// longSelection returns a selection whose response has at least the given number of kilobytes.
func longSelection(field string, kilobytes int) string {
	var b strings.Builder
	for i := range kilobytes * 5 {
		fmt.Fprintf(&b, "%s%03d: %s ", strings.Repeat("a", 190), i, field)
	}
	return b.String()
}

// checkNoCapacity checks that a request was refused because the pool has no capacity for it.
func checkNoCapacity(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	checkRefusal(t, w, http.StatusServiceUnavailable, "OVERLOADED", "application/json")
	if w.Header().Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", name)
	}
}

// The memory of unread responses is bounded. Short ones are always sent. A mutation that was
// executed never gets an error that asks for a retry.
func TestAnswersThatAreNotReadAreBounded(t *testing.T) {
	h, j := handlerWithLimits(t, sampleThrough(t, forward), server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequestBodies: 30 << 10})})
	query := post(`{ customer(id: "cust_01") { ` + longSelection("id", 17) + `} }`)
	first := slowReader{httptest.NewRecorder(), make(chan struct{}, 10), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, strings.NewReader(query))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(first, r)
	}()
	<-first.waiting
	checkNoCapacity(t, "a long answer", ask(h, http.MethodPost, server.PathGraphQL, query))
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
		t.Errorf("a short response: status %d, body %s", w.Code, w.Body)
	}
	w := ask(h, http.MethodPost, server.PathGraphQL, post(`mutation { createCustomer(input: {id: "cust_new", name: "Ann", email: "ann@example.com"}) { customer { `+longSelection("id", 17)+`} } }`), "Accept", "application/graphql-response+json")
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, `"data":null`) || !strings.Contains(body, "OVERLOADED") || !strings.Contains(body, "was executed") {
		t.Errorf("a mutation: status %d, body %.300s", w.Code, body)
	}
	// Sockets and event streams share this pool.
	l := &liveServer{t: t, addr: listenTCP(t, h, server.Options{})}
	s := l.open()
	text := `{ customer(id: "cust_01") { ` + longSelection("id", 17) + `} }`
	s.subscribe("1", text)
	if got := codes(t, s.want("error", "1")); got != "OVERLOADED" {
		t.Errorf("a long response on a socket: %s", got)
	}
	s.subscribe("2", aliceQuery)
	s.want("next", "2")
	s.want("complete", "2")
	s.subscribe("3", `mutation { updateCustomer(input: {id: "cust_new", name: "Ann"}) { customer { `+longSelection("id", 17)+`} } }`)
	if got := string(s.want("next", "3").Payload); !strings.Contains(got, `"data":null`) || !strings.Contains(got, "was executed") {
		t.Errorf("a mutation on a socket: %.300s", got)
	}
	s.want("complete", "3")
	if name, data, err := l.stream(text).next(); err != nil || name != "next" || !strings.Contains(data, "OVERLOADED") {
		t.Errorf("a long response on an event stream: %v, %s %.300s", err, name, data)
	}
	close(first.readAllowed)
	<-done
	s.subscribe("4", text)
	s.want("next", "4")
	s.want("complete", "4") // then the capacity is free
	for range 3 {
		if w := ask(h, http.MethodPost, server.PathGraphQL, query); w.Code != http.StatusOK || w.Body.Len() < 17<<10 || w.Body.String() != first.Body.String() {
			t.Errorf("a long response after the first was read: status %d, body %.300s", w.Code, w.Body)
		}
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ customer(id: "cust_new") { name } }`)); !strings.Contains(w.Body.String(), "Ann") {
		t.Errorf("the record after the mutation: %s", w.Body)
	}
	j.checkShedding(t)
}

// The memory of incomplete bodies is bounded. Short bodies always have capacity.
func TestBodiesThatDoNotArriveAreBounded(t *testing.T) {
	h, j := handlerWithLimits(t, sampleThrough(t, forward), server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequestBodies: 130 << 10})})
	long := strings.Repeat(" ", 20<<10)
	body, slow := io.Pipe()
	got := make(chan *httptest.ResponseRecorder)
	go func() {
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got <- w
	}()
	if _, err := io.WriteString(slow, long); err != nil { // it returns when everything has been read
		t.Fatal(err)
	}
	checkNoCapacity(t, "a long body", ask(h, http.MethodPost, server.PathGraphQL, long+post(aliceQuery)))
	for _, short := range []string{post(aliceQuery), strings.Repeat(" ", 16<<10-1-len(post(aliceQuery))) + post(aliceQuery)} {
		if w := ask(h, http.MethodPost, server.PathGraphQL, short); w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
			t.Errorf("a short body of %d bytes: status %d, body %s", len(short), w.Code, w.Body)
		}
	}
	// Messages on sockets have the same limit.
	ping := `{"type":"ping","payload":{"a":"` + strings.Repeat("a", len(long)) + `"}}`
	l := &liveServer{t: t, addr: listenTCP(t, h, server.Options{})}
	s := l.open()
	s.text(`{"type":"ping"}`)
	s.want("pong", "")
	s.text(ping)
	s.closed(websocket.StatusTryAgainLater)
	if _, err := io.WriteString(slow, post(aliceQuery)); err != nil {
		t.Fatal(err)
	}
	_ = slow.Close()
	if w := <-got; w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
		t.Errorf("the request with the slow body: status %d, body %s", w.Code, w.Body)
	}
	s = l.open()
	s.text(ping)
	s.want("pong", "")
	for range 10 {
		if w := ask(h, http.MethodPost, server.PathGraphQL, long+post(aliceQuery)); w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
			t.Errorf("a long body after the first has arrived: status %d, body %s", w.Code, w.Body)
		}
	}
	j.checkShedding(t)
}

// If the operations in progress reach the maximum cost, expensive operations are refused and cheap
// ones are accepted.
func TestSheddingByCost(t *testing.T) {
	b := newBlocked()
	h, j := newHandler(t, sampleThrough(t, b.pass), slog.LevelInfo,
		server.Options{Admission: admission.New(admission.Sizes{admission.PoolOperationCost: 4000})})
	fields := ""
	for i := range 25 {
		fields += fmt.Sprintf("a%d: id ", i)
	}
	large := post(`{ orders(first: 100) { nodes { ` + fields + `} } }`)
	got := make(chan *httptest.ResponseRecorder)
	go func() { got <- ask(h, http.MethodPost, server.PathGraphQL, large) }()
	<-b.arrived
	checkNoCapacity(t, "a large one", ask(h, http.MethodPost, server.PathGraphQL, large))
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(`{ __typename }`)); w.Code != http.StatusOK {
		t.Errorf("a cheap query: status %d, body %s", w.Code, w.Body)
	}
	close(b.release)
	if w := <-got; w.Code != http.StatusOK {
		t.Errorf("the expensive query in progress: status %d, body %s", w.Code, w.Body)
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, large); w.Code != http.StatusOK {
		t.Errorf("an expensive query after the first has ended: status %d, body %s", w.Code, w.Body)
	}
	j.checkShedding(t)
}

// The payload of a pong counts like a response. Without capacity, the pong has no payload.
func TestPongsUseCapacity(t *testing.T) {
	opts := server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequestBodies: 30 << 10})}
	h, j := handlerWithLimits(t, sampleThrough(t, forward), opts)
	first := slowReader{httptest.NewRecorder(), make(chan struct{}, 10), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, strings.NewReader(post(`{ customer(id: "cust_01") { `+longSelection("id", 17)+`} }`)))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(first, r)
	}()
	<-first.waiting
	l := &liveServer{t: t, addr: listenTCP(t, h, opts), log: j}
	w := l.open()
	ping := func(bytes int) int {
		w.text(`{"type":"ping","payload":{"x":"` + strings.Repeat("x", bytes) + `"}}`)
		return len(w.want("pong", "").Payload)
	}
	if long, short := ping(20<<10), ping(10); long != 0 || short < 10 {
		t.Errorf("the pong for a long ping has %d bytes, for a short ping %d; want 0 and the payload", long, short)
	}
	close(first.readAllowed)
	<-done
	for range 3 {
		if long := ping(20 << 10); long < 20<<10 {
			t.Errorf("after the response was read, the pong for a long ping has %d bytes", long)
		}
	}
}
