package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/tracetest"
)

// The operations of TestGoldenTrace.
const (
	tracedQuery    = `query CustomerOrders($id: ID!) { customer(id: $id) { name orders(first: 10) { nodes { id items { nodes { quantity product { name } } } } } } }`
	tracedMutation = `mutation PlaceOrder($input: PlaceOrderInput!) { placeOrder(input: $input) { order { id customer { orderCount } } } }`
	// marker is part of IDs, variables and documents that clients send. Spans and logs must not
	// contain it.
	marker = "secretmarker"
)

// served contains the output of a server that has stopped.
type served struct {
	answers []string
	log     []map[string]any
	logText string
}

// serveTraced runs a server with traces and an access log. It sends the request bodies one after
// the other, all with the given header, and then stops the server.
func serveTraced(t *testing.T, c *tracetest.Collector, header http.Header, bodies []string, variables ...string) served {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "manifest.json")
	text, err := json.Marshal(map[string]string{"query-1": tracedQuery, "mutation-1": tracedMutation})
	if err == nil {
		err = os.WriteFile(manifest, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	command := start(ctx, "-addr 127.0.0.1:0", append(variables, "ORDERGRAPH_ACCESS_LOG=on", "ORDERGRAPH_DOCUMENTS="+manifest, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)...)
	var s served
	select {
	case addr := <-command.listening:
		for _, body := range bodies {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr.String()+server.PathGraphQL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header.Clone()
			r.Header.Set("Content-Type", "application/json")
			_, answer := readResponse(t)(http.DefaultClient.Do(r))
			s.answers = append(s.answers, answer)
		}
	case <-command.done:
	}
	stop()
	<-command.done
	s.logText = command.stderr.String()
	if command.status != 0 {
		t.Fatalf("the server ended with status %d: %s", command.status, s.logText)
	}
	for d := json.NewDecoder(strings.NewReader(s.logText)); d.More(); {
		var entry map[string]any
		if err := d.Decode(&entry); err != nil {
			t.Fatal(err)
		}
		s.log = append(s.log, entry)
	}
	return s
}

// The spans of a query and a mutation have the attributes that docs/operations.md shows. Their
// trace is the trace of the client's traceparent header, and the log entries contain the ID of the
// trace.
func TestGoldenTrace(t *testing.T) {
	c := tracetest.New(t)
	c.Configure(t, "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	s := serveTraced(t, c, http.Header{"Traceparent": {"00-" + trace + "-" + parent + "-01"}}, []string{
		`{"documentId": "query-1", "variables": {"id": "cust_01"}}`,
		`{"documentId": "mutation-1", "variables": {"input": {"customerId": "cust_01", "items": [{"sku": "prod_100", "quantity": 1}], "idempotencyKey": "` + marker + `"}}}`,
	})
	for _, answer := range s.answers {
		if strings.Contains(answer, `"errors"`) {
			t.Errorf("a traced operation failed: %s", answer)
		}
	}
	spans := c.Spans()
	golden.CheckSection(t, "../../docs/operations.md", "trace", "```text\n"+tracetest.Tree(spans)+"```\n")
	if len(spans) != 2 || len(s.log) != 2 {
		t.Fatalf("2 operations have %d spans and %d log entries: %s", len(spans), len(s.log), s.logText)
	}
	for i, span := range spans {
		if span.TraceID != trace || span.ParentID != parent {
			t.Errorf("%s has the trace %s and the parent %s", span.Name, span.TraceID, span.ParentID)
		}
		entry := s.log[i]
		if entry["traceId"] != trace || span.Name != fmt.Sprint(entry["type"], " ", entry["operation"]) || entry["code"] != "OK" {
			t.Errorf("the log entry of %s is %v", span.Name, entry)
		}
		for name, attribute := range map[string]string{"requests": "ordergraph.requests", "readUnits": "ordergraph.read_units", "writeUnits": "ordergraph.write_units", "status": "http.response.status_code"} {
			if fmt.Sprint(entry[name]) != span.Attributes[attribute] {
				t.Errorf("%s has %s=%s, but the log has %v", span.Name, attribute, span.Attributes[attribute], entry[name])
			}
		}
		if fmt.Sprint(len(span.Children)) != span.Attributes["ordergraph.requests"] {
			t.Errorf("%s has %d spans of requests, but made %s requests", span.Name, len(span.Children), span.Attributes["ordergraph.requests"])
		}
	}
	for name, want := range map[string]string{"service.name": "ordergraph", "deployment.environment.name": "test", "telemetry.sdk.language": "go"} {
		if got := c.ResourceAttribute(name); got != want {
			t.Errorf("the resource has %s=%q, want %q", name, got, want)
		}
	}
}

