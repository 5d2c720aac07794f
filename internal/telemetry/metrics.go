package telemetry

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Types of Prometheus metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// metric declares a metric. Both the exported metric and its row in docs/metrics.md are generated
// from the declaration.
type metric struct {
	name, kind string
	labels     []string
	// meaning describes the metric in Markdown.
	meaning string
	// buckets are the upper bounds of a histogram.
	buckets []float64
}

// section is a group of metrics in docs/metrics.md.
type section struct {
	title   string
	metrics []metricID
}

// metricID identifies a declared metric.
type metricID int

const (
	operations metricID = iota
	operationDuration
	graphQLErrors
	httpResponses
	requests
	requestDuration
	units
	throttles
	retries
	fastPath
	breakerState
	breakerRejections
	retryBudgetExhausted
	clockDifference
	batchSize
	poolSize
	poolUsed
	poolWaiting
	poolRefusals
	subscriptions
	streamLag
	catchUps
	events
	replays
	conflicts
	ready
	buildInfo
	metricCount
)

// durationBuckets returns the buckets of all histograms of durations, in durationBuckets.
func durationBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// sections returns the sections of docs/metrics.md. Each metric is in one section.
func sections() []section {
	return []section{
		{"GraphQL", []metricID{operations, operationDuration, graphQLErrors, httpResponses}},
		{"DynamoDB", []metricID{requests, requestDuration, units, throttles, retries, fastPath, breakerState, breakerRejections, retryBudgetExhausted, clockDifference}},
		{"Server", []metricID{batchSize, poolSize, poolUsed, poolWaiting, poolRefusals, replays, conflicts, ready, buildInfo}},
		{"Subscriptions", []metricID{subscriptions, streamLag, catchUps, events}},
	}
}

// declarations returns the declarations of all metrics.
func declarations() [metricCount]metric {
	return [metricCount]metric{
		operations:           {"ordergraph_operations_total", counter, []string{"operation", "type", "code"}, "operations; `operation` is the name of a trusted operation; `code` is `OK` or the first error code", nil},
		operationDuration:    {"ordergraph_operation_duration_seconds", histogram, []string{"operation", "type"}, "execution time", durationBuckets()},
		graphQLErrors:        {"ordergraph_errors_total", counter, []string{"code"}, "errors in responses", nil},
		httpResponses:        {"ordergraph_http_responses_total", counter, []string{"status"}, "responses of `/graphql`", nil},
		requests:             {"ordergraph_dynamodb_requests_total", counter, []string{"pattern", "operation", "result"}, "requests, excluding retries; `result` is " + quoted(results()), nil},
		requestDuration:      {"ordergraph_dynamodb_request_duration_seconds", histogram, []string{"pattern", "operation"}, "duration including retries", durationBuckets()},
		units:                {"ordergraph_dynamodb_units_total", counter, []string{"pattern", "unit"}, "consumed capacity units (`read`, `write`)", nil},
		throttles:            {"ordergraph_dynamodb_throttles_total", counter, []string{"pattern", "reason"}, "throttled attempts, by DynamoDB's reason", nil},
		retries:              {"ordergraph_dynamodb_retries_total", counter, []string{"pattern", "cause"}, "retries; `cause` is " + quoted(retryCauses()), nil},
		fastPath:             {"ordergraph_dynamodb_fast_path_total", counter, []string{"outcome"}, "requests sent without the AWS SDK (`fast`) or with it (`fallback`)", nil},
		breakerState:         {"ordergraph_dynamodb_breaker_state", gauge, nil, "circuit breaker: 0 closed, 1 half-open, 2 open", nil},
		breakerRejections:    {"ordergraph_dynamodb_breaker_rejections_total", counter, nil, "attempts rejected by the circuit breaker", nil},
		retryBudgetExhausted: {"ordergraph_dynamodb_retry_budget_exhausted_total", counter, nil, "requests that failed because the retry budget was exhausted", nil},
		clockDifference:      {"ordergraph_clock_difference_seconds", gauge, nil, "server's time minus DynamoDB's; 0 if the difference is at most 5 seconds", nil},
		batchSize:            {"ordergraph_loader_batch_size", histogram, []string{"pattern"}, "keys per batch", []float64{1, 2, 5, 10, 25, 50, 100, 250}},
		poolSize:             {"ordergraph_pool_size", gauge, []string{"pool"}, "capacity of a [pool](limits.md#shares)", nil},
		poolUsed:             {"ordergraph_pool_used", gauge, []string{"pool"}, "used capacity", nil},
		poolWaiting:          {"ordergraph_pool_waiting", gauge, []string{"pool"}, "waiting callers", nil},
		poolRefusals:         {"ordergraph_pool_refusals_total", counter, []string{"pool", "reason"}, "refusals because the pool is full (`full`) or the caller's share is used up (`share`)", nil},
		subscriptions:        {"ordergraph_subscriptions", gauge, nil, "open subscriptions", nil},
		streamLag:            {"ordergraph_stream_lag_seconds", gauge, nil, "age of the last stream record when the server read it; 0 after an empty read", nil},
		catchUps:             {"ordergraph_subscription_catch_ups_total", counter, nil, "reads of missed events", nil},
		events:               {"ordergraph_subscription_events_total", counter, nil, "delivered events", nil},
		replays:              {"ordergraph_idempotent_replays_total", counter, nil, "repeated mutations that returned the stored result", nil},
		conflicts:            {"ordergraph_conflicts_total", counter, []string{"pattern"}, "transactions repeated because a record had changed", nil},
		ready:                {"ordergraph_ready", gauge, nil, "1 if ready, otherwise 0", nil},
		buildInfo:            {"ordergraph_build_info", gauge, []string{"version", "commit", "goversion"}, "always 1", nil},
	}
}

// quoted formats label values as a list in Markdown.
func quoted(values []string) string { return "`" + strings.Join(values, "`, `") + "`" }

// Markdown returns the tables of docs/metrics.md.
func Markdown() string {
	var text strings.Builder
	all := declarations()
	for _, s := range sections() {
		fmt.Fprintf(&text, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", s.title)
		for _, id := range s.metrics {
			m := all[id]
			labels := ""
			if len(m.labels) > 0 {
				labels = quoted(m.labels)
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.meaning)
		}
	}
	return text.String() + "\n"
}

// help returns the meaning without Markdown.
func (m metric) help() string {
	plain := strings.NewReplacer("`", "", "[", "", "](limits.md#shares)", "").Replace(m.meaning)
	return strings.ToUpper(plain[:1]) + plain[1:] + "."
}

func (m metric) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help()}, m.labels)
}

func (m metric) gauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.name, Help: m.help()}, m.labels)
}

func (m metric) histogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help(), Buckets: m.buckets}, m.labels)
}

// desc returns the Prometheus description of a metric whose value is computed when Prometheus
// scrapes the server.
func (m metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.name, m.help(), m.labels, nil)
}
