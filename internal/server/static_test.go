package server_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/server"
)

// Requests for static files are charged to the client's address. Health checks are not, because
// several clients of a proxy have one address.
func TestStaticFilesAreCharged(t *testing.T) {
	t.Parallel()
	h, _, forward := newRateLimited(t)
	for n := range 100 {
		if w := ask(h, http.MethodGet, []string{"/", "/missing"}[n%2], ""); w.Code != []int{http.StatusOK, http.StatusNotFound}[n%2] {
			t.Fatalf("request %d: status %d", n, w.Code)
		}
	}
	for _, path := range []string{"/", "/missing"} {
		w := ask(h, http.MethodGet, path, "")
		checkRefusal(t, w, http.StatusTooManyRequests, "RATE_LIMITED", asJSON)
		if w.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q, want 1", w.Header().Get("Retry-After"))
		}
	}
	for _, path := range []string{server.PathHealth, server.PathReady} {
		if w := ask(h, http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
	forward(time.Second)
	if w := ask(h, http.MethodGet, "/", ""); w.Code != http.StatusOK {
		t.Errorf("after a second: status %d", w.Code)
	}
}

// Without GraphiQL, the server has no pages.
func TestWithoutGraphiQL(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, sampleThrough(t, forward), slog.LevelInfo, server.Options{NoGraphiQL: true})
	for path, want := range map[string]int{"/": http.StatusNotFound, "/index.html": http.StatusNotFound, server.PathHealth: http.StatusOK} {
		if w := ask(h, http.MethodGet, path, ""); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
	if w := ask(h, http.MethodPost, server.PathGraphQL, post(aliceQuery)); w.Code != http.StatusOK {
		t.Errorf("a query: status %d", w.Code)
	}
}

// A request that is answered without its body is answered at once, although the client never
// completes the body. The connection is then closed.
func TestUnfinishedBodiesAreAnswered(t *testing.T) {
	t.Parallel()
	store := sampleThrough(t, forward)
	g := newAuthenticatedServer(t, store, server.Options{})
	guarded := listenTCP(t, g, server.Options{})
	h, _ := newHandler(t, store, slog.LevelInfo, server.Options{})
	open := listenTCP(t, h, server.Options{})
	for name, c := range map[string]struct {
		addr, line, headers string
		want                int
	}{
		"no token":           {guarded, "POST /graphql", "Content-Type: application/json\r\n", 401},
		"a bad token":        {guarded, "POST /graphql", "Content-Type: application/json\r\nAuthorization: Bearer x\r\n", 401},
		"another method":     {open, "PUT /graphql", "Content-Type: application/json\r\n", 405},
		"another type":       {open, "POST /graphql", "Content-Type: text/plain\r\n", 415},
		"a compressed body":  {open, "POST /graphql", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", 415},
		"two encodings":      {open, "POST /graphql", "Content-Type: application/json\r\nContent-Encoding: identity\r\nContent-Encoding: gzip\r\n", 415},
		"not acceptable":     {open, "POST /graphql", "Content-Type: application/json\r\nAccept: text/html\r\n", 406},
		"another host":       {open, "POST /graphql", "Content-Type: application/json\r\nHost: evil.example\r\n", 421},
		"a preflight":        {open, "OPTIONS /graphql", "", 204},
		"a query in the URL": {open, "GET /graphql?query=%7B__typename%7D", "", 200},
		"no page":            {open, "POST /missing", "", 404},
		"a page":             {open, "POST /", "", 405},
		"a health check":     {open, "POST /healthz", "", 404},
	} {
		for _, body := range []string{"Content-Length: 100\r\n\r\n{", "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				host := "Host: localhost\r\n"
				if strings.Contains(c.headers, "Host:") {
					host = ""
				}
				conn := dial(t, c.addr)
				if _, err := io.WriteString(conn, c.line+" HTTP/1.1\r\n"+host+c.headers+body); err != nil {
					t.Fatal(err)
				}
				r := bufio.NewReader(conn)
				response, err := http.ReadResponse(r, &http.Request{Method: strings.Fields(c.line)[0]})
				if err != nil {
					t.Fatalf("%.30q: %v", body, err)
				}
				if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != c.want {
					t.Errorf("%.30q: status %d, body %s, %v, want %d", body, response.StatusCode, text, err, c.want)
				}
				if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%.30q: the connection stays open: %v", body, err)
				}
			})
		}
	}
	// The connection of a complete request stays open.
	conn := dial(t, open)
	r := bufio.NewReader(conn)
	for range 2 {
		for _, body := range []string{
			"Content-Length: 26\r\n\r\n{\"query\":\"{ __typename }\"}", "Transfer-Encoding: chunked\r\n\r\n1a\r\n{\"query\":\"{ __typename }\"}\r\n0\r\n\r\n",
		} {
			if _, err := io.WriteString(conn, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+body); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || response.Close || !json.Valid(text) {
				t.Errorf("%.30q: status %d, %s, %v, the connection closes: %v", body, response.StatusCode, text, err, response.Close)
			}
		}
	}
}
