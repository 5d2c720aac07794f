package table

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Trace records the DynamoDB requests of one caller, and which requests waited for other requests.
// It is safe for concurrent use. A request in a context without a Trace costs only one context
// lookup.
type Trace struct {
	mu       sync.Mutex
	requests []Request
}

// Request is one request to DynamoDB.
type Request struct {
	// AccessPattern is the ID of the access pattern, such as AP1.
	AccessPattern string
	// Operation is the DynamoDB operation, such as GetItem, BatchGetItem or Query.
	Operation string
	// Index is the name of the index that was read. It is empty if the table was read.
	Index string
	// Key describes the keys that were read or written.
	Key string
	// Path is the caller's name for the data, such as the path of a GraphQL field.
	Path string
	// Items is the number of records in the response or in the transaction.
	Items int
	// ReadUnits and WriteUnits are the consumed capacity units.
	ReadUnits, WriteUnits float64
	Duration              time.Duration
	// Wave numbers the waves of a Trace. A wave is a group of requests that can run at the same time.
	// A request that waited for no other request is in wave 1. Any other request is in the wave
	// after the latest wave that it waited for.
	Wave int
}

// Requests returns the recorded requests, sorted by Wave. Requests with the same Wave are sorted by
// path, access pattern and key, because the order in which they ended is random.
func (t *Trace) Requests() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	requests := slices.Clone(t.requests)
	slices.SortStableFunc(requests, func(a, b Request) int {
		switch {
		case a.Wave != b.Wave:
			return a.Wave - b.Wave
		case a.Path != b.Path:
			return cmp.Compare(a.Path, b.Path)
		default:
			return cmp.Compare(a.AccessPattern+a.Key, b.AccessPattern+b.Key)
		}
	})
	return requests
}

func (t *Trace) add(r Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, r)
}

// lastWave returns the highest Wave of the recorded requests, or 0 if there are no requests.
func (t *Trace) lastWave() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := 0
	for _, r := range t.requests {
		last = max(last, r.Wave)
	}
	return last
}

// Span is a sequence of requests in a Trace. Each request waits for the previous request. A context
// without a Trace has a nil Span. The methods of a nil Span do nothing.
type Span struct {
	trace *Trace
	path  string

	mu sync.Mutex
	// lastWave is the Wave of the requests that the next request waits for. It is 0 if the next
	// request waits for no request. It can also be unknownWave.
	lastWave int
}

// unknownWave is the value of Span.lastWave before the first request of a Span that was created
// with Unplanned. The first request then waits for all requests that the Trace has recorded.
const unknownWave = -1

type spanKey struct{}

// NewContext returns a context that records its requests in t. The first request of its Span waits
// for no other request.
func (t *Trace) NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, spanKey{}, &Span{trace: t})
}

// SpanFromContext returns the Span of ctx. It returns nil if ctx has no Trace.
func SpanFromContext(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Fork returns ctx with a new Span. The first request of the new Span waits for the same requests
// as the next request of s.
func (s *Span) Fork(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: s.path, lastWave: s.wave()})
}

// WithPath is like Fork, but the new Span has the given path.
func (s *Span) WithPath(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastWave: s.wave()})
}

// Unplanned returns ctx with a new Span for reads with unknown dependencies. The Trace records the
// first request of the Span as if it had waited for all earlier requests of the Trace.
func (s *Span) Unplanned(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastWave: unknownWave})
}

// Wave returns the Wave of the Span's last request. It returns 0 if there was no request.
func (s *Span) Wave() int {
	if s == nil {
		return 0
	}
	return max(0, s.wave())
}

// Path returns the caller's name for the data that the Span reads.
func (s *Span) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// WaitForWave records that the next request of the Span waits for a request with the given Wave.
func (s *Span) WaitForWave(wave int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastWave = max(s.lastWave, wave)
}

// resolveWave replaces the value unknownWave of s.lastWave with the highest Wave that the Trace has
// recorded. It must be called before Fork if the new Spans run at the same time. Otherwise, the
// Trace would record that they wait for each other's requests.
func (s *Span) resolveWave() {
	if s == nil || s.wave() != unknownWave {
		return
	}
	s.WaitForWave(s.trace.lastWave())
}

func (s *Span) wave() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWave
}

// timer measures one request. It is the zero value in a context without a Trace.
type timer struct {
	span  *Span
	wave  int
	start time.Time
}

// StartTimer starts to measure a request in the Span of ctx.
func StartTimer(ctx context.Context) timer {
	span := SpanFromContext(ctx)
	if span == nil {
		return timer{}
	}
	span.resolveWave()
	return timer{span: span, wave: span.wave() + 1, start: time.Now()}
}

// Enabled reports whether the request is recorded. If it is not, the caller must not call Stop.
func (t timer) Enabled() bool { return t.span != nil }

// Stop records the request with its path, wave and duration.
func (t timer) Stop(r Request) {
	r.Path, r.Wave, r.Duration = t.span.path, t.wave, time.Since(t.start)
	t.span.trace.add(r)
	t.span.WaitForWave(t.wave)
}
