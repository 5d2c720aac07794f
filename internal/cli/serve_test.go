package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
)

// serve starts a server that stops at the end of the test. It returns the command and its URL.
func serve(t *testing.T, line string, variables ...string) (c *command, url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c = start(ctx, line, variables...)
	t.Cleanup(func() {
		stop()
		<-c.done
		if c.status != 0 || c.stderr.String() != "" {
			t.Errorf("the server ended with status %d and printed %q", c.status, c.stderr.String())
		}
	})
	select {
	case addr := <-c.listening:
		return c, "http://" + addr.String()
	case <-c.done:
		t.Fatalf("%s ended with status %d: %s", line, c.status, c.stderr.String())
		return nil, ""
	}
}

// get returns the status and the body of a page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	return readResponse(t)(http.Get(url))
}

func readResponse(t *testing.T) func(*http.Response, error) (int, string) {
	t.Helper()
	return func(res *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
}

// The first query of the README, and its result.
const (
	firstQuery  = `{ customer(id: "cust_01") { name orders(first: 10) { nodes { id status total { amount } items { nodes { name quantity } } } } } }`
	firstAnswer = `{"customer": {"name": "Alice Chen", "orders": {"nodes": [
		{"id": "01HVNR4Q3R0000000000000002", "status": "PENDING", "total": {"amount": "29.99"}, "items": {"nodes": [{"name": "Wireless Mouse", "quantity": 1}]}},
		{"id": "01HVMK3P2Q0000000000000001", "status": "DELIVERED", "total": {"amount": "94.96"}, "items": {"nodes": [{"name": "USB Cable", "quantity": 3}, {"name": "Keyboard", "quantity": 1}]}}
	]}}}`
)

// checkFirstAnswer checks the response to firstQuery with explain.
func checkFirstAnswer(t *testing.T, status int, body string) {
	t.Helper()
	var got struct {
		Data       any
		Errors     []any
		Extensions struct {
			Explain struct {
				Totals struct{ Requests, RoundTrips int }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("status %d, body %s: %v", status, body, err)
	}
	var want any
	if err := json.Unmarshal([]byte(firstAnswer), &want); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusOK || !reflect.DeepEqual(got.Data, want) || len(got.Errors) > 0 {
		t.Errorf("status %d, body %s, want the data %s", status, body, firstAnswer)
	}
	if totals := got.Extensions.Explain.Totals; totals.Requests != 2 || totals.RoundTrips != 1 {
		t.Errorf("%d requests in %d round trips, want 2 in 1", totals.Requests, totals.RoundTrips)
	}
}

func askFirstQuery(t *testing.T, url string) {
	t.Helper()
	status, answer := postExplained(t, url, firstQuery)
	checkFirstAnswer(t, status, answer)
}

// postExplained sends an operation that asks for the explain output. It returns the status and the
// response.
func postExplained(t *testing.T, url, operation string) (status int, answer string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": operation})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, url+server.PathGraphQL, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(server.ExplainHeader, "true")
	return readResponse(t)(http.DefaultClient.Do(r))
}

func TestServeAnswersTheFirstQuery(t *testing.T) {
	for _, line := range []string{"-addr 127.0.0.1:0", "serve -addr 127.0.0.1:0"} {
		_, url := serve(t, line)
		askFirstQuery(t, url)
	}
}

func TestServePages(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0")
	for path, content := range map[string]string{server.PathHealth: "ok\n", server.PathReady: "ready\n", "/": `name="graphql-endpoint"`} {
		if status, body := get(t, url+path); status != http.StatusOK || !strings.Contains(body, content) {
			t.Errorf("%s: status %d, body %s", path, status, body)
		}
	}
}

// TestAddresses checks that the server prints an address that works on this machine, and that
// localhost, which the README uses, works too.
func TestAddresses(t *testing.T) {
	for line, host := range map[string]string{"": "127.0.0.1", "-addr :0": "localhost"} {
		c, _ := serve(t, line, "PORT=0")
		port := regexp.MustCompile(`http://` + regexp.QuoteMeta(host) + `:(\d+)/graphql`).FindStringSubmatch(c.stdout.String())
		if port == nil {
			t.Fatalf("%s: stdout has no address on %s: %s", line, host, c.stdout.String())
		}
		for _, host := range []string{host, "localhost"} {
			url := "http://" + host + ":" + port[1] + "/graphql"
			if status, body := get(t, url+"?query={__typename}"); status != http.StatusOK || !strings.Contains(body, "Query") {
				t.Errorf("%s: status %d, body %s", url, status, body)
			}
		}
	}
}

// TestAllowedHosts checks that ORDERGRAPH_ALLOWED_HOSTS is applied.
func TestAllowedHosts(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_ALLOWED_HOSTS=orders.example, server:8080")
	for host, want := range map[string]int{"orders.example": http.StatusOK, "server": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequest(http.MethodGet, url+server.PathGraphQL+"?query={__typename}", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if status, body := readResponse(t)(http.DefaultClient.Do(r)); status != want {
			t.Errorf("%s: status %d, %s, want %d", host, status, body, want)
		}
	}
}

// The server prints its URLs, the location of the data, and a command that works when pasted.
func TestServePrintsCommandToTry(t *testing.T) {
	c, url := serve(t, "-addr 127.0.0.1:0")
	stdout := c.stdout.String()
	for _, part := range []string{url + server.PathGraphQL, url + "/\n", url + server.PathHealth, url + server.PathReady, "in memory", "sample data", "lost when the server stops"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("stdout does not contain %q: %s", part, stdout)
		}
	}
	_, curl, found := strings.Cut(strings.ReplaceAll(stdout, "\\\n", " "), "  curl -s ")
	if !found {
		t.Fatalf("stdout has no curl command: %s", stdout)
	}
	target, _, _ := strings.Cut(curl, " ")
	body := regexp.MustCompile(`-d '([^']*)'`).FindStringSubmatch(curl)
	if body == nil {
		t.Fatalf("the command has no body: %s", curl)
	}
	r, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body[1]))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range regexp.MustCompile(`-H '([^:']*): ([^']*)'`).FindAllStringSubmatch(curl, -1) {
		r.Header.Set(header[1], header[2])
	}
	status, answer := readResponse(t)(http.DefaultClient.Do(r))
	checkFirstAnswer(t, status, answer)
}

func TestServeStopsWithContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := start(ctx, "-addr 127.0.0.1:0")
	addr := <-c.listening
	stop()
	<-c.done
	if c.status != 0 || c.stderr.String() != "" {
		t.Errorf("exit %d, stderr %q, want 0 and nothing", c.status, c.stderr.String())
	}
	if conn, err := net.Dial("tcp", addr.String()); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	run(t, "-addr "+l.Addr().String()).checkFailed(t, 1, l.Addr().String(), "-addr or PORT")
}

func TestInvalidAddress(t *testing.T) {
	for _, addr := range []string{"nonsense", "127.0.0.1"} {
		run(t, "-addr "+addr).checkFailed(t, 2, addr, "HOST:PORT")
	}
	run(t, "-addr :99999").checkFailed(t, 1, ":99999")
}

// ORDERGRAPH_CORS_ORIGINS is applied.
func TestCORSOrigins(t *testing.T) {
	_, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_CORS_ORIGINS=https://shop.example")
	r := httptest.NewRequest(http.MethodGet, url+server.PathGraphQL+"?query={__typename}", nil)
	r.RequestURI = ""
	r.Header.Set("Origin", "https://shop.example")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := res.Header.Get("Access-Control-Allow-Origin"); got != "https://shop.example" {
		t.Errorf("the allowed origin is %q", got)
	}
}
