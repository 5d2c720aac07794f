// Package hostile_test sends a running server requests that try to slow, bloat or stop it. For each
// request, the server must return an error or close the connection within 10 s. The server's memory
// must grow by less than 100 MB, and the next honest query must succeed.
package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/workload"
)

const (
	// timeLimit is the maximum time until the server responds or closes the connection. The server
	// usually takes milliseconds. The limit detects a server that hangs.
	timeLimit = 10 * time.Second
	// maxGrowth is the maximum growth of the server's memory, in bytes.
	maxGrowth = 100 << 20
)

func TestMain(m *testing.M) {
	// Many tests only wait until the server closes a connection, so more of them run in parallel than
	// there are processors.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Each subtest starts its own server, and all subtests use the same binary. Subtests that mostly
// wait are parallel, so they run after the other subtests.
func TestHostile(t *testing.T) {
	binary := workload.BuildServer(t, "../..")
	for _, part := range []struct {
		name string
		run  func(t *testing.T, binary string)
	}{
		{"documents", invalidDocuments}, {"persisted queries", floodOfPersistedQueries}, {"requests", malformedRequests}, {"slow senders", slowSenders},
		{"many sockets", manySockets}, {"malformed HTTP", malformedHTTP}, {"overload", overload}, {"broken frames", brokenFrames}, {"silent sockets", silentSockets},
		{"large subscriptions", largeSubscriptions},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, binary) })
	}
}

// victim is a server under attack.
type victim struct {
	*workload.Process
	client *http.Client
	// initialMemory is the server's memory before the first attack, in bytes. It is 0 if the system
	// does not report it.
	initialMemory int
}

// newVictim starts a server with the embedded store.
func newVictim(t *testing.T, binary string, environment ...string) *victim {
	t.Helper()
	environment = append([]string{"ORDERGRAPH_STORE=embedded", "ORDERGRAPH_HEADER_TIMEOUT=1s", "ORDERGRAPH_BODY_TIMEOUT=1s"}, environment...)
	v := &victim{
		Process: workload.StartServer(t, binary, environment),
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, Timeout: timeLimit},
	}
	t.Cleanup(func() {
		if v.initialMemory > 0 {
			t.Logf("the server has grown by %d MB", (v.peak(t)-v.initialMemory)>>20)
		}
		for line := range strings.Lines(v.Kill(t)) {
			// A fatal error or an unrecovered panic writes lines that are not JSON.
			if !strings.HasPrefix(line, "{") {
				t.Errorf("the server printed: %s", line)
			}
		}
	})
	v.checkHealthy(t)
	v.initialMemory = v.peak(t)
	return v
}

// memory returns a field of the server's status in bytes. It returns 0 if the system does not
// report it.
func (v *victim) memory(t *testing.T, field string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.PID()))
	if err != nil {
		t.Fatalf("the server has ended: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("no %s in %s", field, status)
	return 0
}

// peak returns the server's maximum memory.
func (v *victim) peak(t *testing.T) int { return v.memory(t, "VmHWM") }

const (
	honestQuery  = `{"query":"{ customer(id: \"cust_01\") { name orders { nodes { status } } } }"}`
	honestAnswer = `"name":"Alice Chen"`
)

// checkHealthy verifies that the server responds to an honest query and has not grown too much.
func (v *victim) checkHealthy(t *testing.T) {
	t.Helper()
	// Use a new connection, as a new client does.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: timeLimit}
	response, err := client.Post(v.URL, "application/json", strings.NewReader(honestQuery))
	if err != nil {
		t.Fatalf("the next honest query failed: %v", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(answer), honestAnswer) {
		t.Errorf("the next honest query returned status %d, %s, %v", response.StatusCode, answer, err)
	}
	if v.initialMemory > 0 {
		if grown := v.peak(t) - v.initialMemory; grown > maxGrowth {
			t.Errorf("the server has grown by %d MB, want at most %d", grown>>20, maxGrowth>>20)
		}
	}
}

// attack is a request. The default is a POST of JSON.
type attack struct {
	method, target string
	header         http.Header
	body           io.Reader
	// wantStatus is the expected status. If it is 0, any error status or a 200 with errors is correct.
	wantStatus int
	// wantCode is the expected extensions.code. If it is empty, any code is correct.
	wantCode string
	// maySucceed reports whether a response without errors is correct, too.
	maySucceed bool
}

// check sends an attack and verifies the response.
func (v *victim) check(t *testing.T, a attack) {
	t.Helper()
	if a.method == "" {
		a.method = http.MethodPost
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, a.method, v.URL+a.target, a.body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, values := range a.header {
		request.Header[name] = values
	}
	response, err := v.client.Do(request)
	if err != nil {
		// The server may close the connection before it has read a rejected body.
		if ctx.Err() != nil || !isConnectionClosed(err) {
			t.Errorf("no response, and the connection is not closed: %v", err)
		}
		v.checkHealthy(t)
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 32<<20))
	if err != nil && !isConnectionClosed(err) {
		t.Errorf("the response does not end: %v", err)
	}
	v.checkResponse(t, a, response, answer)
	v.checkHealthy(t)
}

// isConnectionClosed reports whether an error means that the server closed the connection.
func isConnectionClosed(err error) bool {
	var network *net.OpError
	switch text := err.Error(); {
	case strings.Contains(text, "EOF"), strings.Contains(text, "connection reset"), strings.Contains(text, "broken pipe"):
		return true
	default:
		return errors.As(err, &network) && !network.Timeout()
	}
}

func (v *victim) checkResponse(t *testing.T, a attack, response *http.Response, answer []byte) {
	t.Helper()
	status := response.StatusCode
	if a.wantStatus != 0 && status != a.wantStatus {
		t.Errorf("status %d, want %d: %.300s", status, a.wantStatus, answer)
	}
	if status >= 500 && status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %.300s", status, answer)
	}
	if response.Header.Get("X-Request-Id") == "" && !answeredByNetHTTP(status) {
		t.Errorf("the response with status %d has no request ID", status)
	}
	if len(answer) > 4<<20 {
		t.Errorf("the response has %d bytes", len(answer))
	}
	if answeredByNetHTTP(status) || a.method == http.MethodHead {
		return
	}
	var parsed struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		t.Errorf("status %d, %v: %.300s", status, err, answer)
		return
	}
	if len(parsed.Errors) == 0 {
		if !a.maySucceed {
			t.Errorf("status %d without an error: %.300s", status, answer)
		}
		return
	}
	for _, e := range parsed.Errors {
		switch {
		case e.Message == "" || e.Extensions.Code == "" || e.Extensions.Code == "INTERNAL":
			t.Errorf("status %d: %.300s", status, answer)
		case a.wantCode != "" && e.Extensions.Code != a.wantCode:
			t.Errorf("code %s, want %s: %.300s", e.Extensions.Code, a.wantCode, answer)
		case len(e.Message) > 2000:
			t.Errorf("an error message has %d bytes: %.300s", len(e.Message), e.Message)
		}
	}
}

// answeredByNetHTTP reports whether net/http responds with a status before it calls a handler. Such
// responses are plain text.
func answeredByNetHTTP(status int) bool { return status == http.StatusRequestHeaderFieldsTooLarge }

// queryBody returns a request body with a query and variables.
func queryBody(text string, variables map[string]any) io.Reader {
	body, err := json.Marshal(map[string]any{"query": text, "variables": variables})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return bytes.NewReader(body)
}

// queryParameter returns the query part of a URL for a GraphQL query.
func queryParameter(text string) string { return "?" + url.Values{"query": {text}}.Encode() }
