package lambda_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Like the HTTP server, the Lambda function authenticates callers, applies CORS, refuses
// subscriptions, and limits callers by their IP addresses.
func TestRequests(t *testing.T) {
	d := newDatabase(t)
	settings := d.settings(d.load(t, sample(t)), "ORDERGRAPH_ANONYMOUS=catalog", "ORDERGRAPH_CORS_ORIGINS=https://shop.example.com",
		"ORDERGRAPH_MAX_COST=1000", "ORDERGRAPH_RATE_BURST=1000", "ORDERGRAPH_RATE_RESTORE=1")
	admin := token(t, settings)
	f := startFunction(t, settings)
	const products = `{ productsBySku(skus: ["prod_100"]) { name } }`
	const subscription = `subscription { orderStatusChanged { id } }`
	with := func(r *http.Request, headers ...string) *http.Request {
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return r
	}
	get, err := http.NewRequest(http.MethodGet, "/graphql?query=%7Bviewer%7Brole%7D%7D", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	head, preflight := get.Clone(t.Context()), get.Clone(t.Context())
	head.Method, preflight.Method = http.MethodHead, http.MethodOptions
	health := get.Clone(t.Context())
	health.URL.Path, health.URL.RawQuery = "/readyz", ""
	tool, err := http.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "searchProducts", "arguments": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const graphQLJSON = "application/graphql-response+json"
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		body    string
	}{
		"a token":                      {post(t, "", admin, `{ viewer { role } }`, ""), 200, `"ADMIN"`},
		"a forged token":               {post(t, "", admin+"x", `{ viewer { role } }`, ""), 401, "UNAUTHENTICATED"},
		"no token":                     {post(t, "", "", products, ""), 200, "Widget A"},
		"no permission":                {post(t, "", "", `{ customer(id: "cust_01") { name } }`, ""), 200, "UNAUTHENTICATED"},
		"GET":                          {with(get.Clone(t.Context()), "Authorization", "Bearer "+admin, "Apollo-Require-Preflight", "1"), 200, `"ADMIN"`},
		"HEAD":                         {with(head, "Authorization", "Bearer "+admin, "Apollo-Require-Preflight", "1"), 200, ""},
		"a forged GET":                 {with(get.Clone(t.Context()), "Sec-Fetch-Site", "cross-site"), 403, "CSRF_PREVENTED"},
		"a preflight":                  {with(preflight, "Origin", "https://shop.example.com", "Access-Control-Request-Method", "POST"), 204, ""},
		"readiness":                    {health, 200, "ready"},
		"a subscription":               {with(post(t, "", admin, subscription, ""), "Accept", graphQLJSON), 400, "SUBSCRIPTIONS_OFF"},
		"a subscription as a stream":   {with(post(t, "", admin, subscription, ""), "Accept", "text/event-stream"), 400, "SUBSCRIPTIONS_OFF"},
		"a call of a tool":             {with(tool, "Content-Type", "application/json"), 200, "Widget A"},
		"a query as a stream":          {with(post(t, "", admin, products, ""), "Accept", "text/event-stream"), 200, "event: complete"},
		"an upgrade to a WebSocket":    {with(get.Clone(t.Context()), "Upgrade", "websocket", "Connection", "Upgrade", "Sec-Fetch-Site", "cross-site"), 403, "CSRF_PREVENTED"},
		"a body that is not in base64": {with(post(t, "", admin, "{", ""), "Accept", graphQLJSON), 400, "BAD_USER_INPUT"},
	} {
		for _, version := range []string{"2.0", "1.0"} {
			request := c.request.Clone(t.Context())
			if c.request.GetBody != nil {
				if request.Body, err = c.request.GetBody(); err != nil {
					t.Fatal(err)
				}
			}
			request.RemoteAddr = fmt.Sprintf("192.0.2.%d", len(name)) // its own rate limit
			response := f.do(version, request)
			summary, body := read(t, response)
			if response.StatusCode != c.status || !strings.Contains(body, c.body) || c.body == "" && body != "" {
				t.Errorf("%s, version %s: %s%s, want %d with %q", name, version, summary, body, c.status, c.body)
			}
			if origin := request.Header.Get("Origin"); origin != response.Header.Get("Access-Control-Allow-Origin") {
				t.Errorf("%s, version %s: the allowed origin is %q", name, version, response.Header.Get("Access-Control-Allow-Origin"))
			}
		}
	}
	ask := func(address string) *http.Response {
		request := post(t, "", "", products+"#"+strings.Repeat(" ", 50_000), "")
		request.RemoteAddr = address
		return f.do("2.0", request)
	}
	limited := false
	for range 100 {
		if response := ask(sourceIP); response.StatusCode == http.StatusTooManyRequests {
			limited = response.Header.Get("Retry-After") != ""
			break
		}
	}
	if !limited {
		t.Error("no request was limited")
	}
	if response := ask("203.0.113.8"); response.StatusCode != http.StatusOK {
		t.Errorf("another address has status %d", response.StatusCode)
	}
	if got := f.invoke(invocation{payload: []byte(`{"source": "aws.events"}`)}); !got.failed || !strings.Contains(string(got.body), "not an HTTP request") {
		t.Errorf("an event that is not an HTTP request: %s", got.body)
	}
	// An invocation that has reached its deadline receives a response, and the function then serves
	// the next invocation.
	late := f.invoke(invocation{payload: event(t, "2.0", post(t, "", admin, products, "")), timeout: time.Millisecond})
	if late.failed || !strings.Contains(string(late.body), "TIMED_OUT") && !strings.Contains(string(late.body), "UNAVAILABLE") {
		t.Errorf("after the deadline: %s", late.body)
	}
	if response := f.do("2.0", post(t, "", admin, `{ viewer { role } }`, "")); response.StatusCode != http.StatusOK {
		t.Errorf("after a timeout: status %d", response.StatusCode)
	}
}

// If a setting does not work in AWS Lambda, the program exits with a message that names the
// setting.
func TestSettings(t *testing.T) {
	d := newDatabase(t)
	for want, setting := range map[string]string{
		"set ORDERGRAPH_STORE=dynamodb":     "ORDERGRAPH_STORE=embedded",
		"set it to at most 4194304":         "ORDERGRAPH_MAX_ANSWER=5000000",
		"AWS_LAMBDA_RUNTIME_API is not set": "AWS_LAMBDA_RUNTIME_API=",
	} {
		command := exec.Command(program, "lambda")
		command.Env = append(d.settings("none"), "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", setting)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", setting, err, out)
		}
	}
}

// BenchmarkColdStart measures the time from the start of the process to the first response. The
// request is a query for a customer and the customer's orders.
func BenchmarkColdStart(b *testing.B) {
	d := newDatabase(b)
	settings := d.settings(d.load(b, sample(b)))
	admin := token(b, settings)
	for b.Loop() {
		f := startFunction(b, settings)
		if response := f.do("2.0", post(b, "", admin, `{ customer(id: "cust_01") { name orders { nodes { id status } } } }`, "")); response.StatusCode != http.StatusOK {
			b.Fatalf("status %d", response.StatusCode)
		}
	}
}
