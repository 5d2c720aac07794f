package telemetry

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergraph/ordergraph/graph/observe"
)

// Delivery describes an attempt to deliver an event to a webhook.
type Delivery struct {
	// Webhook and Event are the IDs of the webhook and the event.
	Webhook, Event string
	// Status is the HTTP status of the response, or 0 without a response. Failed reports whether the
	// event was not accepted.
	Status int
	Failed bool
	// Duration is the time of the attempt, and Lag is the age of the event after it.
	Duration, Lag time.Duration
	// Bytes is the length of the request's body.
	Bytes int
}

// WebhookStats are the numbers of the webhooks whose events a server delivers.
type WebhookStats struct {
	// Webhooks is their number, including the ones that wait after failures (Retrying).
	Webhooks, Retrying int
	// Pending is the number of events that are known, but not delivered yet. SetAside is the number of
	// orders that are retried.
	Pending, SetAside int
	// Lag is the age of the oldest event that is not delivered yet.
	Lag time.Duration
}

// transportWebhook is the transport of a request to a webhook, in the access log.
const transportWebhook = "webhook"

// typeDelivery is the type of the delivery of an event to a webhook, in the access log.
const typeDelivery = "delivery"

// deliveryFailed is the code of a delivery without a response, in the access log.
const deliveryFailed = "FAILED"

// ObserveDelivery counts an attempt to deliver an event to a webhook, and adds it to the access
// log.
func (r Receivers) ObserveDelivery(ctx context.Context, d Delivery) {
	if r.Metrics != nil {
		result := "delivered"
		if d.Failed {
			result = "failed"
		}
		r.Metrics.deliveries.WithLabelValues(result).Inc()
	}
	if r.AccessLog == nil {
		return
	}
	e := AccessLogEntry{
		Operation: observe.Operation{Name: d.Webhook, Type: typeDelivery, Duration: d.Duration},
		Transport: transportWebhook, Status: d.Status, Bytes: d.Bytes, Event: d.Event, Lag: d.Lag,
	}
	switch {
	case d.Failed && d.Status != 0:
		e.Codes = []string{fmt.Sprintf("HTTP_%d", d.Status)}
	case d.Failed:
		e.Codes = []string{deliveryFailed}
	}
	r.AccessLog.Record(ctx, &e)
}

// WatchWebhooks exports the numbers of the webhooks whose events the server delivers. It must be
// called only once.
func (m *Metrics) WatchWebhooks(stats func() WebhookStats) {
	m.registry.MustRegister(newWebhookCollector(stats))
}

// webhookCollector exports WebhookStats whenever Prometheus scrapes the server.
type webhookCollector struct {
	stats                            func() WebhookStats
	webhooks, lag, pending, setAside *prometheus.Desc
}

func newWebhookCollector(stats func() WebhookStats) webhookCollector {
	all := declarations()
	return webhookCollector{stats, all[metricWebhooks].desc(), all[metricWebhookLag].desc(), all[metricWebhookPending].desc(), all[metricWebhookSetAside].desc()}
}

// Describe implements prometheus.Collector.
func (c webhookCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.webhooks, c.lag, c.pending, c.setAside} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c webhookCollector) Collect(to chan<- prometheus.Metric) {
	s := c.stats()
	set := func(d *prometheus.Desc, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	set(c.webhooks, float64(s.Webhooks-s.Retrying), "active")
	set(c.webhooks, float64(s.Retrying), "retrying")
	set(c.lag, s.Lag.Seconds())
	set(c.pending, float64(s.Pending))
	set(c.setAside, float64(s.SetAside))
}
