package trace

import "context"

// Observer is notified of all DynamoDB requests to a table. It must be safe for concurrent use.
//
// An Observer must not record keys, because keys contain IDs and email addresses of customers.
type Observer interface {
	// BeginRequest is called before a request is sent. It returns the context for the request. It must
	// derive this context from ctx, so that TargetFromContext finds t.
	BeginRequest(ctx context.Context, t Target) context.Context
	// EndRequest is called once for each BeginRequest, with the context that BeginRequest returned.
	// r.Duration includes retries. r.Wave is 0 if the context has no Trace. err is nil, an error of
	// the AWS SDK, or the reason why the request was not sent. r has no capacity units if the request
	// failed, unless DynamoDB cancelled a transaction.
	EndRequest(ctx context.Context, r Request, err error)
}

// SamplingObserver is an Observer that is notified of only some requests. A request that no Observer
// observes is not measured.
type SamplingObserver interface {
	Observer
	// Observes reports whether the Observer is notified of requests with this context.
	Observes(ctx context.Context) bool
}

// CombineObservers combines the given Observers into one. It ignores nil CombineObservers, and returns nil if no
// Observer remains. Each BeginRequest receives the context that the previous BeginRequest returned.
func CombineObservers(all ...Observer) Observer {
	var joined observers
	for _, o := range all {
		if o != nil {
			joined = append(joined, o)
		}
	}
	switch len(joined) {
	case 0:
		return nil
	case 1:
		return joined[0]
	}
	return joined
}

type observers []Observer

func (all observers) BeginRequest(ctx context.Context, t Target) context.Context {
	for _, o := range all {
		ctx = o.BeginRequest(ctx, t)
	}
	return ctx
}

func (all observers) EndRequest(ctx context.Context, r Request, err error) {
	for i := len(all) - 1; i >= 0; i-- {
		all[i].EndRequest(ctx, r, err)
	}
}

// observedContext is the context of a request that is observed.
type observedContext struct {
	context.Context
	target Target
}

type targetKey struct{}

// Value returns the observedContext itself for targetKey, so that TargetFromContext finds the
// Target. For other keys, it returns the value of the parent context.
func (c *observedContext) Value(key any) any {
	if key == (targetKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// TargetFromContext returns the Target of the request to which ctx belongs. It returns the zero
// Target if ctx belongs to no request, or if the table has no Observer.
func TargetFromContext(ctx context.Context) Target {
	if c, ok := ctx.Value(targetKey{}).(*observedContext); ok {
		return c.target
	}
	return Target{}
}
