package bench_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/logging"
	"github.com/ordergraph/ordergraph/internal/observation"
	"github.com/ordergraph/ordergraph/internal/test/tracetest"
	"github.com/ordergraph/ordergraph/internal/tracing"
)

// withTraces makes the server export traces to a collector in this process. ratio is the share of
// sampled traces, from 0 to 1.
func withTraces(t testing.TB, ratio string) func(*config.Config, *observation.Telemetry) {
	return func(cfg *config.Config, o *observation.Telemetry) {
		tracetest.New(t).Configure(t, "OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", ratio)
		tracer, err := tracing.New(t.Context(), "test", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tracer.Close)
		o.Tracer, cfg.Table.Observer = tracer, tracer.RequestObserver(cfg.Table.Table)
	}
}

// withAccessLog makes the server write an access log that is discarded.
func withAccessLog(_ *config.Config, o *observation.Telemetry) {
	o.AccessLog = logging.NewAccessLog(slog.New(logging.NewHandler(io.Discard, logging.JSON, slog.LevelInfo)), []byte("a key"), time.Now)
}

// BenchmarkTelemetry measures the cost of traces and of the access log.
func BenchmarkTelemetry(b *testing.B) {
	for _, mode := range []struct {
		name      string
		configure []func(*config.Config, *observation.Telemetry)
	}{
		{"off", nil},
		{"traces-1%", []func(*config.Config, *observation.Telemetry){withTraces(b, "0.01")}},
		{"traces-100%", []func(*config.Config, *observation.Telemetry){withTraces(b, "1")}},
		{"access-log", []func(*config.Config, *observation.Telemetry){withAccessLog}},
	} {
		b.Run(mode.name, func(b *testing.B) {
			api, o := newTestServer(b, mode.configure...), operations()[0]
			bodies, c := o.bodies(b), api.client()
			for _, body := range bodies { // fill all caches
				if err := o.check(c.do(b.Context(), body)); err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				c.do(b.Context(), bodies[n%len(bodies)])
				n++
			}
		})
	}
}
