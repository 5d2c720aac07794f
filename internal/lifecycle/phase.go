package lifecycle

import "context"

type phasesKey struct{}

// phases contains one context for each phase of a shutdown. The context of a phase ends when the
// phase begins.
type phases struct{ shuttingDown, stopping context.Context }

// withPhases returns a copy of ctx that contains p. The returned context does not end when a phase
// begins, so that short requests can complete.
func withPhases(ctx context.Context, p phases) context.Context {
	return context.WithValue(ctx, phasesKey{}, p)
}

// ShuttingDown reports whether the server that received the request of ctx has begun to shut down.
// For the time Shutdown.Delay, such a server still accepts connections.
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
