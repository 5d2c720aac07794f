package admission

import "context"

// Caller identifies the client that uses the capacity of a pool. Each caller has a share of each
// pool. If authentication is disabled, all requests have the same caller, the zero value.
type Caller struct {
	// Key identifies the caller.
	Key string
	// If Anonymous is true, the caller has no verified token, and Key contains its network address.
	// All anonymous callers together can use at most half of a pool.
	Anonymous bool
	// If Customer is true, the caller is a customer, not staff or a service.
	Customer bool
	// Weight multiplies the caller's share of a pool. 0 means 1.
	Weight int
}

type callerKey struct{}

// WithCaller returns a context that carries the caller of a request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFromContext returns the caller in ctx, or the zero value if ctx contains no caller.
func CallerFromContext(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// weight returns the factor by which the caller's share is multiplied.
func (c Caller) weight() int64 { return int64(max(1, c.Weight)) }
