package telemetry

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/prometheus/client_golang/prometheus"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Results of DynamoDB requests.
const (
	resultOK = iota
	resultThrottled
	resultConflict
	resultConditionFailed
	resultUnavailable
	resultError
	resultCount
)

func results() []string {
	return []string{resultOK: "ok", resultThrottled: "throttled", resultConflict: "conflict", resultConditionFailed: "condition_failed", resultUnavailable: "unavailable", resultError: "error"}
}

// resultOf returns the result of a DynamoDB request that ended with err. The result is a constant
// such as resultThrottled.
func resultOf(err error) int {
	if err == nil {
		return resultOK
	}
	switch attempt.Classify(err).Cause {
	case attempt.CauseThrottled:
		return resultThrottled
	case attempt.CauseConflict:
		return resultConflict
	case attempt.CauseServerError, attempt.CauseConnection:
		return resultUnavailable
	}
	switch {
	case errors.Is(err, attempt.ErrBreakerOpen):
		return resultUnavailable
	case conditionFailed(err):
		return resultConditionFailed
	}
	return resultError
}

// conditionFailed reports whether err means that a condition of a transaction failed.
func conditionFailed(err error) bool {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == attempt.ReasonConditionFailed
	})
}

// requestMetricsKey identifies the metrics for the DynamoDB requests of one pattern and operation.
type requestMetricsKey struct{ pattern, operation string }

// requestMetrics contains the metrics for the DynamoDB requests of one pattern and operation. The
// metrics are created at the first such request. Until then, they are not exported.
type requestMetrics struct {
	create      sync.Once
	results     [resultCount]prometheus.Counter
	duration    prometheus.Observer
	read, write prometheus.Counter
}

// requestVectors contains the metrics of all DynamoDB requests, as Prometheus vectors with labels.
type requestVectors struct {
	requests, units *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	// known contains an entry for each combination of a declared pattern and a DynamoDB operation. The
	// map does not change after its creation.
	known map[requestMetricsKey]*requestMetrics
	other *requestMetrics
}

// otherLabel is the label value that replaces values that are not declared.
const otherLabel = "other"

func newRequestVectors(all [metricCount]metric) *requestVectors {
	v := &requestVectors{
		requests: all[metricDynamoDBRequests].counter(), units: all[metricCapacityUnits].counter(), duration: all[metricDynamoDBRequestDuration].histogram(),
		known: map[requestMetricsKey]*requestMetrics{}, other: &requestMetrics{},
	}
	for _, pattern := range patternIDs() {
		for _, operation := range []string{"GetItem", "BatchGetItem", "Query", "TransactGetItems", "TransactWriteItems"} {
			v.known[requestMetricsKey{pattern, operation}] = &requestMetrics{}
		}
	}
	return v
}

// patternIDs returns the IDs of all access patterns and write patterns.
func patternIDs() (ids []string) {
	for _, p := range model.AccessPatterns() {
		ids = append(ids, p.ID)
	}
	for _, p := range model.WritePatterns() {
		ids = append(ids, p.ID)
	}
	return ids
}

// metricsFor returns the metrics for the pattern and the operation of a DynamoDB request.
func (v *requestVectors) metricsFor(t trace.Target) *requestMetrics {
	key := requestMetricsKey{t.Pattern, t.Operation}
	m := v.known[key]
	if m == nil {
		m, key = v.other, requestMetricsKey{otherLabel, otherLabel}
	}
	m.create.Do(func() {
		for i, result := range results() {
			m.results[i] = v.requests.WithLabelValues(key.pattern, key.operation, result)
		}
		m.duration = v.duration.WithLabelValues(key.pattern, key.operation)
		m.read, m.write = v.units.WithLabelValues(key.pattern, "read"), v.units.WithLabelValues(key.pattern, "write")
	})
	return m
}

