package cli

import (
	"context"
	"log/slog"
	"sync"

	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// dispatchWebhooks delivers events to webhooks until the function stop is called. stop waits for
// the deliveries in progress. Without a key for the secrets of webhooks, there are no webhooks.
func dispatchWebhooks(ctx context.Context, cfg config.Config, serving server.Options, log *slog.Logger) (stop func()) {
	if cfg.Table.WebhookKeys == nil {
		return func() {}
	}
	sender := newWebhookSender(cfg)
	d := webhook.NewDispatcher(webhook.Options{
		Store: serving.Graph.Store, Sender: sender, Secrets: serving.Graph.Store.WebhookSecrets, Execute: webhook.NewExecute(serving.Graph), Source: "urn:ordergraph:" + cfg.Table.Table,
		Log: log, Observe: func(ctx context.Context, d webhook.Delivery) {
			serving.Telemetry.ObserveDelivery(ctx, telemetry.Delivery{
				Webhook: string(d.Webhook), Event: string(d.Event.ID), Status: d.Outcome.Status, Failed: d.Outcome.Err != nil, Duration: d.Duration, Lag: d.Lag, Bytes: d.Bytes,
			})
		},
	})
	if serving.Telemetry.Metrics != nil {
		serving.Telemetry.Metrics.WatchWebhooks(func() telemetry.WebhookStats { return telemetry.WebhookStats(d.Stats()) })
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		sender.Close()
	}
}

// newWebhookSender returns the sender of the events of webhooks.
func newWebhookSender(cfg config.Config) *webhook.Sender {
	return webhook.NewSender(webhook.SenderOptions{AllowedHosts: cfg.WebhookAllowedHosts})
}
