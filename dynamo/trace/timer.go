package trace

import (
	"cmp"
	"context"
	"time"
)

// Timer measures one request for the Observer of the table, and for the Trace and the Usage of the
// context.
type Timer struct {
	observer Observer
	span     *Span
	usage    *Usage
	target   Target
	wave     int
	start    time.Time
	enabled  bool
}

// Begin starts to measure a request, and returns the context for the request. o is the Observer of
// the table, or nil. If nothing needs the measurement, Begin returns ctx and a Timer that only
// counts the request in the Usage of ctx.
func Begin(ctx context.Context, o Observer, t Target) (context.Context, Timer) {
	span, usage := SpanFromContext(ctx), UsageFromContext(ctx)
	usage.addRequest()
	if sampler, ok := o.(Sampler); ok && !sampler.Observes(ctx) {
		o = nil
	}
	if o == nil && span == nil && !usage.isExact() {
		return ctx, Timer{usage: usage}
	}
	timer := Timer{observer: o, span: span, usage: usage, target: t, enabled: true}
	if span != nil {
		span.ResolveWave()
		timer.wave = span.wave() + 1
	}
	if o != nil {
		ctx = o.BeginRequest(&observedContext{ctx, t}, t)
	}
	timer.start = time.Now()
	return ctx, timer
}

// Enabled reports whether Stop needs the number of items and the units. If so, a read should ask
// DynamoDB for the consumed capacity.
func (t *Timer) Enabled() bool { return t.enabled }

// Observed reports whether an Observer needs the units. If so, a write should ask DynamoDB for the
// consumed capacity. A Trace needs only computed write units, because local engines report wrong
// units for transactions.
func (t *Timer) Observed() bool { return t.observer != nil }

// Traced reports whether Stop needs the key, because the context has a Trace.
func (t *Timer) Traced() bool { return t.span != nil }

// Stop ends the measurement. ctx is the context that Begin returned. r contains the key, the number
// of items and the units. Stop sets the other fields. err is the error of the request. The Trace
// omits failed requests that consumed no units.
//
// A read need not call Stop if the Timer is not enabled. A write must always call Stop.
func (t *Timer) Stop(ctx context.Context, r Request, err error) {
	t.usage.add(r)
	if !t.enabled {
		return
	}
	r.Target, r.Wave, r.Path, r.Duration = t.target, t.wave, t.span.Path(), time.Since(t.start)
	if t.span != nil && (err == nil || r.ReadUnits+r.WriteUnits > 0) {
		t.span.trace.add(r)
		t.span.WaitForWave(t.wave)
	}
	if t.observer != nil {
		r.WriteUnits = cmp.Or(r.ReportedWriteUnits, r.WriteUnits)
		t.observer.EndRequest(ctx, r, err)
	}
}
