package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	otrace "go.opentelemetry.io/otel/trace"

	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/internal/version"
)

// instrumentation is the name of the OpenTelemetry instrumentation scope. It is also the default
// service name.
const instrumentation = "ordergraph"

// closeTimeout is the maximum duration of Close, which exports the remaining spans when the server
// stops.
const closeTimeout = 5 * time.Second

// flushTimeout is the maximum duration of Flush. AWS Lambda sends each response only after Flush
// has returned.
const flushTimeout = time.Second

// Tracer starts and exports spans. It is safe for concurrent use. A nil Tracer does nothing.
type Tracer struct {
	provider   *sdk.TracerProvider
	tracer     otrace.Tracer
	propagator propagation.TextMapPropagator
	log        *slog.Logger
}

// NewTracer returns a Tracer. The OTEL_* environment variables configure it. If a variable is
// invalid, NewTracer returns an error. It also sets OpenTelemetry's global error handler.
func NewTracer(ctx context.Context, log *slog.Logger) (*Tracer, error) {
	built := version.Get().Version
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("the exporter of traces cannot be created: correct the OTEL_* variables: %w", err)
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(instrumentation), semconv.ServiceVersion(built)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES is invalid: set it to name=value pairs with commas between them: %w", err)
	}
	// The SDK reports failed exports to this handler, which logs them at most once a minute.
	otel.SetErrorHandler(&failedExportLog{log: log, now: time.Now})
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(described))
	return &Tracer{
		provider: provider, tracer: provider.Tracer(instrumentation, otrace.WithInstrumentationVersion(built)),
		propagator: autoprop.NewTextMapPropagator(), log: log,
	}, nil
}

// Close exports the remaining spans. It takes at most closeTimeout.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			t.log.Error("the exporter of traces failed, so the last spans are lost", "error", fmt.Sprintf("panic: %v", panicked))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last spans could not be exported", "error", err)
	}
}

// Flush exports the spans that have ended. It takes at most flushTimeout. If the export fails, the
// spans are lost, and the error is logged.
func (t *Tracer) Flush(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := t.provider.ForceFlush(ctx); err != nil {
		otel.Handle(err)
	}
}

// failedExportsInterval is the minimum time between two log entries about failed exports.
const failedExportsInterval = time.Minute

// failedExportLog logs the errors of failed exports.
type failedExportLog struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	last  time.Time
	count int
}

// Handle logs an error, at most once per failedExportsInterval.
func (f *failedExportLog) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.now().Sub(f.last) < failedExportsInterval {
		return
	}
	f.log.Warn("traces cannot be exported: check the OTEL_* variables and the collector", "error", err, "failures", f.count)
	f.last, f.count = f.now(), 0
}

// headerNames returns the names of the request headers that contain the trace context, such as
// Traceparent.
func (t *Tracer) headerNames() []string {
	if t == nil {
		return nil
	}
	names := t.propagator.Fields()
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	return names
}

// operationSpan is the span of an operation. The zero operationSpan does nothing.
type operationSpan struct{ span otrace.Span }

// spanFromContext returns the span in ctx.
func spanFromContext(ctx context.Context) operationSpan {
	return operationSpan{otrace.SpanFromContext(ctx)}
}

// start starts the span of an operation. If header contains the trace context of a client's span,
// the new span is a child of that span. It ignores a span in ctx. The returned context contains
// the new span.
func (t *Tracer) start(ctx context.Context, header http.Header) (context.Context, operationSpan) {
	if t == nil {
		return ctx, operationSpan{}
	}
	ctx = otrace.ContextWithSpanContext(ctx, otrace.SpanContext{})
	return t.startSpan(t.propagator.Extract(ctx, propagation.HeaderCarrier(header)))
}

// startEvent starts the span of an operation for one event of a subscription. The span begins a new
// trace, and links to the span in ctx.
func (t *Tracer) startEvent(ctx context.Context) (context.Context, operationSpan) {
	if t == nil {
		return ctx, operationSpan{}
	}
	return t.startSpan(ctx, otrace.WithNewRoot(), otrace.WithLinks(otrace.LinkFromContext(ctx)))
}

// startSpan starts the span of an operation. Its final name and attributes are set later, by end.
func (t *Tracer) startSpan(ctx context.Context, opts ...otrace.SpanStartOption) (context.Context, operationSpan) {
	ctx, span := t.tracer.Start(ctx, "operation", append(opts, otrace.WithSpanKind(otrace.SpanKindServer))...)
	if span.IsRecording() {
		ctx = new(trace.Trace).NewContext(ctx) // numbers the operation's DynamoDB round trips
	}
	return ctx, operationSpan{span}
}

// sampled reports whether the span is recorded and exported.
func (s operationSpan) sampled() bool { return s.span != nil && s.span.IsRecording() }

