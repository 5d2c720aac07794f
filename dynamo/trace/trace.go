// Package trace measures DynamoDB requests. A Trace records the requests of one GraphQL operation,
// and which of them waited for others. A Usage counts the requests of one GraphQL operation and
// their capacity units. An Observer is notified of all requests to a table. The package imports no
// other package of the module.
package trace

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Trace records the DynamoDB requests of one GraphQL operation, and which of them waited for
// others. It is safe for concurrent use. Without a Trace, the only additional work for a request is
// one context lookup.
type Trace struct {
	mu       sync.Mutex
	requests []Request
}

// Target describes a request before it is sent.
type Target struct {
	// Pattern is the ID of the access pattern or write pattern, such as AP1 or WP1.
	Pattern string
	// Operation is the DynamoDB operation, such as GetItem, BatchGetItem or Query.
	Operation string
	// Index is the name of the index to read. It is empty for a request to the table.
	Index string
}

// Request is one request to DynamoDB.
type Request struct {
	Target
	// Key describes the keys that were read or written. It is set only if the context of the request
	// has a Trace.
	Key string
	// Path is the caller's name for the data, such as the path of a GraphQL field.
	Path string
	// Items is the number of records in the response or in the transaction.
	Items int
	// ReadUnits and WriteUnits are the consumed capacity units. A Trace and a Usage receive computed
	// write units for a transaction, so these are the same with and without an Observer.
	ReadUnits, WriteUnits float64
	// ReportedWriteUnits are the write units that DynamoDB reported for a transaction, or 0. An
	// Observer receives them as WriteUnits.
	ReportedWriteUnits float64
	Duration           time.Duration
	// Wave is the number of the request's wave: a group of requests that can run at the same time. A
	// request that waited for no other request is in wave 1. Any other request is in the wave after
	// the last request that it waited for.
	Wave int
}

// Requests returns the recorded requests, sorted by Wave (their round trip), GraphQL path, access
// pattern and key. So the order does not depend on which concurrent request ended first.
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
			return cmp.Compare(a.Pattern+a.Key, b.Pattern+b.Key)
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

// Span is a sequence of requests in a Trace. Each request of a Span waits for the previous request.
// If a context has no Trace, its Span is nil. The methods of a nil Span do nothing.
type Span struct {
	trace *Trace
	path  string

	mu sync.Mutex
	// lastWave is the Request.Wave of the last request that the Span's next request waits for. It is 0
	// if the next request waits for no request, and unknownWave if this is not known yet.
	lastWave int
}

// unknownWave is the initial value of Span.lastWave in a Span that was created with Unplanned. The
// Trace assumes that the first request of this Span waits for all requests recorded so far.
const unknownWave = -1

type spanKey struct{}

// NewContext returns a context with a new Span. The Trace t records the requests in this context.
// The first request waits for no other request.
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
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: s.path, lastWave: s.loadLastWave()})
}

// WithPath is like Fork, but the new Span has the given path.
func (s *Span) WithPath(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastWave: s.loadLastWave()})
}

// ForkUnplanned returns ctx with a new Span for reads with unknown dependencies. The Trace records
// the first request of the Span as if it had waited for all earlier requests of the Trace.
func (s *Span) ForkUnplanned(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastWave: unknownWave})
}

// LastWave returns the number of the wave of the Span's last request (see Request.Wave). It returns
// 0 if there was no request.
func (s *Span) LastWave() int {
	if s == nil {
		return 0
	}
	return max(0, s.loadLastWave())
}

// Path returns the caller's name for the data that the Span reads.
func (s *Span) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// WaitForWave records that the next request of the Span waits for a request in the given wave (see
// Request.Wave).
func (s *Span) WaitForWave(wave int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastWave = max(s.lastWave, wave)
}

// ResolveWave replaces s.lastWave with the highest Wave that the Trace has recorded, if s.lastWave
// is unknownWave. Call ResolveWave before Fork if the new Spans run at the same time. Otherwise,
// the Trace would record that they wait for each other's requests.
func (s *Span) ResolveWave() {
	if s == nil || s.loadLastWave() != unknownWave {
		return
	}
	s.WaitForWave(s.trace.lastWave())
}

func (s *Span) loadLastWave() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWave
}
