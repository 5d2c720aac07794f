package cli

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/internal/admin"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// openTelemetry creates the tracer and the access log, if cfg enables them. The caller must close
// both. If metrics is nil, the server has no metrics. openTelemetry also sets the functions in
// cfg.Table that observe requests to DynamoDB.
func openTelemetry(ctx context.Context, cfg *config.Config, metrics *telemetry.Metrics, log *slog.Logger) (telemetry.Receivers, error) {
	r := telemetry.Receivers{Metrics: metrics}
	if metrics != nil {
		cfg.Table.Attempts.OnFailure, cfg.Table.Attempts.OnRetry = metrics.ObserveFailure, metrics.ObserveRetry
	}
	if cfg.AccessLog {
		r.AccessLog = telemetry.NewAccessLog(log, cfg.CursorKey, time.Now)
	}
	var err error
	if cfg.Traces {
		r.Tracer, err = telemetry.NewTracer(ctx, log)
	}
	cfg.Table.Observer = r.RequestObserver(cfg.Table.Table)
	return r, err
}

// observeState changes the options of a server so that its metrics contain its state.
func observeState(opts *server.Options) {
	m := opts.Telemetry.Metrics
	if m == nil {
		return
	}
	opts.Graph.ObserveBatch, opts.OnReadiness = m.ObserveBatch, m.SetReady
	m.SetReady(true) // openForServing has already checked the store
	m.Watch(telemetry.Sources{Store: opts.Graph.Store, Feed: opts.Graph.Feed, Pools: opts.Admission})
}

// listenAdmin starts the admin listener, if one is configured, and returns its address. The admin
// listener passes health checks to handler. The function stop stops the listener.
func listenAdmin(cfg config.Config, handler http.Handler, opts server.Options) (listening net.Addr, stop func(), err error) {
	if cfg.AdminAddr == "" {
		return nil, func() {}, nil
	}
	pages := admin.NewHandler(admin.Options{Metrics: opts.Telemetry.Metrics.Handler(), Health: handler, HealthPaths: []string{server.PathHealth, server.PathReady}, Hosts: cfg.Hosts, Log: opts.Log,
		Config: func(w io.Writer) error { return config.WriteEffective(w, cfg) }})
	l, err := admin.Listen(cfg.AdminAddr, pages, opts.Log)
	if err != nil {
		return nil, nil, err
	}
	return l.Addr(), func() {
		if err := l.Close(); err != nil {
			opts.Log.Error("the admin listener failed", "error", err)
		}
	}, nil
}
