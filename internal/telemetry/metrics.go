package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/internal/version"
)

// Metrics contains the metrics of a server. It is safe for concurrent use.
//
// All label values are declared in advance or belong to trusted documents. Clients therefore cannot
// create an unlimited number of time series.
type Metrics struct {
	registry *prometheus.Registry
	requests *requestVectors

	throttles, retries                       *prometheus.CounterVec
	operations, graphQLErrors, httpResponses *prometheus.CounterVec
	deliveries                               *prometheus.CounterVec
	operationDuration                        *prometheus.HistogramVec
	// batches maps each access pattern to its histogram of batch sizes. The map does not change after
	// its creation.
	batches map[string]prometheus.Observer
	ready   atomic.Bool

	codes, patterns, throttlingReasons, retryCauses declaredValues
}

// declaredValues is the set of allowed values of a label.
type declaredValues map[string]struct{}

func newDeclaredValues(all ...string) declaredValues {
	v := declaredValues{}
	for _, value := range all {
		v[value] = struct{}{}
	}
	return v
}

// valueOrOther returns the value, or "other" if it is not declared.
func (v declaredValues) valueOrOther(value string) string {
	if _, ok := v[value]; ok {
		return value
	}
	return otherLabel
}

// NewMetrics returns Metrics with their own registry.
func NewMetrics() *Metrics {
	all := declarations()
	m := &Metrics{
		registry: prometheus.NewRegistry(), requests: newRequestVectors(all),
		throttles: all[metricThrottles].counter(), retries: all[metricRetries].counter(),
		operations: all[metricOperations].counter(), graphQLErrors: all[metricGraphQLErrors].counter(), httpResponses: all[metricHTTPResponses].counter(),
		deliveries:        all[metricWebhookDeliveries].counter(),
		operationDuration: all[metricOperationDuration].histogram(), batches: map[string]prometheus.Observer{},
		codes: newDeclaredValues(slices.Concat([]string{observe.OK}, errcode.All(), document.AllLimitCodes())...), patterns: newDeclaredValues(patternIDs()...),
		throttlingReasons: newDeclaredValues(throttlingReasons()...), retryCauses: newDeclaredValues(retryCauses()...),
	}
	sizes, build, built := all[metricLoaderBatchSize].histogram(), all[metricBuildInfo].gauge(), version.Get()
	for _, p := range model.AccessPatterns() {
		m.batches[p.ID] = sizes.WithLabelValues(p.ID)
	}
	build.WithLabelValues(cmp.Or(built.Version, "unknown"), cmp.Or(built.Commit, "unknown"), runtime.Version()).Set(1)
	m.registry.MustRegister(m.requests.requests, m.requests.units, m.requests.duration, m.throttles, m.retries,
		m.operations, m.graphQLErrors, m.httpResponses, m.deliveries, m.operationDuration, sizes, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler returns the HTTP handler of the metrics page. The page supports the OpenMetrics format,
// in which a duration can have a trace ID as its exemplar.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// ObserveOperation counts an operation and its errors, and records its duration. If the operation has
// a trace span, ctx contains the span.
func (m *Metrics) ObserveOperation(ctx context.Context, o observe.Operation) {
	m.operations.WithLabelValues(o.Name, o.Type, m.codes.valueOrOther(o.Code())).Inc()
	observeDuration(ctx, m.operationDuration.WithLabelValues(o.Name, o.Type), o.Duration)
	for _, code := range o.Codes {
		m.graphQLErrors.WithLabelValues(m.codes.valueOrOther(code)).Inc()
	}
}

// ObserveResponse counts an HTTP response of the GraphQL endpoint.
func (m *Metrics) ObserveResponse(status int) {
	label := otherLabel
	if http.StatusText(status) != "" {
		label = strconv.Itoa(status)
	}
	m.httpResponses.WithLabelValues(label).Inc()
}

// ObserveBatch records the number of keys that one batch of reads contains. pattern is the ID of
// the access pattern.
func (m *Metrics) ObserveBatch(pattern string, keys int) {
	if sizes := m.batches[pattern]; sizes != nil {
		sizes.Observe(float64(keys))
	}
}

// SetReady records the result of a readiness check.
func (m *Metrics) SetReady(ready bool) { m.ready.Store(ready) }
