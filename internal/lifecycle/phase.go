package lifecycle

import "context"

type phasesKey struct{}

// phases contains a context for each phase of a shutdown. Each context ends when its phase begins.
type phases struct{ shuttingDown, stopping context.Context }

// withPhases returns a copy of ctx that carries the phases. The returned context does not end when
// a phase begins, so that short requests can complete.
func withPhases(ctx context.Context, p phases) context.Context {
	return context.WithValue(ctx, phasesKey{}, p)
}

// ShuttingDown reports whether the shutdown of the server has begun. During Shutdown.Delay, a
// server that is shutting down still accepts connections.
func ShuttingDown(ctx context.Context) bool {
	p, ok := ctx.Value(phasesKey{}).(phases)
	return ok && p.shuttingDown.Err() != nil
}

// StoppingContext returns the context that ends when the server accepts no more connections. WebSockets
// and event streams must then be closed. If ctx does not belong to a request of Serve, the returned
// context never ends.
func StoppingContext(ctx context.Context) context.Context {
	if p, ok := ctx.Value(phasesKey{}).(phases); ok {
		return p.stopping
	}
	return context.Background()
}
