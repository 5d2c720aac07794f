package admission

import "context"

// Caller is whom a share belongs to. Without authentication all callers are one, the zero value.
type Caller struct {
	// Key tells callers apart.
	Key string
	// Stranger reports that nobody has vouched for the caller: the key is then a network address.
	// All strangers together have at most half of a pool.
	Stranger bool
	// Weight multiplies the caller's share; 0 stands for 1.
	Weight int
}

type callerKey struct{}

// WithCaller returns a context in which a caller's requests are admitted.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a context, the zero value if it has none.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// weight returns what the caller's share is multiplied by.
func (c Caller) weight() int64 { return int64(max(1, c.Weight)) }
