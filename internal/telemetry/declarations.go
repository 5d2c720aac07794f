package telemetry

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Types of Prometheus metrics.
const (
	kindCounter   = "counter"
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// metric declares a metric. The exported metric and its row in docs/metrics.md derive from this
// declaration.
type metric struct {
	name, kind string
	labels     []string
	// meaning describes the metric in Markdown.
	meaning string
	// buckets are the upper bounds of a histogram's buckets.
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
	metricOperations metricID = iota
	metricOperationDuration
	metricGraphQLErrors
	metricHTTPResponses
	metricDynamoDBRequests
	metricDynamoDBRequestDuration
	metricCapacityUnits
	metricThrottles
	metricRetries
	metricFastPath
	metricBreakerState
	metricBreakerRejections
	metricRetryBudgetExhausted
	metricClockDifference
	metricLoaderBatchSize
	metricPoolSize
	metricPoolUsed
	metricPoolWaiting
	metricPoolRefusals
	metricSubscriptions
	metricStreamLag
	metricSubscriptionCatchUps
	metricSubscriptionEvents
	metricIdempotentReplays
	metricTransactionConflicts
	metricReady
	metricDerivationReadable
	metricDerivationProgress
	metricBuildInfo
	metricWebhooks
	metricWebhookDeliveries
	metricWebhookLag
	metricWebhookPending
	metricWebhookSetAside
	metricCount
)

// durationBuckets returns the upper bounds in seconds of the buckets of all duration histograms.
func durationBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// sections returns the sections of docs/metrics.md. Each metric belongs to one section.
func sections() []section {
	return []section{
		{"GraphQL", []metricID{metricOperations, metricOperationDuration, metricGraphQLErrors, metricHTTPResponses}},
		{"DynamoDB", []metricID{metricDynamoDBRequests, metricDynamoDBRequestDuration, metricCapacityUnits, metricThrottles, metricRetries, metricFastPath, metricBreakerState, metricBreakerRejections, metricRetryBudgetExhausted, metricClockDifference}},
		{"Server", []metricID{metricLoaderBatchSize, metricPoolSize, metricPoolUsed, metricPoolWaiting, metricPoolRefusals, metricIdempotentReplays, metricTransactionConflicts, metricReady, metricDerivationReadable, metricDerivationProgress, metricBuildInfo}},
		{"Subscriptions", []metricID{metricSubscriptions, metricStreamLag, metricSubscriptionCatchUps, metricSubscriptionEvents}},
		{"Outgoing webhooks", []metricID{metricWebhooks, metricWebhookDeliveries, metricWebhookLag, metricWebhookPending, metricWebhookSetAside}},
	}
}

// declarations returns the declarations of all metrics.
func declarations() [metricCount]metric {
	return [metricCount]metric{
		metricOperations:              {"ordergraph_operations_total", kindCounter, []string{"operation", "type", "code"}, "GraphQL operations and requests of [webhooks](webhooks.md); `operation` is the name of a trusted operation or webhook, or `other`; `code` is the first error code, or `OK`", nil},
		metricOperationDuration:       {"ordergraph_operation_duration_seconds", kindHistogram, []string{"operation", "type"}, "execution time", durationBuckets()},
		metricGraphQLErrors:           {"ordergraph_errors_total", kindCounter, []string{"code"}, "errors in responses", nil},
		metricHTTPResponses:           {"ordergraph_http_responses_total", kindCounter, []string{"status"}, "responses of `/graphql` and webhooks", nil},
		metricDynamoDBRequests:        {"ordergraph_dynamodb_requests_total", kindCounter, []string{"pattern", "operation", "result"}, "requests, excluding retries; `result` is " + markdownList(results()), nil},
		metricDynamoDBRequestDuration: {"ordergraph_dynamodb_request_duration_seconds", kindHistogram, []string{"pattern", "operation"}, "duration including retries", durationBuckets()},
		metricCapacityUnits:           {"ordergraph_dynamodb_units_total", kindCounter, []string{"pattern", "unit"}, "consumed capacity units (`read`, `write`)", nil},
		metricThrottles:               {"ordergraph_dynamodb_throttles_total", kindCounter, []string{"pattern", "reason"}, "attempts that DynamoDB throttled; `reason` is DynamoDB's reason", nil},
		metricRetries:                 {"ordergraph_dynamodb_retries_total", kindCounter, []string{"pattern", "cause"}, "retries; `cause` is " + markdownList(retryCauses()), nil},
		metricFastPath:                {"ordergraph_dynamodb_fast_path_total", kindCounter, []string{"outcome"}, "requests sent without the AWS SDK (`fast`) or with the AWS SDK (`fallback`)", nil},
		metricBreakerState:            {"ordergraph_dynamodb_breaker_state", kindGauge, nil, "state of the circuit breaker: 0 is closed, 1 is half-open, 2 is open", nil},
		metricBreakerRejections:       {"ordergraph_dynamodb_breaker_rejections_total", kindCounter, nil, "attempts rejected by the circuit breaker", nil},
		metricRetryBudgetExhausted:    {"ordergraph_dynamodb_retry_budget_exhausted_total", kindCounter, nil, "requests that failed because the retry budget was exhausted", nil},
		metricClockDifference:         {"ordergraph_clock_difference_seconds", kindGauge, nil, "server's time minus DynamoDB's time; 0 if the difference is at most 5 seconds", nil},
		metricLoaderBatchSize:         {"ordergraph_loader_batch_size", kindHistogram, []string{"pattern"}, "keys per batch", []float64{1, 2, 5, 10, 25, 50, 100, 250}},
		metricPoolSize:                {"ordergraph_pool_size", kindGauge, []string{"pool"}, "capacity of a [pool](limits.md#shares)", nil},
		metricPoolUsed:                {"ordergraph_pool_used", kindGauge, []string{"pool"}, "used capacity", nil},
		metricPoolWaiting:             {"ordergraph_pool_waiting", kindGauge, []string{"pool"}, "waiting callers", nil},
		metricPoolRefusals:            {"ordergraph_pool_refusals_total", kindCounter, []string{"pool", "reason"}, "requests refused because the pool is full (`full`) or the caller's share is used up (`share`)", nil},
		metricSubscriptions:           {"ordergraph_subscriptions", kindGauge, nil, "open subscriptions", nil},
		metricStreamLag:               {"ordergraph_stream_lag_seconds", kindGauge, nil, "age of the last record from DynamoDB Streams when the server read it; 0 if the last read returned no records", nil},
		metricSubscriptionCatchUps:    {"ordergraph_subscription_catch_ups_total", kindCounter, nil, "reads of missed events", nil},
		metricSubscriptionEvents:      {"ordergraph_subscription_events_total", kindCounter, nil, "delivered events", nil},
		metricIdempotentReplays:       {"ordergraph_idempotent_replays_total", kindCounter, nil, "repeated mutations that returned the result stored for their `idempotencyKey`", nil},
		metricTransactionConflicts:    {"ordergraph_conflicts_total", kindCounter, []string{"pattern"}, "transactions repeated because a record had changed after it was read", nil},
		metricReady:                   {"ordergraph_ready", kindGauge, nil, "1 if ready, otherwise 0", nil},
		metricDerivationReadable:      {"ordergraph_derivation_readable", kindGauge, []string{"derivation"}, "1 if the [list or number](operations.md#a-new-list-or-number-on-a-live-table) is readable, otherwise 0", nil},
		metricDerivationProgress:      {"ordergraph_derivation_progress", kindGauge, []string{"derivation"}, "part of the table that the backfill has read, from 0 to 1; 1 if readable", nil},
		metricBuildInfo:               {"ordergraph_build_info", kindGauge, []string{"version", "commit", "goversion"}, "always 1", nil},
		metricWebhooks:                {"ordergraph_webhooks", kindGauge, []string{"state"}, "[webhooks](webhooks.md#outgoing-webhooks) whose events this server delivers; `state` is `active`, or `retrying` if the server waits after failures", nil},
		metricWebhookDeliveries:       {"ordergraph_webhook_deliveries_total", kindCounter, []string{"result"}, "attempts to deliver an event to a webhook; `result` is `delivered` or `failed`", nil},
		metricWebhookLag:              {"ordergraph_webhook_lag_seconds", kindGauge, nil, "age of the oldest event that is not delivered to one of this server's webhooks", nil},
		metricWebhookPending:          {"ordergraph_webhook_pending", kindGauge, nil, "events that are known, but not delivered", nil},
		metricWebhookSetAside:         {"ordergraph_webhook_orders_set_aside", kindGauge, nil, "orders whose events are retried later, because one of them failed", nil},
	}
}

// markdownList formats label values as a list in Markdown.
func markdownList(values []string) string { return "`" + strings.Join(values, "`, `") + "`" }

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
				labels = markdownList(m.labels)
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.meaning)
		}
	}
	return text.String() + "\n"
}

// help returns the meaning without Markdown.
func (m metric) help() string {
	plain := strings.NewReplacer("`", "", "[", "", "](limits.md#shares)", "", "](webhooks.md)", "", "](operations.md#a-new-list-or-number-on-a-live-table)", "").Replace(m.meaning)
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

// desc returns the Prometheus description of a metric that sourceCollector exports.
func (m metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.name, m.help(), m.labels, nil)
}
