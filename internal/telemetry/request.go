package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph/observe"
)

// Receivers are the receivers of measurements. If a field is nil, the receiver is turned off.
type Receivers struct {
	Metrics   *Metrics
	Tracer    *Tracer
	AccessLog *AccessLog
}

// Observer passes the measurements of requests and operations to its Receivers. It is safe for
// concurrent use.
type Observer struct{ Receivers }

// NewObserver returns an Observer for the given receivers. If all of them are nil, NewObserver
// returns nil.
func NewObserver(r Receivers) *Observer {
	if r == (Receivers{}) {
		return nil
	}
	return &Observer{r}
}

// The values of AccessLogEntry.Transport.
const (
	TransportHTTP        = "http"
	TransportEventStream = "event-stream"
	TransportWebSocket   = "websocket"
)

type requestKey struct{}

// Request measures an HTTP request or an operation on a WebSocket. It is also the context of this
// request or operation. Only one goroutine may use a Request at a time. A nil Request records
// nothing.
type Request struct {
	context.Context
	observer  *Observer
	start     time.Time
	span      operationSpan
	transport requestInfo
	// counted reports whether the request has already been counted as an operation.
	counted bool
	entry   AccessLogEntry
}

// Value returns r itself if key is a requestKey. For any other key, it returns the value of the
// parent context.
func (r *Request) Value(key any) any {
	if key == (requestKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// RequestFromContext returns the Request in ctx. If the request is not observed, it returns nil.
func RequestFromContext(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// Begin begins to observe a request. header contains the client's trace context. For an operation
// on a WebSocket, method and path are empty. If nothing observes the request, the Request is nil.
func (o *Observer) Begin(ctx context.Context, requestID, transport, method, path string, header http.Header) (context.Context, *Request) {
	if o == nil {
		return ctx, nil
	}
	ctx, span := o.Tracer.start(ctx, header)
	if !o.Observes(ctx) {
		return ctx, nil
	}
	r := &Request{Context: ctx, span: span, observer: o, start: time.Now(), entry: AccessLogEntry{Operation: observe.Operation{Name: observe.UntrustedName, Type: observe.UnknownType}, Transport: transport, RequestID: requestID}}
	r.transport = requestInfo{Protocol: transport, Method: method, Path: path}
	return r, r
}

// SetPrincipal sets the authenticated principal of the request.
func (r *Request) SetPrincipal(p access.Principal) {
	if r != nil {
		r.entry.Principal, r.entry.Role = p.ID, p.Role.String()
	}
}

// AddBytes adds n to the length of the response.
func (r *Request) AddBytes(n int) {
	if r != nil {
		r.entry.Bytes += n
	}
}

// SetEventStream records that the response is an event stream.
func (r *Request) SetEventStream() {
	if r != nil {
		r.entry.Transport = TransportEventStream
	}
}

// Fail records an error that did not come from the GraphQL executor. If an admission pool refused
// the request, pool is the name of this pool.
func (r *Request) Fail(code, pool string) {
	if r == nil {
		return
	}
	r.entry.Pool = pool
	if r.counted {
		r.entry.Codes = []string{code}
		return
	}
	// The executor has not counted the request as an operation.
	r.observer.EndOperation(r, observe.Operation{Name: observe.UntrustedName, Type: observe.UnknownType, Codes: []string{code}, Duration: time.Since(r.start)})
}

// End ends the observation of the request. status is the HTTP status of the response. For an
// operation on a WebSocket, it is 0.
func (r *Request) End(status int) {
	if r == nil {
		return
	}
	if status != 0 && r.observer.Metrics != nil {
		r.observer.Metrics.ObserveResponse(status)
	}
	r.transport.Status = status
	r.span.end(&r.entry.Operation, r.transport)
	if r.observer.AccessLog != nil {
		r.entry.Status, r.entry.Duration = status, time.Since(r.start)
		r.observer.AccessLog.Record(r, &r.entry)
	}
}

// Observes reports whether the operation with the context ctx is observed. It is observed if
// metrics or the access log are on, or if its trace span is sampled.
func (o *Observer) Observes(ctx context.Context) bool {
	return o.Metrics != nil || o.AccessLog != nil || spanFromContext(ctx).sampled()
}

// BeginEvent starts a trace span for one event of a subscription. The executor executes the
// operation of the subscription once for each event.
func (o *Observer) BeginEvent(ctx context.Context) context.Context {
	ctx, _ = o.Tracer.startEvent(ctx)
	return ctx
}

// EndOperation records a finished operation. The trace span of a query or mutation ends later, in
// End.
func (o *Observer) EndOperation(ctx context.Context, finished observe.Operation) {
	if o.Metrics != nil {
		o.Metrics.ObserveOperation(ctx, finished)
	}
	r := RequestFromContext(ctx)
	if r == nil {
		return
	}
	if finished.Event {
		spanFromContext(ctx).end(&finished, requestInfo{Protocol: r.transport.Protocol})
		total := &r.entry
		total.Events++
		total.Requests += finished.Requests
		total.ReadUnits += finished.ReadUnits
		total.WriteUnits += finished.WriteUnits
		if len(total.Codes) == 0 {
			total.Codes = finished.Codes
		}
		return
	}
	r.entry.Operation, r.counted = finished, true
	// The span of a subscription does not last until End, because a subscription can last for days.
	if finished.Type == "subscription" && len(finished.Codes) == 0 {
		r.span.end(&finished, r.transport)
	}
}

// TraceContext returns only those headers of a request that contain the client's trace context.
func (o *Observer) TraceContext(header http.Header) http.Header {
	if o == nil {
		return nil
	}
	found := http.Header{}
	for _, name := range o.TraceHeaders() {
		found[name] = header[name]
	}
	return found
}

// TraceHeaders returns the names of the headers that contain a trace context.
func (o *Observer) TraceHeaders() []string {
	if o == nil {
		return nil
	}
	return o.Tracer.headerNames()
}
