package lifecycle

import "context"

type phasesKey struct{}

// phases contains one context for each phase of a shutdown. The context of a phase ends when the
// phase begins.
type phases struct{ shuttingDown, stopping context.Context }

// withPhases returns a copy of ctx that contains the contexts in p. The returned context itself
// does not end when a phase begins, so that requests in progress can complete.
func withPhases(ctx context.Context, p phases) context.Context {
	return context.WithValue(ctx, phasesKey{}, p)
}

// ShuttingDown reports whether the server has begun to shut down. ctx is the context of a request
// to this server. During Shutdown.Delay, ShuttingDown returns true, but the server still accepts
// connections.
func ShuttingDown(ctx context.Context) bool {
	p, ok := ctx.Value(phasesKey{}).(phases)
	return ok && p.shuttingDown.Err() != nil
}

// StoppingContext returns a context that ends when the server stops accepting connections. Handlers
// must then close WebSockets and event streams. If ctx does not come from Serve, the context never
// ends.
func StoppingContext(ctx context.Context) context.Context {
	if p, ok := ctx.Value(phasesKey{}).(phases); ok {
		return p.stopping
	}
	return context.Background()
}