// requestInfo describes the request of an operation.
type requestInfo struct {
	// Protocol is http or websocket.
	Protocol string
	// Method is the HTTP method. Path is the path of the URL. Both are empty for an operation of a
	// WebSocket.
	Method, Path string
	// Status is the HTTP status, or 0 if the status is unknown.
	Status int
}

// knownHTTPMethods contains the HTTP methods that spans may contain. For any other method, the span
// attribute has the value _OTHER.
var knownHTTPMethods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
	http.MethodDelete: true, http.MethodOptions: true, http.MethodConnect: true, http.MethodTrace: true,
}

// end ends the span and sets its name and attributes. Only the first call has an effect.
func (s operationSpan) end(o *observe.Operation, t requestInfo) {
	if s.span == nil {
		return
	}
	defer s.span.End()
	if !s.sampled() {
		return
	}
	name := ""
	attributes := append(make([]attribute.KeyValue, 0, 12), semconv.NetworkProtocolName(t.Protocol))
	if t.Method != "" {
		method := semconv.HTTPRequestMethodOther
		name = "HTTP " + t.Path
		if knownHTTPMethods[t.Method] {
			method = semconv.HTTPRequestMethodKey.String(t.Method)
			name = t.Method + " " + t.Path
		}
		attributes = append(attributes, method, semconv.URLScheme("http"), semconv.URLPath(t.Path), semconv.HTTPRoute(t.Path))
	}
	if t.Status != 0 {
		attributes = append(attributes, semconv.HTTPResponseStatusCode(t.Status))
	}
	if o.Type != observe.UnknownType {
		name = o.Type
		attributes = append(attributes, semconv.GraphQLOperationTypeKey.String(o.Type))
	}
	if o.Name != observe.UntrustedName {
		name += " " + o.Name
		attributes = append(attributes, semconv.GraphQLOperationName(o.Name))
	}
	if name != "" {
		s.span.SetName(name)
	}
	attributes = append(attributes, attribute.Int("ordergraph.requests", o.Requests), attribute.Float64("ordergraph.read_units", o.ReadUnits), attribute.Float64("ordergraph.write_units", o.WriteUnits))
	code := o.Code()
	if code != observe.OK {
		attributes = append(attributes, semconv.ErrorTypeKey.String(code))
	}
	if t.Status >= http.StatusInternalServerError || errcode.IsServerFault(code) {
		s.span.SetStatus(codes.Error, code)
	}
	s.span.SetAttributes(attributes...)
}

// startRequest starts the span of a DynamoDB request to the given table. If the span of the operation
// is not sampled, startRequest does nothing.
func (t *Tracer) startRequest(ctx context.Context, table string, target trace.Target) context.Context {
	if t == nil || !otrace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	ctx, _ = t.tracer.Start(ctx, target.Operation+" "+table, otrace.WithSpanKind(otrace.SpanKindClient), otrace.WithAttributes(
		semconv.DBSystemNameAWSDynamoDB, semconv.DBOperationName(target.Operation), semconv.AWSDynamoDBTableNames(table),
		attribute.String("ordergraph.access_pattern", target.Pattern)))
	return ctx
}

// endRequest ends the span that startRequest has started.
func (t *Tracer) endRequest(ctx context.Context, table string, request trace.Request, err error) {
	span := otrace.SpanFromContext(ctx)
	if t == nil || !span.IsRecording() {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 8), attribute.Int("ordergraph.round_trip", request.RoundTrip), attribute.Int("ordergraph.items", request.Items))
	if request.ReadUnits > 0 {
		attributes = append(attributes, attribute.Float64("ordergraph.read_units", request.ReadUnits))
	}
	if request.WriteUnits > 0 {
		attributes = append(attributes, attribute.Float64("ordergraph.write_units", request.WriteUnits))
	}
	if consumed := request.ReadUnits + request.WriteUnits; consumed > 0 {
		attributes = append(attributes, semconv.AWSDynamoDBConsumedCapacity(fmt.Sprintf(`{"TableName":%q,"CapacityUnits":%g}`, table, consumed)))
	}
	if request.Index != "" {
		attributes = append(attributes, semconv.AWSDynamoDBIndexName(request.Index))
	}
	if err != nil {
		kind := errorType(err)
		attributes = append(attributes, semconv.ErrorTypeKey.String(kind))
		span.SetStatus(codes.Error, kind)
	}
	span.SetAttributes(attributes...)
	span.End()
}

// errorType returns DynamoDB's error code. If err has no error code, errorType returns "timeout",
// "canceled" or "_OTHER". The error message can contain keys, so spans must not contain it.
func errorType(err error) string {
	var api interface{ ErrorCode() string }
	switch {
	case errors.As(err, &api) && api.ErrorCode() != "":
		return api.ErrorCode()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return "_OTHER"
	}
}
