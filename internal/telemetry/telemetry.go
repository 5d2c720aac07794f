package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Options configure a Telemetry.
type Options struct {
	// Version and Commit describe the build. If one of them is empty, its label has the value
	// "unknown".
	Version, Commit string
	// Codes are the error codes of the API. All other codes are counted as "other".
	Codes []string
}

// Telemetry contains the metrics of a server. It is safe for concurrent use.
//
// All label values are declared in advance. Clients therefore cannot create an unlimited number of
// time series.
type Telemetry struct {
	registry *prometheus.Registry
	requests *requestVectors

	throttles, retries                       *prometheus.CounterVec
	operations, graphQLErrors, httpResponses *prometheus.CounterVec
	operationDuration                        *prometheus.HistogramVec
	// batches maps each access pattern to its histogram of batch sizes. The map does not change after
	// its creation.
	batches map[string]prometheus.Observer
	ready   atomic.Bool

	operationNames, types, codes             declaredValues
	patterns, throttlingReasons, retryCauses declaredValues
}

var _ trace.Observer = (*Telemetry)(nil)

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

const (
	// codeOK is the code of operations without errors.
	codeOK = "OK"
	// typeUnknown is the type of an operation whose document was rejected.
	typeUnknown = "unknown"
)

// New returns a Telemetry with its own registry.
func New(opts Options) *Telemetry {
	all := declarations()
	t := &Telemetry{
		registry: prometheus.NewRegistry(), requests: newRequestVectors(all),
		throttles: all[metricThrottles].counter(), retries: all[metricRetries].counter(),
		operations: all[metricOperations].counter(), graphQLErrors: all[metricGraphQLErrors].counter(), httpResponses: all[metricHTTPResponses].counter(),
		operationDuration: all[metricOperationDuration].histogram(), batches: map[string]prometheus.Observer{},
		operationNames: newDeclaredValues(), types: newDeclaredValues("query", "mutation", "subscription", typeUnknown),
		codes: newDeclaredValues(append([]string{codeOK}, opts.Codes...)...), patterns: newDeclaredValues(patternIDs()...),
		throttlingReasons: newDeclaredValues(throttlingReasons()...), retryCauses: newDeclaredValues(retryCauses()...),
	}
	sizes, build := all[metricLoaderBatchSize].histogram(), all[metricBuildInfo].gauge()
	for _, pattern := range patternIDs() {
		if pattern[0] == 'A' { // only access patterns have loaders, and their IDs begin with A
			t.batches[pattern] = sizes.WithLabelValues(pattern)
		}
	}
	build.WithLabelValues(cmp.Or(opts.Version, "unknown"), cmp.Or(opts.Commit, "unknown"), runtime.Version()).Set(1)
	t.registry.MustRegister(t.requests.requests, t.requests.units, t.requests.duration, t.throttles, t.retries,
		t.operations, t.graphQLErrors, t.httpResponses, t.operationDuration, sizes, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Handler returns the HTTP handler of the metrics page. The page supports the OpenMetrics format,
// in which a duration can have a trace ID as its exemplar.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// TrustOperation adds the name of a trusted operation to the values of the label "operation". All
// other names become "other". Do not call TrustOperation concurrently with other methods.
func (t *Telemetry) TrustOperation(name string) {
	if name != "" {
		t.operationNames[name] = struct{}{}
	}
}

// ObserveOperation counts an operation and records its duration. If TrustOperation was not called
// with name, the label "operation" gets the value "other". The code of an operation without errors
// is "OK" or empty.
func (t *Telemetry) ObserveOperation(ctx context.Context, name, operationType, code string, d time.Duration) {
	if code == "" {
		code = codeOK
	}
	if name = t.operationNames.valueOrOther(name); t.types.valueOrOther(operationType) != operationType {
		operationType = typeUnknown
	}
	t.operations.WithLabelValues(name, operationType, t.codes.valueOrOther(code)).Inc()
	observeDuration(ctx, t.operationDuration.WithLabelValues(name, operationType), d)
}

// ObserveError counts an error in a response.
func (t *Telemetry) ObserveError(code string) {
	t.graphQLErrors.WithLabelValues(t.codes.valueOrOther(code)).Inc()
}

// ObserveResponse counts an HTTP response of the GraphQL endpoint.
func (t *Telemetry) ObserveResponse(status int) {
	label := otherLabel
	if http.StatusText(status) != "" {
		label = strconv.Itoa(status)
	}
	t.httpResponses.WithLabelValues(label).Inc()
}

// ObserveBatch records the number of keys that one batch of reads contains. pattern is the ID of
// the access pattern.
func (t *Telemetry) ObserveBatch(pattern string, keys int) {
	if sizes := t.batches[pattern]; sizes != nil {
		sizes.Observe(float64(keys))
	}
}

// SetReady records the result of a readiness check.
func (t *Telemetry) SetReady(ready bool) { t.ready.Store(ready) }
