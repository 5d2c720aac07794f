package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/logging"
	"github.com/ordergraph/ordergraph/internal/observation"
	"github.com/ordergraph/ordergraph/internal/tracing"
	"github.com/ordergraph/ordergraph/internal/version"
)

// openTelemetry creates the tracer and the access log, if cfg enables them. The caller must close
// both. openTelemetry also sets the functions in cfg.Table that observe requests to DynamoDB.
func openTelemetry(ctx context.Context, cfg *config.Config, m *metrics, log *slog.Logger) (observation.Telemetry, error) {
	var t observation.Telemetry
	if m != nil {
		t.Metrics = m
		cfg.Table.Attempts.OnFailure, cfg.Table.Attempts.OnRetry = m.ObserveFailure, m.ObserveRetry
	}
	cfg.Table.Observer = m.observer()
	if cfg.AccessLog {
		t.AccessLog = logging.NewAccessLog(log, cfg.CursorKey, time.Now)
	}
	if !cfg.Traces {
		return t, nil
	}
	var err error
	t.Tracer, err = tracing.New(ctx, version.Get().Version, log)
	cfg.Table.Observer = trace.CombineObservers(m.observer(), t.Tracer.RequestObserver(cfg.Table.Table))
	return t, err
}
