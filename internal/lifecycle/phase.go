package server

import "context"

type shutdownKey struct{}

// withShutdown returns a copy of ctx that carries stopping, which ends when the server stops. The
// returned context does not end then, so that short requests can complete.
func withShutdown(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, shutdownKey{}, stopping)
}

// shutdownContext returns the context that ends when the server stops. If ctx does not come from
// withShutdown, it returns a context that never ends.
func shutdownContext(ctx context.Context) context.Context {
	if stopping, ok := ctx.Value(shutdownKey{}).(context.Context); ok {
		return stopping
	}
	return context.Background()
}
