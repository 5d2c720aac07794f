package bench_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/test/tracetest"
)

// withTraces makes the server export traces to a collector in this process. ratio is the share of
// sampled traces, from 0 to 1.
func withTraces(t testing.TB, ratio string) func(*config.Config, *telemetry.Receivers) {
	return func(cfg *config.Config, o *telemetry.Receivers) {
		tracetest.New(t).Configure(t, "OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", ratio)
		tracer, err := telemetry.NewTracer(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tracer.Close)
		o.Tracer = tracer
		cfg.Table.Observer = o.RequestObserver(cfg.Table.Table)
	}
}

// withAccessLog makes the server write an access log that is discarded.
func withAccessLog(_ *config.Config, o *telemetry.Receivers) {
	o.AccessLog = telemetry.NewAccessLog(slog.New(telemetry.NewLogHandler(io.Discard, telemetry.LogJSON, slog.LevelInfo)), []byte("a key"), time.Now)
}

// BenchmarkTelemetry measures the cost of traces and of the access log.
func BenchmarkTelemetry(b *testing.B) {
	for _, mode := range []struct {
		name      string
		configure []func(*config.Config, *telemetry.Receivers)
	}{
		{"off", nil},
		{"traces-1%", []func(*config.Config, *telemetry.Receivers){withTraces(b, "0.01")}},
		{"traces-100%", []func(*config.Config, *telemetry.Receivers){withTraces(b, "1")}},
		{"access-log", []func(*config.Config, *telemetry.Receivers){withAccessLog}},
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
