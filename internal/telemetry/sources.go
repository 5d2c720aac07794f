package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// Sources contains the components of a server whose state is exported as metrics.
type Sources struct {
	Store *dynamo.Store
	Feed  *feed.Feed
	Pools *admission.Controller
}

// Watch exports the state of the sources as metrics. It must be called only once.
func (m *Metrics) Watch(s Sources) { m.registry.MustRegister(newSourceCollector(m, s)) }

// sourceCollector exports the state of the Sources whenever Prometheus scrapes the server.
type sourceCollector struct {
	Sources
	metrics *Metrics
	descs   [metricCount]*prometheus.Desc
}

func newSourceCollector(m *Metrics, s Sources) *sourceCollector {
	c := &sourceCollector{Sources: s, metrics: m}
	for _, id := range []metricID{
		metricFastPath, metricBreakerState, metricBreakerRejections, metricRetryBudgetExhausted, metricClockDifference, metricPoolSize, metricPoolUsed, metricPoolWaiting,
		metricPoolRefusals, metricSubscriptions, metricStreamLag, metricSubscriptionCatchUps, metricSubscriptionEvents, metricIdempotentReplays, metricTransactionConflicts, metricReady,
		metricDerivationReadable, metricDerivationProgress,
	} {
		c.descs[id] = declarations()[id].desc()
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *sourceCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		if d != nil {
			to <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (c *sourceCollector) Collect(to chan<- prometheus.Metric) {
	count := func(id metricID, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.descs[id], prometheus.CounterValue, n, labels...)
	}
	set := func(id metricID, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.descs[id], prometheus.GaugeValue, n, labels...)
	}
	for _, p := range c.Pools {
		full, share := p.Refusals()
		set(metricPoolSize, float64(p.Size), p.Name)
		set(metricPoolUsed, float64(p.Used()), p.Name)
		set(metricPoolWaiting, float64(p.Waiting()), p.Name)
		count(metricPoolRefusals, float64(full), p.Name, "full")
		count(metricPoolRefusals, float64(share), p.Name, "share")
	}
	stats := c.Store.Stats()
	count(metricFastPath, float64(stats.FastPath()), "fast")
	count(metricFastPath, float64(stats.Fallbacks()), "fallback")
	count(metricIdempotentReplays, float64(stats.Replays()))
	for _, p := range model.WritePatterns() {
		count(metricTransactionConflicts, float64(stats.Conflicts(p.ID)), p.ID)
	}
	set(metricClockDifference, c.Store.ClockDifference().Seconds())

	for name, status := range c.Store.Derivations() {
		readable := 0.0
		if status.State == model.Readable {
			readable = 1
		}
		set(metricDerivationReadable, readable, name)
		set(metricDerivationProgress, status.Progress(), name)
	}

	f := c.Feed.Stats()
	set(metricSubscriptions, float64(f.Subscriptions))
	set(metricStreamLag, f.Lag.Seconds())
	count(metricSubscriptionCatchUps, float64(f.CatchUps))
	count(metricSubscriptionEvents, float64(f.Events))

	guard := c.Store.AttemptGuard()
	attempts := guard.Stats()
	set(metricBreakerState, float64(guard.BreakerState()))
	count(metricBreakerRejections, float64(attempts.Rejections))
	count(metricRetryBudgetExhausted, float64(attempts.BudgetExhausted))

	isReady := 0.0
	if c.metrics.ready.Load() {
		isReady = 1
	}
	set(metricReady, isReady)
}
