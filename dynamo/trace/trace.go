// Package trace measures DynamoDB requests. A Trace records the requests of one GraphQL operation,
// and which requests waited for earlier requests. A Usage counts the requests of one GraphQL
// operation and adds up their capacity units. An Observer is notified of all requests to a table.
// The package imports no other package of the module.
package trace

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Trace records the DynamoDB requests of one GraphQL operation, and which requests waited for
// earlier requests. It is safe for concurrent use.
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
	// Index is the name of the index that the request reads. It is empty if the request reads or
	// writes the table.
	Index string
}

// Request is one measured request to DynamoDB.
type Request struct {
	Target
	// Key describes the keys that the request reads or writes. It is set only if the context of the
	// request has a Trace.
	Key string
	// Path is the name that the caller gave to the data, such as the path of a GraphQL field.
	Path string
	// Items is the number of records that a read returned, or that a transaction writes or checks.
	Items int
	// ReadUnits and WriteUnits are the consumed capacity units. In a Trace and a Usage, the write
	// units of a transaction are computed. The computed units do not depend on whether the table has
	// an Observer.
	ReadUnits, WriteUnits float64
	// ReportedWriteUnits are the write units that DynamoDB reported for a transaction, or 0 if it
	// reported no units. An Observer receives them as WriteUnits.
	ReportedWriteUnits float64
	// Duration includes retries.
	Duration time.Duration
	// Wave is the number of the request's round trip. If the request waits for earlier requests, Wave
	// is their highest wave plus 1. Otherwise, Wave is 1. Without a Trace, Wave is 0.
	Wave int
}

// Requests returns the recorded requests, sorted by wave, GraphQL path, access pattern and key. The
// order does not depend on which of several concurrent requests ended first.
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

// lastWave returns the highest Request.Wave of the recorded requests. If no request has been
// recorded, it returns 0.
func (t *Trace) lastWave() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := 0
	for _, r := range t.requests {
		last = max(last, r.Wave)
	}
	return last
}

// Span is a sequence of requests in a Trace. Each request waits for the previous request. Without a
// Trace, the Span is nil, and its methods do nothing.
type Span struct {
	trace *Trace
	path  string

	mu sync.Mutex
	// lastWave is the highest Request.Wave of the requests that the next request waits for. lastWave
	// is 0 if there are none, and unknownWave if they are not known yet.
	lastWave int
}

// unknownWave is the initial value of Span.lastWave in a Span that ForkUnplanned created. When the
// first request of this Span starts, the Trace assumes that it waits for all requests recorded so
// far.
const unknownWave = -1

type spanKey struct{}

// NewContext returns a context with a new Span of the Trace. The Trace records the requests that
// use this context. The first of these requests waits for no other request.
func (t *Trace) NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, spanKey{}, &Span{trace: t})
}

// SpanFromContext returns the Span of ctx. It returns nil if ctx has no Trace.
func SpanFromContext(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Fork returns ctx with a new Span. The first request of the new Span waits for the same requests
// as the next request of s would.
func (s *Span) Fork(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: s.path, lastWave: s.loadLastWave()})
}

// WithPath is like Fork, but sets the path of the new Span.
func (s *Span) WithPath(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastWave: s.loadLastWave()})
}

// ForkUnplanned returns ctx with a new Span for a read whose dependencies are unknown. The Trace
// assumes that the first request of this Span waits for all earlier requests of the Trace.
func (s *Span) ForkUnplanned(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastWave: unknownWave})
}

// LastWave returns the highest Request.Wave of the requests that the next request of the Span waits
// for. If there are none, or if they are not known yet, the result is 0.
func (s *Span) LastWave() int {
	if s == nil {
		return 0
	}
	return max(0, s.loadLastWave())
}

// Path returns the name that the caller gave to the data that the Span reads.
func (s *Span) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// WaitForWave records that the next request of the Span waits for a request in the given wave.
// Request.Wave explains waves.
func (s *Span) WaitForWave(wave int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastWave = max(s.lastWave, wave)
}

// ResolveWave makes the next request of a Span from ForkUnplanned wait for all requests recorded so
// far. Call ResolveWave before concurrent Forks. Otherwise, the Trace would record that the Forks
// wait for each other.
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
