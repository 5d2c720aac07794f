package lifecycle

import "context"

type phasesKey struct{}

// phases are the phases of a shutdown. Each context ends when its phase begins.
type phases struct{ shuttingDown, stopping context.Context }

// withPhases returns a copy of ctx that carries the phases. The returned context does not end with
// them, so that short requests can complete.
func withPhases(ctx context.Context, p phases) context.Context {
	return context.WithValue(ctx, phasesKey{}, p)
}

// ShuttingDown reports whether the server has been told to stop. It may still accept connections,
// until its load balancer has noticed.
func ShuttingDown(ctx context.Context) bool {
	p, ok := ctx.Value(phasesKey{}).(phases)
	return ok && p.shuttingDown.Err() != nil
}

// Stopping returns the context that ends when the server accepts no more connections. WebSockets
// and event streams must then be closed. If ctx does not belong to a request of Serve, the returned
// context never ends.
func Stopping(ctx context.Context) context.Context {
	if p, ok := ctx.Value(phasesKey{}).(phases); ok {
		return p.stopping
	}
	return context.Background()
}