// RequestObserver returns an Observer that counts each DynamoDB request to the table and starts a
// span for it. If both the metrics and the traces are off, RequestObserver returns nil.
func (r Receivers) RequestObserver(table string) trace.Observer {
	if r.Metrics == nil && r.Tracer == nil {
		return nil
	}
	return &requestObserver{r, table}
}

// requestObserver passes the measurements of the DynamoDB requests to a table to its Receivers.
type requestObserver struct {
	Receivers
	table string
}

// Observes implements trace.Observer. Metrics count all requests, but only sampled operations are
// traced.
func (o *requestObserver) Observes(ctx context.Context) bool {
	return o.Metrics != nil || spanFromContext(ctx).sampled()
}

// BeginRequest implements trace.Observer.
func (o *requestObserver) BeginRequest(ctx context.Context, t trace.Target) context.Context {
	return o.Tracer.startRequest(ctx, o.table, t)
}

// EndRequest implements trace.Observer.
func (o *requestObserver) EndRequest(ctx context.Context, r trace.Request, err error) {
	o.Tracer.endRequest(ctx, o.table, r, err)
	o.Metrics.observeRequest(ctx, r, err)
}

// observeRequest counts a DynamoDB request. If the operation's read budget was exhausted, the request
// was not sent, so observeRequest ignores it.
func (m *Metrics) observeRequest(ctx context.Context, r trace.Request, err error) {
	if m == nil || errors.Is(err, table.ErrReadBudgetExceeded) {
		return
	}
	of := m.requests.metricsFor(r.Target)
	of.results[resultOf(err)].Inc()
	observeDuration(ctx, of.duration, r.Duration)
	if r.ReadUnits > 0 {
		of.read.Add(r.ReadUnits)
	}
	if r.WriteUnits > 0 {
		of.write.Add(r.WriteUnits)
	}
}

// observeDuration adds a duration to a histogram. If the span in ctx is sampled, the duration gets
// the trace ID as its exemplar.
func observeDuration(ctx context.Context, to prometheus.Observer, d time.Duration) {
	if span := oteltrace.SpanContextFromContext(ctx); span.IsSampled() {
		if to, ok := to.(prometheus.ExemplarObserver); ok {
			to.ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": span.TraceID().String()})
			return
		}
	}
	to.Observe(d.Seconds())
}

// retryCauses returns the possible causes of retries.
func retryCauses() (causes []string) {
	for _, c := range []attempt.Cause{attempt.CauseThrottled, attempt.CauseConflict, attempt.CauseServerError, attempt.CauseConnection} {
		causes = append(causes, string(c))
	}
	return causes
}

// throttlingReasons returns the reasons and error codes that DynamoDB sends for throttled requests.
// See https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html.
func throttlingReasons() []string {
	reasons := []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "LimitExceededException", "ThrottlingError", "ProvisionedThroughputExceeded", attempt.ReasonUnprocessed}
	for _, resource := range []string{"Table", "Index"} {
		for _, access := range []string{"Read", "Write"} {
			for _, limit := range []string{"KeyRangeThroughputExceeded", "ProvisionedThroughputExceeded", "AccountLimitExceeded", "MaxOnDemandThroughputExceeded"} {
				reasons = append(reasons, resource+access+limit)
			}
		}
	}
	return reasons
}

// ObserveFailure counts a failed attempt if DynamoDB throttled it. It ignores other failures.
func (m *Metrics) ObserveFailure(ctx context.Context, f attempt.Failure) {
	if f.Cause == attempt.CauseThrottled {
		m.throttles.WithLabelValues(m.patterns.valueOrOther(trace.TargetFromContext(ctx).Pattern), m.throttlingReasons.valueOrOther(f.Reason)).Inc()
	}
}

// ObserveRetry counts a retry. f is the failure of the previous attempt.
func (m *Metrics) ObserveRetry(ctx context.Context, f attempt.Failure) {
	m.retries.WithLabelValues(m.patterns.valueOrOther(trace.TargetFromContext(ctx).Pattern), m.retryCauses.valueOrOther(string(f.Cause))).Inc()
}
