package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

func TestGoldenMetricsDocs(t *testing.T) {
	golden.CheckSection(t, "../../docs/metrics.md", "metrics", telemetry.Markdown())
}

// scrape returns the metrics page. The Accept header selects the format.
func scrape(t *testing.T, m *telemetry.Metrics, accept string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, error %v", w.Code, err)
	}
	return string(body)
}

// observed returns Metrics in which every metric has at least one sample.
func observed(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m := telemetry.NewMetrics()
	engine := embedded.New()
	t.Cleanup(func() { _ = engine.Close() })
	store, err := dynamo.New(engine.Client(), dynamo.Options{Table: "orders", Observer: telemetry.Receivers{Metrics: m}.RequestObserver("orders"), Attempts: attempt.GuardOptions{Breaker: true}})
	if err != nil {
		t.Fatal(err)
	}
	changes := store.OpenFeed(feed.EngineSource(engine), feed.Options{})
	t.Cleanup(changes.Close)
	m.Watch(telemetry.Sources{Store: store, Feed: changes, Pools: admission.New(admission.Sizes{})})
	openBreaker(t, store.AttemptGuard(), 3)
	m.ObserveOperation(t.Context(), observe.Operation{Name: "Checkout", Type: "mutation", Duration: time.Millisecond})
	m.ObserveOperation(t.Context(), observe.Operation{Name: observe.UntrustedName, Type: observe.UnknownType, Codes: []string{"made up", "TIMED_OUT"}})
	m.ObserveResponse(http.StatusOK)
	m.ObserveResponse(999)
	m.ObserveBatch("AP1", 3)
	m.ObserveBatch("made up", 3)
	m.SetReady(true)
	m.WatchWebhooks(func() telemetry.WebhookStats {
		return telemetry.WebhookStats{Webhooks: 3, Retrying: 1, Pending: 4, SetAside: 2, Lag: time.Minute}
	})
	receivers := telemetry.Receivers{Metrics: m}
	receivers.ObserveDelivery(t.Context(), telemetry.Delivery{Status: 204})
	receivers.ObserveDelivery(t.Context(), telemetry.Delivery{Status: 500, Failed: true})
	observeRequest(t, m, trace.Target{Pattern: "AP1", Operation: "GetItem"}, nil)
	observeRequest(t, m, trace.Target{Pattern: "made up", Operation: "made up"}, nil)
	return m
}

// openBreaker opens a circuit breaker by failed attempts. Then it makes attempts that the breaker
// refuses.
func openBreaker(t *testing.T, guard *attempt.Guard, rejections int) {
	t.Helper()
	for range attempt.BreakerMinAttempts {
		a, err := guard.Begin()
		if err != nil {
			t.Fatal(err)
		}
		a.Fail(t.Context(), &types.InternalServerError{})
	}
	for range rejections {
		if _, err := guard.Begin(); err == nil {
			t.Fatal("the breaker is not open")
		}
	}
}

// attempts is an Observer that adds a throttled attempt and a retry to each request.
type attempts struct {
	trace.Observer
	*telemetry.Metrics
}

func (a attempts) BeginRequest(ctx context.Context, t trace.Target) context.Context {
	a.ObserveFailure(ctx, attempt.Failure{Cause: attempt.CauseThrottled, Reason: "TableReadKeyRangeThroughputExceeded"})
	a.ObserveFailure(ctx, attempt.Failure{Cause: attempt.CauseThrottled, Reason: "made up"})
	a.ObserveFailure(ctx, attempt.Failure{Cause: attempt.CauseConflict})
	a.ObserveRetry(ctx, attempt.Failure{Cause: attempt.CauseThrottled})
	return a.Observer.BeginRequest(ctx, t)
}

// observeRequest records one request that ends with err.
func observeRequest(t *testing.T, m *telemetry.Metrics, target trace.Target, err error) {
	t.Helper()
	ctx, timer := trace.StartTimer(t.Context(), attempts{telemetry.Receivers{Metrics: m}.RequestObserver("orders"), m}, target)
	timer.Stop(ctx, trace.Request{Items: 1, ReadUnits: 0.5}, err)
}

