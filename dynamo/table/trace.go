package table

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Trace collects the DynamoDB requests that are made for one caller, and how they waited for one
// another. It is safe for concurrent use. A context without a Trace costs nothing but a look-up.
type Trace struct {
	mu       sync.Mutex
	requests []Request
}

// Request is one request to DynamoDB.
type Request struct {
	// AccessPattern is the id of the pattern that it serves, AP1.
	AccessPattern string
	// Operation is DynamoDB's: GetItem, BatchGetItem, Query.
	Operation string
	// Index is the index that was read, empty for the table.
	Index string
	// Key tells which keys were read.
	Key string
	// Path is what the caller asked for, in the caller's words.
	Path string
	// Items is how many records came back.
	Items int
	// ReadUnits and WriteUnits are what it cost.
	ReadUnits, WriteUnits float64
	// Duration is how long it took.
	Duration time.Duration
	// Wave is 1 for a request that waited for no other, else 1 more than the highest of those that
	// it waited for.
	Wave int
}

// Requests returns what was collected, by wave; requests of a wave stand in an order that does not
// depend on which of them was quicker.
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

// lastWave is the highest wave so far.
func (t *Trace) lastWave() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := 0
	for _, r := range t.requests {
		last = max(last, r.Wave)
	}
	return last
}

// Span is one line of reading within a Trace: what is read next in it waits for what was read
// before. The methods of a nil Span, which is what a context without a Trace has, do nothing.
type Span struct {
	trace *Trace
	path  string

	mu sync.Mutex
	// after is the wave of the last request; unknown where the caller cannot tell.
	after int
}

// unknown stands for "after all that was read so far".
const unknown = -1

type spanKey struct{}

// Begin returns a context in which requests are collected in t, beginning a line of reading that
// has waited for nothing.
func (t *Trace) Begin(ctx context.Context) context.Context {
	return context.WithValue(ctx, spanKey{}, &Span{trace: t})
}

// SpanOf returns the line of reading of ctx, nil where nothing is collected.
func SpanOf(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Fork returns ctx with a new line of reading that has waited for the same requests as s.
func (s *Span) Fork(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: s.path, after: s.wave()})
}

// At returns ctx with a new line of reading that belongs to path, in the caller's words.
func (s *Span) At(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, after: s.wave()})
}

// Unplanned returns ctx with a new line of reading of which nobody can tell what it waited for: it
// counts as after all that was read until it begins.
func (s *Span) Unplanned(ctx context.Context, path string) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, &Span{trace: s.trace, path: path, after: unknown})
}

// Wave is the wave of the last request in this line of reading, 0 for none.
func (s *Span) Wave() int {
	if s == nil {
		return 0
	}
	return max(0, s.wave())
}

// Path is what the line of reading is for, in the caller's words.
func (s *Span) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// Wait makes what is read next in this line wait for a request of the given wave.
func (s *Span) Wait(wave int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = max(s.after, wave)
}

// settle decides what an unknown past is, before it is forked: what was read until now.
func (s *Span) settle() {
	if s == nil || s.wave() != unknown {
		return
	}
	s.Wait(s.trace.lastWave())
}

func (s *Span) wave() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.after
}

// timer measures one request; it does nothing where nothing is collected.
type timer struct {
	span  *Span
	wave  int
	start time.Time
}

// StartTimer begins to measure a request.
func StartTimer(ctx context.Context) timer {
	span := SpanOf(ctx)
	if span == nil {
		return timer{}
	}
	span.settle()
	return timer{span: span, wave: span.wave() + 1, start: time.Now()}
}

// On reports whether the request is collected; only then is it worth while to describe it.
func (t timer) On() bool { return t.span != nil }

func (t timer) Stop(r Request) {
	r.Path, r.Wave, r.Duration = t.span.path, t.wave, time.Since(t.start)
	t.span.trace.add(r)
	t.span.Wait(t.wave)
}
