// Package hostile_test sends a running server what is meant to slow, bloat or stop it. Whatever
// comes, it must answer soon with what is wrong or cut the connection, grow by less than 100 MB,
// and answer the next honest query at once.
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

	"github.com/ordergraph/ordergraph/internal/shoptest"
)

const (
	// soon is when a request must have been answered or cut. The server takes milliseconds; this
	// tells a hang.
	soon = 10 * time.Second
	// growth is by how much the server may grow in all, in bytes.
	growth = 100 << 20
)

func TestMain(m *testing.M) {
	// Many tests wait for the server to cut a connection, so more of them run at once than there
	// are processors.
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Each part has a server of its own. They are subtests so that the server is built once. Parts that
// mostly wait are parallel: they run together behind the others.
func TestHostile(t *testing.T) {
	binary := shoptest.Build(t, "../..")
	for _, part := range []struct {
		name string
		run  func(t *testing.T, binary string)
	}{
		{"documents", documents}, {"persisted queries", floodOfPersistedQueries}, {"requests", requests}, {"slow senders", slowSenders},
		{"many sockets", manySockets}, {"malformed HTTP", malformedHTTP}, {"overload", overload}, {"broken frames", brokenFrames}, {"silent sockets", silentSockets},
		{"bulky subscriptions", bulkySubscriptions},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, binary) })
	}
}

// victim is a server under attack.
type victim struct {
	*shoptest.Process
	client *http.Client
	// calm is what the server held before the first attack, in bytes; 0 where that cannot be known.
	calm int
}

// newVictim starts a server with the embedded store.
func newVictim(t *testing.T, binary string, environment ...string) *victim {
	t.Helper()
	environment = append([]string{"ORDERGRAPH_STORE=embedded", "ORDERGRAPH_HEADER_TIMEOUT=1s", "ORDERGRAPH_BODY_TIMEOUT=1s"}, environment...)
	v := &victim{
		Process: shoptest.Start(t, binary, environment),
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, Timeout: soon},
	}
	t.Cleanup(func() {
		if v.calm > 0 {
			t.Logf("the server has grown by %d MB", (v.peak(t)-v.calm)>>20)
		}
		for line := range strings.Lines(v.Kill(t)) {
			// A fatal error of the runtime, or a panic that nobody recovered, writes what is no
			// line of the log.
			if !strings.HasPrefix(line, "{") {
				t.Errorf("the server says: %s", line)
			}
		}
	})
	v.well(t)
	v.calm = v.peak(t)
	return v
}

// memory reads a field of the server's status, in bytes; 0 where the system does not tell.
func (v *victim) memory(t *testing.T, field string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.PID()))
	if err != nil {
		t.Fatalf("the server is gone: %v", err)
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

// peak is the most memory that the server has held.
func (v *victim) peak(t *testing.T) int { return v.memory(t, "VmHWM") }

const (
	honest       = `{"query":"{ customer(id: \"cust_01\") { name orders { nodes { status } } } }"}`
	honestAnswer = `"name":"Alice Chen"`
)

// well checks that the server answers an honest query, and has not grown too much.
func (v *victim) well(t *testing.T) {
	t.Helper()
	// A connection of its own, as a new client has.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: soon}
	response, err := client.Post(v.URL, "application/json", strings.NewReader(honest))
	if err != nil {
		t.Fatalf("an honest query afterwards: %v", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(answer), honestAnswer) {
		t.Errorf("an honest query afterwards: status %d, %s, %v", response.StatusCode, answer, err)
	}
	if v.calm > 0 {
		if grown := v.peak(t) - v.calm; grown > growth {
			t.Errorf("the server has grown by %d MB", grown>>20)
		}
	}
}

// attack is a request; it is a POST of JSON where it does not say otherwise.
type attack struct {
	method, target string
	header         http.Header
	body           io.Reader
	// want is the status; 0 for any that refuses, or 200 with errors.
	want int
	// code is what extensions.code must be; empty for any.
	code string
	// fine is whether an answer without errors will do.
	fine bool
}

// check sends an attack and looks at the answer.
func (v *victim) check(t *testing.T, a attack) {
	t.Helper()
	if a.method == "" {
		a.method = http.MethodPost
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
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
		// A server may close the connection before it has read all of a body that it refuses.
		if ctx.Err() != nil || !isCut(err) {
			t.Errorf("neither answered nor cut: %v", err)
		}
		v.well(t)
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 32<<20))
	if err != nil && !isCut(err) {
		t.Errorf("the answer does not end: %v", err)
	}
	v.judge(t, a, response, answer)
	v.well(t)
}

// isCut reports whether an error means that the server closed the connection.
func isCut(err error) bool {
	var network *net.OpError
	switch text := err.Error(); {
	case strings.Contains(text, "EOF"), strings.Contains(text, "connection reset"), strings.Contains(text, "broken pipe"):
		return true
	default:
		return errors.As(err, &network) && !network.Timeout()
	}
}

func (v *victim) judge(t *testing.T, a attack, response *http.Response, answer []byte) {
	t.Helper()
	status := response.StatusCode
	if a.want != 0 && status != a.want {
		t.Errorf("status %d, want %d: %.300s", status, a.want, answer)
	}
	if status >= 500 && status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %.300s", status, answer)
	}
	if response.Header.Get("X-Request-Id") == "" && !byNetHTTP(status) {
		t.Errorf("status %d has no request id", status)
	}
	if len(answer) > 4<<20 {
		t.Errorf("the answer has %d bytes", len(answer))
	}
	if byNetHTTP(status) || a.method == http.MethodHead {
		return
	}
	var told struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		t.Errorf("status %d, %v: %.300s", status, err, answer)
		return
	}
	if len(told.Errors) == 0 {
		if !a.fine {
			t.Errorf("status %d and no error: %.300s", status, answer)
		}
		return
	}
	for _, e := range told.Errors {
		switch {
		case e.Message == "" || e.Extensions.Code == "" || e.Extensions.Code == "INTERNAL":
			t.Errorf("status %d: %.300s", status, answer)
		case a.code != "" && e.Extensions.Code != a.code:
			t.Errorf("code %s, want %s: %.300s", e.Extensions.Code, a.code, answer)
		case len(e.Message) > 2000:
			t.Errorf("a message of %d bytes: %.300s", len(e.Message), e.Message)
		}
	}
}

// byNetHTTP tells of statuses that net/http gives before any handler is asked: it answers what is
// no HTTP in plain text.
func byNetHTTP(status int) bool { return status == http.StatusRequestHeaderFieldsTooLarge }

// query is a body with a query and variables.
func query(text string, variables map[string]any) io.Reader {
	body, err := json.Marshal(map[string]any{"query": text, "variables": variables})
	if err != nil {
		panic(err) // texts and numbers can be written
	}
	return bytes.NewReader(body)
}

// get is the part of a URL behind the path that asks a query.
func get(text string) string { return "?" + url.Values{"query": {text}}.Encode() }
