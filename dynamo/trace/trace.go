// Package trace measures DynamoDB requests. A Trace records the requests of one GraphQL operation,
// and which requests waited for earlier requests. A Usage counts the requests of one GraphQL
// operation and adds up their capacity units. An Observer is notified of requests to a table.
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
	// Keys contains each key of a request that reads or writes several records by their keys.
	// Otherwise, it is nil.
	Keys []string
	// Path is the name that the caller gave to the data, such as the path of a GraphQL field.
	Path string
	// Items is the number of records that a read returned, or that a transaction writes or checks.
	Items int
	// ReadUnits and WriteUnits are the consumed capacity units. In a Trace and a Usage, the write
	// units of a transaction are computed, so they are the same with and without an Observer.
	ReadUnits, WriteUnits float64
	// ReportedWriteUnits are the write units that DynamoDB reported for a transaction, or 0 if it
	// reported no units. An Observer receives them as WriteUnits.
	ReportedWriteUnits float64
	// Duration includes retries.
	Duration time.Duration
	// RoundTrip is 1 if the request waits for no earlier request. Otherwise, it is the highest
	// RoundTrip of the earlier requests that the request waits for, plus 1. Without a Trace,
	// RoundTrip is 0.
	RoundTrip int
}

// Requests returns the recorded requests, sorted by round trip, GraphQL path, access pattern and
// key. The order does not depend on which of several concurrent requests ended first.
func (t *Trace) Requests() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	requests := slices.Clone(t.requests)
	slices.SortStableFunc(requests, func(a, b Request) int {
		switch {
		case a.RoundTrip != b.RoundTrip:
			return a.RoundTrip - b.RoundTrip
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

// lastRoundTrip returns the highest Request.RoundTrip of the recorded requests. If no request has
// been recorded, it returns 0.
func (t *Trace) lastRoundTrip() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := 0
	for _, r := range t.requests {
		last = max(last, r.RoundTrip)
	}
	return last
}

// Span is a sequence of requests in a Trace. Each request waits for the previous request. Without a
// Trace, the Span is nil, and its methods do nothing.
type Span struct {
	trace *Trace
	path  string

	mu sync.Mutex
	// lastRoundTrip is the round trip after which the next request starts. It is 0 if the next
	// request waits for no other request, and unknownRoundTrip if that is not known yet.
	lastRoundTrip int
}

// unknownRoundTrip is the initial value of Span.lastRoundTrip in a Span that ForkUnplanned created.
// The Trace assumes that the first request of this Span waits for all requests recorded before it
// starts.
const unknownRoundTrip = -1

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

// Fork returns ctx with a new Span. The first request of the new Span waits for the same earlier
// requests as the next request of s. These two requests do not wait for each other.
func (s *Span) Fork(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: s.path, lastRoundTrip: s.loadLastRoundTrip()})
}

// WithPath is like Fork, but sets the path of the new Span.
func (s *Span) WithPath(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastRoundTrip: s.loadLastRoundTrip()})
}

// ForkUnplanned returns ctx with a new Span for a read whose dependencies are unknown. The Trace
// assumes that the first request of this Span waits for all earlier requests of the Trace.
func (s *Span) ForkUnplanned(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, lastRoundTrip: unknownRoundTrip})
}

// LastRoundTrip returns the round trip after which the next request of the Span starts. If this
// request waits for no other request, or if that is not known yet, the result is 0.
func (s *Span) LastRoundTrip() int {
	if s == nil {
		return 0
	}
	return max(0, s.loadLastRoundTrip())
}

// Path returns the name that the caller gave to the data that the Span reads.
func (s *Span) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// WaitForRoundTrip records that the next request of the Span waits for a request in the given round
// trip. Request.RoundTrip explains round trips.
func (s *Span) WaitForRoundTrip(roundTrip int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastRoundTrip = max(s.lastRoundTrip, roundTrip)
}

// ResolveRoundTrip records that the next request of a Span from ForkUnplanned waits for all
// requests recorded so far. Call it before Fork creates Spans for concurrent requests. Otherwise,
// the Trace could record that these requests wait for each other.
func (s *Span) ResolveRoundTrip() {
	if s == nil || s.loadLastRoundTrip() != unknownRoundTrip {
		return
	}
	s.WaitForRoundTrip(s.trace.lastRoundTrip())
}

func (s *Span) loadLastRoundTrip() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastRoundTrip
}
