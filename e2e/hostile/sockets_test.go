package hostile_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// closeLimit is the time limit for closing the connection of a slow sender. The server's timeouts
// are one second each.
const closeLimit = 10 * time.Second

func (v *victim) dial(t *testing.T) net.Conn {
	t.Helper()
	target, err := url.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sendBytewise sends a text slowly, byte by byte, until the server responds or closes the
// connection. It returns the response.
func sendBytewise(t *testing.T, conn net.Conn, begin, rest string) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(closeLimit)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := io.WriteString(conn, begin)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := 0; err == nil; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, err = conn.Write([]byte{rest[i%len(rest)]})
			}
		}
	}()
	answer, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open after %v; the response is %q", closeLimit, answer)
	}
	return string(answer)
}

const requestHead = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// slowSenders verifies that the server closes connections of slow senders.
func slowSenders(t *testing.T, binary string) {
	t.Parallel()
	v := newVictim(t, binary)
	for name, c := range map[string]struct{ begin, rest string }{
		"headers":           {"POST /graphql HTTP/1.1\r\nX-Slow: ", "a"},
		"many headers":      {"POST /graphql HTTP/1.1\r\n", "a: b\r\n"},
		"the first line":    {"", "A"},
		"a body":            {requestHead + "Content-Length: 100000\r\n\r\n", " "},
		"a body in chunks":  {requestHead + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"},
		"half a chunk":      {requestHead + "Transfer-Encoding: chunked\r\n\r\nFFFF\r\n", " "},
		"a chunk extension": {requestHead + "Transfer-Encoding: chunked\r\n\r\n1;", "x"},
		"a trailer":         {requestHead + "Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := sendBytewise(t, v.dial(t), c.begin, c.rest)
			if answer != "" && !strings.HasPrefix(answer, "HTTP/1.1 4") && !strings.HasPrefix(answer, "HTTP/1.0 4") {
				t.Errorf("unexpected response: %.200q", answer)
			}
		})
	}
	t.Cleanup(func() { v.checkHealthy(t) })
}

// manySockets opens 500 connections that are idle or have begun a request. The server still
// responds to other clients, and finally closes all connections.
func manySockets(t *testing.T, binary string) {
	longtest.Skip(t)
	t.Parallel()
	v := newVictim(t, binary)
	for _, begin := range []string{"", "POST /graphql HT", requestHead, requestHead + "Content-Length: 1000\r\n\r\n{"} {
		t.Run(fmt.Sprintf("%d bytes", len(begin)), func(t *testing.T) {
			var conns []net.Conn
			for range 500 {
				conn := v.dial(t)
				if _, err := io.WriteString(conn, begin); err != nil {
					t.Fatal(err)
				}
				conns = append(conns, conn)
			}
			v.checkHealthy(t)
			for _, conn := range conns {
				if err := conn.SetReadDeadline(time.Now().Add(closeLimit)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("the connection is open after %v", closeLimit)
				}
			}
			v.checkHealthy(t)
		})
	}
}

// malformedHTTP sends invalid HTTP, and requests that two parsers could interpret differently. The
// server must reject them.
func malformedHTTP(t *testing.T, binary string) {
	v := newVictim(t, binary)
	for name, request := range map[string]string{
		"nonsense":             "nonsense\r\n\r\n",
		"TLS":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"another version":      "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"no host":              "GET /graphql?query={__typename} HTTP/1.1\r\n\r\n",
		"two hosts":            "GET /graphql?query={__typename} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"two lengths":          requestHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ",
		"a negative length":    requestHead + "Content-Length: -1\r\n\r\n",
		"a huge length":        requestHead + "Content-Length: 99999999999999999999\r\n\r\n",
		"a header without end": "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("a: b\r\n", 100_000),
		"a NUL in a header":    "GET /graphql HTTP/1.1\r\nHost: localhost\r\nX-A: \x00\r\n\r\n",
		"malformed chunks":     requestHead + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
		"an unknown coding":    requestHead + "Transfer-Encoding: nonsense\r\n\r\n",
		"a tunnel":             "CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := v.dial(t)
			if err := conn.SetDeadline(time.Now().Add(closeLimit)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(conn, request) }() // the server may stop reading
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("no response, and the connection is not closed: %v", err)
				}
			} else {
				response.Body.Close()
				if response.StatusCode < 400 || response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented && response.StatusCode != http.StatusHTTPVersionNotSupported {
					t.Errorf("status %d", response.StatusCode)
				}
			}
			v.checkHealthy(t)
		})
	}
}

// overload sends many more concurrent requests than the server accepts. Each request succeeds or
// returns OVERLOADED with Retry-After.
func overload(t *testing.T, binary string) {
	v := newVictim(t, binary, "ORDERGRAPH_MAX_CONCURRENT=4")
	heavy := `{ orders(first: 100) { nodes { id customer { name orders { nodes { id } } } items { nodes { name product { name } } } } } }`
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 50 {
		wg.Go(func() {
			client := &http.Client{Timeout: closeLimit}
			for range 10 {
				response, err := client.Post(v.URL, "application/json", queryBody(heavy, nil))
				if err != nil {
					t.Errorf("no response: %v", err)
					return
				}
				answer, err := io.ReadAll(response.Body)
				response.Body.Close()
				shed := response.StatusCode == http.StatusServiceUnavailable
				if err != nil || shed && (response.Header.Get("Retry-After") == "" || !strings.Contains(string(answer), `"OVERLOADED"`)) {
					t.Errorf("status %d, Retry-After %q, %v: %.200s", response.StatusCode, response.Header.Get("Retry-After"), err, answer)
				}
				mu.Lock()
				statuses[response.StatusCode]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("responses by status: %v", statuses)
	if statuses[http.StatusOK] == 0 || statuses[http.StatusOK]+statuses[http.StatusServiceUnavailable] != 500 {
		t.Errorf("responses by status: %v", statuses)
	}
	v.checkHealthy(t)
}
