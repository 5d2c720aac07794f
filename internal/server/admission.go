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

// callerOf returns the caller whose shares a request uses. The key is the customer of the token,
// else the subject of the token, else the client's network address.
func (h httpHandler) callerOf(identity auth.Identity) admission.Caller {
	principal := identity.Principal
	c := admission.Caller{Key: principal.ID, Weight: h.weights[principal.Role], Anonymous: principal.Role == commerce.RoleAnonymous}
	if principal.Customer != "" {
		c.Key = "customer/" + string(principal.Customer)
	}
	return c
}

// anonymousCaller returns the caller of a request before its token has been verified. Without
// authentication all requests have the same caller.
func (h httpHandler) anonymousCaller(remote string) admission.Caller {
	if h.authentication.tokens == nil {
		return admission.Caller{}
	}
	return admission.Caller{Key: "address/" + remoteNetwork(remote), Anonymous: true}
}

// acquire acquires n of a pool for the caller of a context. It returns nil, or the refusal.
func (h httpHandler) acquire(ctx context.Context, id admission.PoolID, n int) *refusal {
	return poolRefusal(h.pools[id].TryAcquire(admission.CallerOf(ctx), n))
}

// releaseCapacity releases n that acquire has acquired.
func (h httpHandler) releaseCapacity(ctx context.Context, id admission.PoolID, n int) {
	h.pools[id].Release(admission.CallerOf(ctx), n)
}

// A client that retries at once after a refusal would keep the processors busy with refusals. So
// the server delays a refusal that only concerns its caller.
const (
	// shareDelay delays refusals of callers that have spent their points or have their share of a
	// pool.
	shareDelay = 200 * time.Millisecond
	// forgedTokenDelay delays the refusal of a forged signature while other signatures wait to be
	// verified.
	forgedTokenDelay = time.Second
)

// delay waits until d has passed, the client has disconnected, or the server stops.
func delay(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-shutdownContext(ctx).Done():
	}
}

// delayRefusal waits if a request was refused because its caller requests too much.
func delayRefusal(ctx context.Context, refused *refusal, result graph.Result) {
	if refused != nil && (refused.shareExceeded || refused.rateLimitResult != nil) || refused == nil && result.Outcome == graph.RateLimited {
		delay(ctx, shareDelay)
	}
}

// poolRefusal returns a pool's refusal as the response to a request, or nil if the refusal is nil.
func poolRefusal(full *admission.Refusal) *refusal {
	if full == nil {
		return nil
	}
	r := newRefusal(http.StatusServiceUnavailable, full.Pool().Code, "%s", full.Error())
	r.pool, r.shareExceeded = full.Pool().Name, full.ShareExceeded()
	return r
}