// Each declared metric is exported with its type and labels. No other metric with the prefix
// ordergraph_ is exported. The test reads the declarations from the generated Markdown.
func TestDeclaredMetricsAreExported(t *testing.T) {
	var declared []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(ordergraph_\\w+)` \\| (\\w+) \\| (.*?) \\|").FindAllStringSubmatch(telemetry.Markdown(), -1) {
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		slices.Sort(labels)
		declared = append(declared, fmt.Sprint(m[1], " ", m[2], " ", labels))
	}
	text := scrape(t, observed(t), "")
	kinds, exported := map[string]string{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (ordergraph_\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?m)^(ordergraph_\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`).FindAllStringSubmatch(text, -1) {
		name := m[1]
		if kinds[name] == "" {
			name += m[2]
		}
		labels := []string{}
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[3], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		exported[fmt.Sprint(name, " ", kinds[name], " ", labels)] = true
	}
	if len(declared) != len(kinds) {
		t.Errorf("%d metrics are declared, %d are exported", len(declared), len(kinds))
	}
	for _, d := range declared {
		if !exported[d] {
			t.Errorf("%s is declared but not exported", d)
		}
		delete(exported, d)
	}
	for e := range exported {
		t.Errorf("%s is exported but not declared", e)
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total"} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("%s is not exported", name)
		}
	}
}

// Undeclared label values are replaced by "other", so that clients cannot create time series.
func TestUndeclaredLabelValuesAreCountedTogether(t *testing.T) {
	text := scrape(t, observed(t), "")
	for _, line := range []string{
		`ordergraph_operations_total{code="OK",operation="Checkout",type="mutation"} 1`,
		`ordergraph_operations_total{code="other",operation="other",type="unknown"} 1`,
		`ordergraph_errors_total{code="TIMED_OUT"} 1`,
		`ordergraph_http_responses_total{status="other"} 1`,
		`ordergraph_dynamodb_requests_total{operation="other",pattern="other",result="ok"} 1`,
		`ordergraph_dynamodb_throttles_total{pattern="AP1",reason="TableReadKeyRangeThroughputExceeded"} 1`,
		`ordergraph_dynamodb_throttles_total{pattern="AP1",reason="other"} 1`,
		`ordergraph_dynamodb_retries_total{cause="throttled",pattern="AP1"} 1`,
		`ordergraph_dynamodb_units_total{pattern="AP1",unit="read"} 0.5`,
		`ordergraph_dynamodb_breaker_rejections_total 3`,
		`ordergraph_dynamodb_breaker_state 2`,
		`ordergraph_loader_batch_size_sum{pattern="AP1"} 3`,
		`ordergraph_ready 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics do not contain %s", line)
		}
	}
	if strings.Contains(text, "made up") {
		t.Error("an undeclared label value is exported")
	}
}

func TestResultsOfRequests(t *testing.T) {
	cancelled := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, code := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
		}
		return e
	}
	for _, c := range []struct {
		err    error
		result string
	}{
		{nil, "ok"},
		{&types.ProvisionedThroughputExceededException{}, "throttled"},
		{cancelled("None", "ThrottlingError"), "throttled"},
		{cancelled("TransactionConflict", "ThrottlingError"), "conflict"},
		{&types.TransactionInProgressException{}, "conflict"},
		{cancelled("TransactionConflict", "ConditionalCheckFailed"), "condition_failed"},
		{&types.InternalServerError{}, "unavailable"},
		{context.DeadlineExceeded, "unavailable"},
		{errors.New("unknown"), "error"},
		{table.ErrReadBudgetExceeded, ""}, // the request was not sent
	} {
		m := telemetry.NewMetrics()
		observeRequest(t, m, trace.Target{Pattern: "WP1", Operation: "TransactWriteItems"}, c.err)
		got := ""
		if m := regexp.MustCompile(`requests_total\{.*result="(\w+)"\} 1`).FindStringSubmatch(scrape(t, m, "")); m != nil {
			got = m[1]
		}
		if got != c.result {
			t.Errorf("the result of %v is %q, want %q", c.err, got, c.result)
		}
	}
}

// In the OpenMetrics format, only requests with a sampled span have an exemplar with the trace ID.
func TestExemplarsHaveTraceIDs(t *testing.T) {
	const openMetrics = "application/openmetrics-text; version=1.0.0"
	for _, sampled := range []bool{true, false} {
		m := telemetry.NewMetrics()
		id := oteltrace.TraceID{1, 2, 3}
		span := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: id, SpanID: oteltrace.SpanID{4}, TraceFlags: oteltrace.TraceFlags(0).WithSampled(sampled)})
		ctx := oteltrace.ContextWithSpanContext(t.Context(), span)
		ctx, timer := trace.StartTimer(ctx, telemetry.Receivers{Metrics: m}.RequestObserver("orders"), trace.Target{Pattern: "AP1", Operation: "GetItem"})
		timer.Stop(ctx, trace.Request{}, nil)
		if text := scrape(t, m, openMetrics); strings.Contains(text, `# {trace_id="`+id.String()+`"}`) != sampled {
			t.Errorf("the request is sampled: %v, but the metrics are\n%s", sampled, text)
		}
	}
}
