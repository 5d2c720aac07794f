package server

import "context"

type stoppingKey struct{}

// withStopping returns a context that carries stopping, a context that ends when the server stops.
// The returned context does not end then, so short requests can still complete.
func withStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// stopping returns a context that ends when the request's server stops.
func stopping(ctx context.Context) context.Context {
	if stopping, ok := ctx.Value(stoppingKey{}).(context.Context); ok {
		return stopping
	}
	return context.Background()
}
