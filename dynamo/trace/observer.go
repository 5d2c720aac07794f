package trace

import "context"

// Observer is notified of all DynamoDB requests to a table. It must be safe for concurrent use. It
// must not record keys, because keys contain the IDs and email addresses of customers.
type Observer interface {
	// BeginRequest is called before a request is sent. It returns the context for the request. This
	// context must be derived from ctx, so that TargetFromContext finds t.
	BeginRequest(ctx context.Context, t Target) context.Context
	// EndRequest is called once for each BeginRequest, with the context that BeginRequest returned.
	// err is nil, an error of the AWS SDK, or the reason why the request was not sent.
	EndRequest(ctx context.Context, r Request, err error)
}

// SamplingObserver is an Observer that is notified of only some requests. The other requests are
// not measured for this Observer, which saves time.
type SamplingObserver interface {
	Observer
	// Observes reports whether the Observer wants to be notified of requests with this context.
	Observes(ctx context.Context) bool
}

// CombineObservers combines several Observers into one. It ignores Observers that are nil. If no
// Observer remains, it returns nil. Each BeginRequest receives the context from the BeginRequest of
// the previous Observer.
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

// observedContext is the context of a request that an Observer observes.
type observedContext struct {
	context.Context
	target Target
}

type targetKey struct{}

// Value returns the observedContext itself for targetKey, so that TargetFromContext can find the
// Target. For other keys, it returns the value in the parent context.
func (c *observedContext) Value(key any) any {
	if key == (targetKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// TargetFromContext returns the Target of the request to which ctx belongs. If ctx does not belong
// to a request, or if no Observer is notified of the request, it returns the zero Target.
func TargetFromContext(ctx context.Context) Target {
	if c, ok := ctx.Value(targetKey{}).(*observedContext); ok {
		return c.target
	}
	return Target{}
}
