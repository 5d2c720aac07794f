package server

import "context"

type stoppingKey struct{}

// withStopping returns a context whose requests know when the server stops. They are not ended by
// it: those that answer soon still do.
func withStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// stopping ends when the server stops that a request came to.
func stopping(ctx context.Context) context.Context {
	if stopping, ok := ctx.Value(stoppingKey{}).(context.Context); ok {
		return stopping
	}
	return context.Background()
}
