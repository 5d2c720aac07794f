package trace

import "context"

// Observer is notified of DynamoDB requests to a table. It must be safe for concurrent use. It
// must not record keys, because keys contain the IDs and email addresses of customers.
type Observer interface {
	// Observes reports whether to measure a request with this context. If it returns false, the
	// Observer is not notified of the request.
	Observes(ctx context.Context) bool
	// BeginRequest is called before a request is sent. It returns the context for the request. This
	// context must be derived from ctx, so that TargetFromContext finds t.
	BeginRequest(ctx context.Context, t Target) context.Context
	// EndRequest is called once for each BeginRequest, with the context that BeginRequest returned.
	// err is nil, an error of the AWS SDK, or the reason why the request was not sent.
	EndRequest(ctx context.Context, r Request, err error)
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
