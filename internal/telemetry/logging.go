package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// The formats of the log.
const (
	LogJSON = "json"
	LogText = "text"
)

// NewLogHandler returns a handler that writes entries of at least the given level to w. If an
// entry belongs to a trace, the handler adds the attribute traceId.
func NewLogHandler(w io.Writer, format string, level slog.Leveler) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if format == LogText {
		return traceHandler{slog.NewTextHandler(w, options)}
	}
	return traceHandler{slog.NewJSONHandler(w, options)}
}

// traceHandler wraps a log handler and adds the trace ID to each entry.
type traceHandler struct{ slog.Handler }

// Handle writes an entry. If ctx belongs to a trace, it adds the trace ID to the entry.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		r.AddAttrs(slog.String("traceId", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds the given attributes to each entry.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that puts the attributes of each entry into a group with the given
// name.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
