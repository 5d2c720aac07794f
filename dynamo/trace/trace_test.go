package trace_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/trace"
)

type nameKey struct{}

// recorder is an Observer that appends its calls to a list.
type recorder struct {
	skip  bool
	calls *[]string
}

func (r recorder) Observes(context.Context) bool { return !r.skip }

func (r recorder) BeginRequest(ctx context.Context, t trace.Target) context.Context {
	*r.calls = append(*r.calls, "begin "+t.Pattern+" "+trace.TargetFromContext(ctx).Pattern)
	return context.WithValue(ctx, nameKey{}, "named")
}

func (r recorder) EndRequest(ctx context.Context, request trace.Request, err error) {
	*r.calls = append(*r.calls, "end "+ctx.Value(nameKey{}).(string)+" "+request.Operation+" "+err.Error())
}

// An Observer receives the Target of each request that it observes, and its own context.
func TestObserverIsNotified(t *testing.T) {
	var calls []string
	o := recorder{false, &calls}
	ctx, timer := trace.StartTimer(t.Context(), o, trace.Target{Pattern: "AP1", Operation: "Query"})
	if !timer.Enabled() || !timer.NeedsUnits() || timer.NeedsKey() {
		t.Error("the timer of an observed request is not enabled, or it is traced")
	}
	timer.Stop(ctx, trace.Request{}, errors.New("failed"))
	if want := []string{"begin AP1 AP1", "end named Query failed"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
	if ctx, timer := trace.StartTimer(t.Context(), recorder{true, &calls}, trace.Target{Pattern: "AP1"}); timer.Enabled() || ctx != t.Context() || len(calls) != 2 {
		t.Errorf("an Observer is notified of a request that it does not observe: %q", calls)
	}
	if target := trace.TargetFromContext(t.Context()); target != (trace.Target{}) {
		t.Errorf("a context without a request has the target %+v", target)
	}
}

// Measuring a request allocates no memory if the table has no Observer and the context no Trace.
func TestUnobservedRequestsDoNotAllocate(t *testing.T) {
	usage := &trace.Usage{}
	ctx := usage.NewContext(t.Context())
	allocations := testing.AllocsPerRun(100, func() {
		ctx, timer := trace.StartTimer(ctx, nil, trace.Target{Pattern: "AP1", Operation: "GetItem"})
		if timer.Enabled() || timer.NeedsUnits() {
			t.Error("the timer is enabled")
		}
		timer.Stop(ctx, trace.Request{WriteUnits: 2}, nil)
	})
	if allocations != 0 || usage.Requests() != 101 || usage.WriteUnits() != 202 || usage.ReadUnits() != 0 {
		t.Errorf("%v allocations, usage %d requests and %v write units", allocations, usage.Requests(), usage.WriteUnits())
	}
}

// A nested Usage and the Usage around it count the same requests. The nested Usage is exact if the
// outer Usage is exact.
func TestNestedUsage(t *testing.T) {
	outer, inner := &trace.Usage{Exact: true}, &trace.Usage{}
	outerCtx := outer.NewContext(t.Context())
	for _, ctx := range []context.Context{outerCtx, inner.NewContext(outerCtx)} {
		ctx, timer := trace.StartTimer(ctx, nil, trace.Target{})
		if !timer.Enabled() {
			t.Error("the request is not measured for an exact usage")
		}
		timer.Stop(ctx, trace.Request{ReadUnits: 0.5}, nil)
	}
	if outer.Requests() != 2 || outer.ReadUnits() != 1 || inner.Requests() != 1 || inner.ReadUnits() != 0.5 {
		t.Errorf("outer %d %v, inner %d %v", outer.Requests(), outer.ReadUnits(), inner.Requests(), inner.ReadUnits())
	}
}

// A Trace omits failed requests, but not cancelled transactions, because these consume units.
func TestTraceOmitsFailedRequests(t *testing.T) {
	recorded := &trace.Trace{}
	for _, units := range []float64{0, 4} {
		ctx, timer := trace.StartTimer(recorded.NewContext(t.Context()), nil, trace.Target{Pattern: "WP1"})
		timer.Stop(ctx, trace.Request{WriteUnits: units}, errors.New("failed"))
	}
	if all := recorded.Requests(); len(all) != 1 || all[0].WriteUnits != 4 {
		t.Errorf("the trace contains %+v, want the cancelled transaction", all)
	}
}
