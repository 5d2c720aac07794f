package admission

import "context"

// Caller is the owner of a share of each pool. Without authentication all requests have the same
// caller, the zero value.
type Caller struct {
	// Key identifies the caller.
	Key string
	// Anonymous reports whether no token identifies the caller. The key is then a network address. All
	// such callers together have at most half of a pool.
	Anonymous bool
	// Weight multiplies the caller's share; 0 stands for 1.
	Weight int
}

type callerKey struct{}

// WithCaller returns a context that carries the caller of a request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a context, or the zero value if the context has no caller.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// weight returns the factor of the caller's share.
func (c Caller) weight() int64 { return int64(max(1, c.Weight)) }
