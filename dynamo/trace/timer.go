package trace

import (
	"cmp"
	"context"
	"time"
)

// Timer measures one DynamoDB request. It reports the result to the Observer of the table, and to
// the Trace and the Usage of the context.
type Timer struct {
	observer  Observer
	span      *Span
	usage     *Usage
	target    Target
	roundTrip int
	start     time.Time
	enabled   bool
}

// StartTimer counts a request in the Usage of ctx, starts to measure the request, and returns its
// context. If no Trace, Observer or exact Usage needs the measurement, the request is only counted.
// o may be nil.
func StartTimer(ctx context.Context, o Observer, t Target) (context.Context, Timer) {
	span, usage := SpanFromContext(ctx), UsageFromContext(ctx)
	usage.addRequest()
	if o != nil && !o.Observes(ctx) {
		o = nil
	}
	if o == nil && span == nil && !usage.isExact() {
		return ctx, Timer{usage: usage}
	}
	timer := Timer{observer: o, span: span, usage: usage, target: t, enabled: true}
	if span != nil {
		span.ResolveRoundTrip()
		timer.roundTrip = span.loadLastRoundTrip() + 1
	}
	if o != nil {
		ctx = o.BeginRequest(&observedContext{ctx, t}, t)
	}
	timer.start = time.Now()
	return ctx, timer
}

// Enabled reports whether the caller must pass the number of records and the capacity units to
// Stop. If so, a read asks DynamoDB for the consumed capacity.
func (t *Timer) Enabled() bool { return t.enabled }

// NeedsUnits reports whether an Observer is notified. If so, a write must ask DynamoDB for the
// consumed capacity. A Trace uses computed write units instead.
func (t *Timer) NeedsUnits() bool { return t.observer != nil }

// NeedsKey reports whether the context has a Trace. If so, the caller must pass the key of the
// request to Stop.
func (t *Timer) NeedsKey() bool { return t.span != nil }

// Stop ends the measurement. The caller sets the key, the number of records and the capacity units
// in r. After a write, always call Stop, because the Usage needs the write units. After a read,
// Stop is optional if Enabled returns false.
func (t *Timer) Stop(ctx context.Context, r Request, err error) {
	t.usage.add(r)
	if !t.enabled {
		return
	}
	r.Target, r.RoundTrip, r.Path, r.Duration = t.target, t.roundTrip, t.span.Path(), time.Since(t.start)
	if t.span != nil && (err == nil || r.ReadUnits+r.WriteUnits > 0) {
		t.span.trace.add(r)
		t.span.WaitForRoundTrip(t.roundTrip)
	}
	if t.observer != nil {
		r.WriteUnits = cmp.Or(r.ReportedWriteUnits, r.WriteUnits)
		t.observer.EndRequest(ctx, r, err)
	}
}
