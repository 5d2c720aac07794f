package server

import (
	"context"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
)

// callerOf returns the caller to whose shares a request counts: the customer of a token, else the
// subject of the token, else the address that the request comes from.
func (h overHTTP) callerOf(identity auth.Identity) admission.Caller {
	who := identity.Principal
	c := admission.Caller{Key: who.ID, Weight: h.weights[who.Role], Stranger: who.Role == commerce.RoleAnonymous}
	if who.Customer != "" {
		c.Key = "customer/" + string(who.Customer)
	}
	return c
}

// stranger returns the caller of a request before its token has been verified. Without
// authentication all requests are one caller's.
func (h overHTTP) stranger(remote string) admission.Caller {
	if h.authentication.tokens == nil {
		return admission.Caller{}
	}
	return admission.Caller{Key: "stranger/" + networkOf(remote), Stranger: true}
}

// take takes a part of a pool for the caller of a context. It returns nil, or the refusal.
func (h overHTTP) take(ctx context.Context, id admission.ID, n int) *refusal {
	return refused(h.pools[id].Take(admission.CallerOf(ctx), n))
}

// give gives back what take has taken.
func (h overHTTP) give(ctx context.Context, id admission.ID, n int) {
	h.pools[id].Give(admission.CallerOf(ctx), n)
}

// Clients that ask again at once when they are refused would keep the processors busy with
// refusals. So a refusal that only concerns its caller is late.
const (
	// shareDelay is for callers that have spent their points or have their share of a pool.
	shareDelay = 200 * time.Millisecond
	// forgedDelay is for tokens with a forged signature, while others wait for theirs to be verified.
	forgedDelay = time.Second
)

// delay waits until a time has passed, the client has gone, or the server stops.
func delay(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-stopping(ctx).Done():
	}
}

// delayRefusal waits if a request was refused because its caller asks for too much.
func delayRefusal(ctx context.Context, refused *refusal, result graph.Result) {
	if refused != nil && (refused.ofCaller || refused.limited != nil) || refused == nil && result.Outcome == graph.RateLimited {
		delay(ctx, shareDelay)
	}
}

// refused returns the refusal of a pool as the response to a request, nil if it is nil.
func refused(by *admission.Refusal) *refusal {
	if by == nil {
		return nil
	}
	r := refuse(http.StatusServiceUnavailable, by.Pool().Code, "%s", by.Error())
	r.pool, r.ofCaller = by.Pool().Name, by.OfCaller()
	return r
}