// Metrics contain the names of trusted operations, even if the manifest contains only IDs and
// documents. The exemplars of the metrics contain trace IDs.
func TestOperationMetrics(t *testing.T) {
	c := tracetest.New(t)
	c.Configure(t)
	manifest := filepath.Join(t.TempDir(), "manifest.json")
	text, err := json.Marshal(map[string]string{"query-1": tracedQuery})
	if err == nil {
		err = os.WriteFile(manifest, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	command, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_ADMIN_ADDR=0", "ORDERGRAPH_DOCUMENTS="+manifest, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for _, body := range []string{`{"documentId": "query-1", "variables": {"id": "cust_01"}}`, `{"query": "query ` + marker + ` { ` + marker + ` }"}`, `{`} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+server.PathGraphQL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Traceparent": {"00-" + trace + "-b7ad6b7169203331-01"}}
		readResponse(t)(http.DefaultClient.Do(r))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metricsURL(t, command)+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text")
	_, page := readResponse(t)(http.DefaultClient.Do(r))
	for _, want := range []string{
		`ordergraph_operations_total{code="OK",operation="CustomerOrders",type="query"} 1`, `ordergraph_operations_total{code="BAD_USER_INPUT",operation="other",type="query"} 1`,
		`ordergraph_operations_total{code="BAD_REQUEST",operation="other",type="unknown"} 1`, `ordergraph_errors_total{code="BAD_REQUEST"} 1`, `ordergraph_http_responses_total{status="400"} 1`, `# {trace_id="` + trace,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
	if strings.Contains(page, marker) {
		t.Error("the metrics contain a part of a request")
	}
}

// Spans and logs contain no IDs, variables or documents of clients. The names of operations in
// untrusted documents are also omitted.
func TestTelemetryContainsNoInput(t *testing.T) {
	c := tracetest.New(t)
	c.Configure(t, "OTEL_SERVICE_NAME", "orders")
	bodies := []string{
		`{"query": "query ` + marker + ` { ` + marker + `: customer(id: \"` + marker + `\") { name } }", "operationName": "` + marker + `"}`,
		`{"query": "query A($id: ID!) { customer(id: $id) { name orders { nodes { id } } } customerByEmail(email: \"` + marker + `@example.com\") { id } }", "variables": {"id": "` + marker + `"}}`,
		`{"query": "{ ` + marker + ` }"}`,
		`{"query": "mutation { createCustomer(input: {name: \"` + marker + `\", email: \"` + marker + `@example.com\"}) { customer { id } } }"}`,
		`{"query": 1, "variables": "` + marker + `"}`,
		`{"documentId": "` + marker + `"}`,
	}
	s := serveTraced(t, c, http.Header{marker: {marker}}, bodies)
	if len(s.log) != len(bodies) || len(c.Spans()) != len(bodies) {
		t.Errorf("%d requests have %d log entries and %d spans", len(bodies), len(s.log), len(c.Spans()))
	}
	if c.Contains(marker) {
		t.Errorf("a span contains a part of a request:\n%s", tracetest.Tree(c.Spans()))
	}
	if strings.Contains(s.logText, marker) {
		t.Errorf("the log contains a part of a request: %s", s.logText)
	}
	if c.ResourceAttribute("service.name") != "orders" {
		t.Errorf("the service is %q", c.ResourceAttribute("service.name"))
	}
	codes := ""
	for _, entry := range s.log {
		codes += fmt.Sprint(entry["operation"], " ", entry["type"], " ", entry["code"], "\n")
	}
	const want = "other query OK\nother query OK\nother query BAD_USER_INPUT\nother mutation OK\nother unknown BAD_REQUEST\nother unknown DOCUMENT_NOT_TRUSTED\n"
	if codes != want {
		t.Errorf("the log has the operations\n%swant\n%s", codes, want)
	}
}

// Traces are off unless environment variables turn them on. Spans are exported only if they are
// sampled.
func TestTracesAreOff(t *testing.T) {
	for _, variables := range [][]string{
		{"OTEL_SDK_DISABLED", "TRUE"},
		{"OTEL_TRACES_EXPORTER", "none"},
		{"OTEL_TRACES_SAMPLER", "always_off"},
		{"OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0"},
	} {
		t.Run(variables[0]+"="+variables[1], func(t *testing.T) {
			c := tracetest.New(t)
			c.Configure(t, variables...)
			s := serveTraced(t, c, http.Header{}, []string{`{"documentId": "query-1", "variables": {"id": "cust_01"}}`}, variables[0]+"="+variables[1])
			if spans := c.Spans(); len(spans) != 0 || len(s.log) != 1 {
				t.Errorf("%d spans were exported, and %d entries were logged", len(spans), len(s.log))
			}
		})
	}
	run(t, "-addr 127.0.0.1:0", "OTEL_TRACES_EXPORTER=none", "ORDERGRAPH_ACCESS_LOG=maybe").checkFailed(t, 1, "ORDERGRAPH_ACCESS_LOG")
}

// If the exporter of traces is invalid, the server does not start, and the error names the
// variable.
func TestInvalidExporter(t *testing.T) {
	run(t, "-addr 127.0.0.1:0", "OTEL_TRACES_EXPORTER=pigeon").checkFailed(t, 1, "OTEL_TRACES_EXPORTER", "otlp or console or none")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon")
	run(t, "-addr 127.0.0.1:0", "OTEL_TRACES_EXPORTER=otlp").checkFailed(t, 1, "exporter of traces", "correct the OTEL_* variables")
}

// The server writes logs to stderr, so that stdout contains only the output of the command. The
// access log contains only GraphQL requests.
func TestTextLog(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := start(ctx, "-addr 127.0.0.1:0", "ORDERGRAPH_LOG_FORMAT=text", "ORDERGRAPH_ACCESS_LOG=on")
	url := "http://" + (<-c.listening).String()
	get(t, url+server.PathGraphQL+"?query={__typename}")
	get(t, url+server.PathHealth) // is not logged
	stop()
	<-c.done
	if strings.Contains(c.stdout.String(), "msg=") {
		t.Errorf("the log is on stdout: %q", c.stdout.String())
	}
	if log := c.stderr.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, " msg=request operation=other ") {
		t.Errorf("the log is %q", log)
	}
}
