// Package trace measures requests to DynamoDB. A Trace records the requests of one operation, and
// which requests waited for other requests. A Usage counts the requests of one operation and their
// units. An Observer is notified of all requests of a table. It imports no other package of the
// module.
package trace

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
	// ReadUnits and WriteUnits are the consumed capacity units. For a Trace and a Usage, the write
	// units of a transaction are computed. They therefore do not depend on the Observer of the table.
	ReadUnits, WriteUnits float64
	// ReportedWriteUnits are the write units that DynamoDB reported for a transaction, or 0. An
	// Observer receives them as WriteUnits.
	ReportedWriteUnits float64
	Duration           time.Duration
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

// ResolveWave replaces the value unknownWave of s.lastWave with the highest Wave that the Trace has
// recorded. It must be called before Fork if the new Spans run at the same time. Otherwise, the
// Trace would record that they wait for each other's requests.
func (s *Span) ResolveWave() {
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
