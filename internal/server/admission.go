package server

import (
	"context"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
)

// callerOf returns the admission.Caller of an authenticated request. All tokens of a customer share
// one Caller. Any other principal has its own Caller.
func (h httpHandler) callerOf(identity auth.Identity) admission.Caller {
	principal := identity.Principal
	c := admission.Caller{Key: principal.ID, Weight: h.weights[principal.Role], Anonymous: principal.Role == access.RoleAnonymous}
	if principal.Customer != "" {
		c.Key, c.Customer = "customer/"+string(principal.Customer), true
	}
	return c
}

// anonymousCaller returns the admission.Caller of a request before the token is verified. If the
// server does not authenticate requests, all requests have the same Caller.
func (h httpHandler) anonymousCaller(remote string) admission.Caller {
	if h.authentication.tokens == nil {
		return admission.Caller{}
	}
	return admission.Caller{Key: "address/" + admission.Network(remote), Anonymous: true}
}

// acquire acquires n units of a pool's capacity for the caller in ctx, without waiting. If the
// capacity is not available, acquire returns the refusal to send to the client. Otherwise, it
// returns nil.
func (h httpHandler) acquire(ctx context.Context, id admission.PoolID, n int) *refusal {
	return poolRefusal(h.pools[id].TryAcquire(admission.CallerFromContext(ctx), n))
}

// releaseCapacity returns n units of capacity to a pool. The caller in ctx must have acquired them
// with acquire.
func (h httpHandler) releaseCapacity(ctx context.Context, id admission.PoolID, n int) {
	h.pools[id].Release(admission.CallerFromContext(ctx), n)
}

// Delays before the server refuses a request through the client's own fault. Without a delay, a
// client that immediately repeats each refused request would keep the processors busy.
const (
	// refusalDelay is the delay if the caller exceeds its rate limit or its share of a pool.
	refusalDelay = 200 * time.Millisecond
	// forgedTokenDelay is the delay if the signature of a token is invalid while other requests wait
	// for their signature verification.
	forgedTokenDelay = time.Second
)

// sleep waits for the duration d. It returns earlier if the client disconnects or the server stops.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-lifecycle.StoppingContext(ctx).Done():
	}
}

// delayRefusal waits for refusalDelay if the caller exceeds its rate limit or its share of a pool.
// Otherwise, it returns immediately.
func delayRefusal(ctx context.Context, refused *refusal, result graph.Result) {
	if refused != nil && (refused.shareExceeded || refused.rateLimitResult != nil) || refused == nil && result.Outcome == graph.RateLimited {
		sleep(ctx, refusalDelay)
	}
}

// poolRefusal converts an admission.Refusal to a refusal with an HTTP status and an error code. If
// the parameter is nil, poolRefusal returns nil.
func poolRefusal(full *admission.Refusal) *refusal {
	if full == nil {
		return nil
	}
	r := newRefusal(http.StatusServiceUnavailable, full.Pool.Code, "%s", full.Error())
	r.pool, r.shareExceeded = full.Pool.Name, full.ShareExceeded
	return r
}
