package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/server"
)

// testTimeout is the maximum wait for an expected event. After it a test fails instead of hanging.
const testTimeout = 30 * time.Second

// listen serves h on l until the test ends.
func listen(t testing.TB, l net.Listener, h http.Handler, opts server.Options) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	opts.Log = slog.New(slog.DiscardHandler)
	go func() { served <- server.Serve(ctx, l, h, opts) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// listenTCP serves h on a port of this machine, and returns its address.
func listenTCP(t testing.TB, h http.Handler, opts server.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen(t, l, h, opts)
	return l.Addr().String()
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return c
}

// A busy server refuses a further request at once. Health checks succeed, and so do later requests.
func TestShedding(t *testing.T) {
	b := newBlocked()
	h, j := handlerWithLimits(t, sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if !strings.Contains(string(body), "cust_01") { // readiness
			return next.Do(r)
		}
		return b.pass(r, next)
	}), server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequests: 2})})
	got := make(chan *httptest.ResponseRecorder)
	for range 2 {
		go func() { got <- ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)) }()
	}
	<-b.arrived
	<-b.arrived
	for accept, contentType := range answerTypes {
		for _, w := range []*httptest.ResponseRecorder{
			ask(h, http.MethodPost, server.PathGraphQL, post(`{ __typename }`), "Accept", accept),
			ask(h, http.MethodGet, get(`{ __typename }`), "", "Accept", accept),
		} {
			checkRefusal(t, w, http.StatusServiceUnavailable, "OVERLOADED", contentType)
			if w.Header().Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
			}
		}
	}
	for _, path := range []string{server.PathHealth, server.PathReady, "/"} {
		if w := ask(h, http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
	close(b.release)
	for range 2 {
		if w := <-got; w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
			t.Errorf("a request in progress: status %d, body %s", w.Code, w.Body)
		}
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Code != http.StatusOK {
		t.Errorf("a request after the overload: status %d, body %s", w.Code, w.Body)
	}
	j.checkShedding(t)
}

// A request whose body has not arrived completely uses no slot.
func TestSlowBodiesUseNoSlot(t *testing.T) {
	h, _ := handlerWithLimits(t, sampleThrough(t, forward), server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequests: 1})})
	body, slow := io.Pipe()
	reading := make(chan struct{})
	got := make(chan *httptest.ResponseRecorder)
	go func() {
		r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, &observedReader{Reader: body, reading: reading})
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got <- w
	}()
	<-reading
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Code != http.StatusOK {
		t.Errorf("a request while a slow body arrives: status %d, body %s", w.Code, w.Body)
	}
	if _, err := io.WriteString(slow, post(aliceQuery)); err != nil {
		t.Fatal(err)
	}
	_ = slow.Close()
	if w := <-got; w.Code != http.StatusOK {
		t.Errorf("the request with the slow body: status %d, body %s", w.Code, w.Body)
	}
}

// observedReader closes reading on the first read.
type observedReader struct {
	io.Reader
	reading chan struct{}
	once    sync.Once
}

func (r *observedReader) Read(b []byte) (int, error) {
	r.once.Do(func() { close(r.reading) })
	return r.Reader.Read(b)
}

// A request that exceeds its time limit gets TIMED_OUT.
func TestTimeOfARequest(t *testing.T) {
	h, j := handlerWithLimits(t, sampleThrough(t, newBlocked().pass), server.Options{Limits: server.Limits{RequestTime: 10 * time.Millisecond}})
	w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery))
	var got answer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "TIMED_OUT" {
		t.Errorf("status %d, body %s, %v", w.Code, w.Body, err)
	}
	if log := j.entries(t); len(log) != 1 {
		t.Errorf("the log has %v, want one line", log)
	}
}

// The server closes a connection whose headers do not arrive completely.
func TestSlowHeaders(t *testing.T) {
	h, _ := handlerWithLimits(t, sampleThrough(t, forward), server.Options{})
	addr := listenTCP(t, h, server.Options{Limits: server.Limits{HeaderTime: 20 * time.Millisecond, BodyTime: time.Hour}})
	for _, part := range []string{"", "POST /graphql HT", "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: appl"} {
		c := dial(t, addr)
		if _, err := io.WriteString(c, part); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || strings.HasPrefix(string(got), "HTTP/1.1 200") {
			t.Errorf("after %q, the connection returns %q, %v, want it closed", part, got, err)
		}
	}
}

// A body that does not arrive completely gets 408, and the connection is closed.
func TestSlowBodies(t *testing.T) {
	opts := server.Options{Limits: server.Limits{BodyTime: 20 * time.Millisecond}}
	h, j := handlerWithLimits(t, sampleThrough(t, forward), opts)
	addr := listenTCP(t, h, server.Options{Limits: server.Limits{BodyTime: time.Hour}}) // the handler sets an earlier deadline
	for _, part := range []string{"Content-Length: 100\r\n\r\n{\"query\"", "Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"que\r\n"} {
		c := dial(t, addr)
		if _, err := io.WriteString(c, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+part); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("after %q: %v", part, err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusRequestTimeout || !response.Close || !strings.Contains(string(body), `"REQUEST_TIMEOUT"`) || response.Header.Get("X-Request-Id") == "" {
			t.Errorf("after %q: status %d, header %v, body %s, %v", part, response.StatusCode, response.Header, body, err)
		}
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("after the response, the connection returns %q, %v, want it closed", rest, err)
		}
	}
	j.checkEmpty(t)
}

