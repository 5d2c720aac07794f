package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// Sources contains the parts of a server whose state is exported as metrics.
type Sources struct {
	Store *dynamo.Store
	Feed  *feed.Feed
	Pools *admission.Controller
}

// Watch exports the state of the sources as metrics. It must be called only once.
func (t *Telemetry) Watch(s Sources) { t.registry.MustRegister(newSourceCollector(t, s)) }

// sourceCollector exports the state of the Sources whenever Prometheus scrapes the server.
type sourceCollector struct {
	Sources
	telemetry *Telemetry
	descs     [metricCount]*prometheus.Desc
}

func newSourceCollector(t *Telemetry, s Sources) *sourceCollector {
	c := &sourceCollector{Sources: s, telemetry: t}
	for _, id := range []metricID{
		fastPath, breakerState, breakerRejections, retryBudgetExhausted, clockDifference, poolSize, poolUsed, poolWaiting,
		poolRefusals, subscriptions, streamLag, catchUps, events, replays, conflicts, ready,
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
		set(poolSize, float64(p.Size), p.Name)
		set(poolUsed, float64(p.Used()), p.Name)
		set(poolWaiting, float64(p.Waiting()), p.Name)
		count(poolRefusals, float64(full), p.Name, "full")
		count(poolRefusals, float64(share), p.Name, "share")
	}
	stats := c.Store.Stats()
	count(fastPath, float64(stats.FastPath()), "fast")
	count(fastPath, float64(stats.Fallbacks()), "fallback")
	count(replays, float64(stats.Replays()))
	for _, p := range model.WritePatterns() {
		count(conflicts, float64(stats.Conflicts(p.ID)), p.ID)
	}
	set(clockDifference, c.Store.ClockDifference().Seconds())

	f := c.Feed.Stats()
	set(subscriptions, float64(f.Subscriptions))
	set(streamLag, f.Lag.Seconds())
	count(catchUps, float64(f.CatchUps))
	count(events, float64(f.Events))

	guard := c.Store.AttemptGuard()
	attempts := guard.Stats()
	set(breakerState, float64(guard.State()))
	count(breakerRejections, float64(attempts.Rejections))
	count(retryBudgetExhausted, float64(attempts.BudgetExhausted))

	isReady := 0.0
	if c.telemetry.ready.Load() {
		isReady = 1
	}
	set(ready, isReady)
}
