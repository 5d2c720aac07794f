package server

import "context"

type shutdownKey struct{}

// withShutdown returns a context that carries stopping, a context that ends when the server stops.
// The returned context does not end then, so short requests can still complete.
func withShutdown(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, shutdownKey{}, stopping)
}

// shutdownContext returns a context that ends when the request's server stops.
func shutdownContext(ctx context.Context) context.Context {
	if stopping, ok := ctx.Value(shutdownKey{}).(context.Context); ok {
		return stopping
	}
	return context.Background()
}