// An incomplete body gets an error. A body over the limit is refused before it has arrived.
func TestBodiesThatEndTooSoonOrTooLate(t *testing.T) {
	t.Parallel()
	h, j := handlerWithLimits(t, sampleThrough(t, forward), server.Options{})
	addr := listenTCP(t, h, server.Options{})
	for request, want := range map[string]int{
		"Content-Length: 100\r\n\r\n{\"query\"":                                    http.StatusBadRequest,
		"Content-Length: 10000000\r\n\r\n":                                         http.StatusRequestEntityTooLarge,
		"Content-Length: 10000000\r\nExpect: 100-continue\r\n\r\n":                 http.StatusRequestEntityTooLarge,
		"Transfer-Encoding: chunked\r\n\r\n30000\r\n" + strings.Repeat(" ", 3<<16): http.StatusRequestEntityTooLarge,
	} {
		c := dial(t, addr).(*net.TCPConn)
		if _, err := io.WriteString(c, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+request); err != nil {
			t.Fatal(err)
		}
		if want == http.StatusBadRequest {
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%.40q: %v", request, err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != want || !json.Valid(body) {
			t.Errorf("%.40q: status %d, body %s, %v, want %d", request, response.StatusCode, body, err, want)
		}
	}
	j.checkEmpty(t)
}

// pipeListener is a listener whose connections have no buffers. A client that does not read blocks
// at once.
type pipeListener struct {
	net.Listener // for its address
	accepted     chan net.Conn
	closed       chan struct{}
	once         sync.Once
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

// watchedConn calls closed when a connection is closed.
type watchedConn struct {
	net.Conn
	closed func()
	once   sync.Once
}

func (w *watchedConn) Close() error {
	w.once.Do(w.closed)
	return w.Conn.Close()
}

// The connection of a client that does not read its response is closed.
func TestUnreadResponses(t *testing.T) {
	opts := server.Options{Limits: server.Limits{AnswerTime: 20 * time.Millisecond}}
	h, j := handlerWithLimits(t, sampleThrough(t, forward), opts)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeListener{Listener: l, accepted: make(chan net.Conn), closed: make(chan struct{})}
	// The server's own deadline is far away. The handler sets an earlier one.
	listen(t, p, h, server.Options{})
	for _, request := range []string{"GET " + get(aliceQuery) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /graphql HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		client, ours := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		closed := make(chan struct{})
		p.accepted <- &watchedConn{Conn: ours, closed: func() { close(closed) }}
		if _, err := io.WriteString(client, request); err != nil {
			t.Fatal(err)
		}
		select {
		case <-closed:
		case <-time.After(testTimeout):
			t.Fatalf("%s: the connection is still open", request)
		}
	}
	j.checkEmpty(t)
}

// countingListener is a listener that records the maximum number of open connections.
type countingListener struct {
	net.Listener
	mu         sync.Mutex
	open, most int
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	l.most = max(l.most, l.open)
	return &watchedConn{Conn: c, closed: func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	}}, nil
}

// If every connection serves a request and the pool is exhausted, new connections are closed.
func TestConnectionsAreBounded(t *testing.T) {
	const most, clients = 3, 12
	b := newBlocked()
	h, j := handlerWithLimits(t, sampleThrough(t, b.pass), server.Options{})
	addr := listenTCP(t, h, server.Options{Admission: admission.New(admission.Sizes{admission.PoolConnections: most})})
	answers := make(chan string, clients)
	begin := func() {
		conn := dial(t, addr)
		go func() {
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "GET "+get(aliceQuery)+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			answer, _ := io.ReadAll(conn) // empty if the connection is closed
			answers <- string(answer)
		}()
	}
	for range most {
		begin()
		<-b.arrived
	}
	for range clients - most {
		begin()
		if answer := <-answers; answer != "" {
			t.Errorf("a connection over the limit got %s, want no response", answer)
		}
	}
	close(b.release)
	for range most {
		if answer := <-answers; !strings.HasSuffix(answer, aliceAnswer) {
			t.Errorf("the response is %s", answer)
		}
	}
	begin()
	if answer := <-answers; !strings.HasSuffix(answer, aliceAnswer) {
		t.Errorf("the response afterwards is %q", answer)
	}
	j.checkEmpty(t)
}

// Idle connections do not block new clients. The connection that has been idle for longest is
// closed.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const most = 8
	h, j := handlerWithLimits(t, sampleThrough(t, forward), server.Options{})
	l := &countingListener{Listener: listenLocal(t)}
	pools := admission.New(admission.Sizes{admission.PoolConnections: most})
	listen(t, l, h, server.Options{Admission: pools})
	var kept []net.Conn
	for range 3 * most {
		c := dial(t, l.Addr().String()) // the connection stays open
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Fatalf("with %d connections kept: %v", len(kept), err)
		}
		kept = append(kept, c)
	}
	if l.most > most+1 || pools[admission.PoolConnections].Used() > most { // a new connection is open before the pool admits it
		t.Errorf("%d connections were open at once", l.most)
	}
	if _, err := io.ReadAll(kept[0]); err != nil {
		t.Errorf("reading the first connection returns %v, want it closed", err)
	}
	j.checkEmpty(t)
}

// A request without a path has a request ID, too.
func TestRequestIDWithoutAPath(t *testing.T) {
	h, _ := handlerWithLimits(t, sampleThrough(t, forward), server.Options{})
	c := dial(t, listenTCP(t, h, server.Options{}))
	if _, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if id := got.Header.Get("X-Request-Id"); got.StatusCode >= 500 || id == "" {
		t.Errorf("status %s, request id %q", got.Status, id)
	}
}
