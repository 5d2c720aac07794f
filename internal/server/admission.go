package server

import (
	"context"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
)

// callerOf returns the caller of an authenticated request. If the principal is a customer, the key
// of the caller contains the customer's ID. Otherwise, the key is the principal's ID.
func (h httpHandler) callerOf(identity auth.Identity) admission.Caller {
	principal := identity.Principal
	c := admission.Caller{Key: principal.ID, Weight: h.weights[principal.Role], Anonymous: principal.Role == commerce.RoleAnonymous}
	if principal.Customer != "" {
		c.Key = "customer/" + string(principal.Customer)
	}
	return c
}

// anonymousCaller returns the caller of a request before its token has been verified. The caller is
// identified by the network address of its connection. Without authentication, all requests have
// the same caller.
func (h httpHandler) anonymousCaller(remote string) admission.Caller {
	if h.authentication.tokens == nil {
		return admission.Caller{}
	}
	return admission.Caller{Key: "address/" + admission.Network(remote), Anonymous: true}
}

// acquire acquires n units of a pool's capacity for the caller in ctx. It returns nil if it has
// acquired the capacity, and otherwise a refusal.
func (h httpHandler) acquire(ctx context.Context, id admission.PoolID, n int) *refusal {
	return poolRefusal(h.pools[id].TryAcquire(admission.CallerFromContext(ctx), n))
}

// releaseCapacity releases n units that acquire has acquired.
func (h httpHandler) releaseCapacity(ctx context.Context, id admission.PoolID, n int) {
	h.pools[id].Release(admission.CallerFromContext(ctx), n)
}

// If a caller itself is the cause of a refusal, the server delays the refusal. Otherwise, a client
// that retries immediately would keep the processors busy with refusals.
const (
	// refusalDelay is the delay of a refusal if the caller exceeds its rate limit or its share of a
	// pool.
	refusalDelay = 200 * time.Millisecond
	// forgedTokenDelay is the delay of a refusal of a token with an invalid signature. It applies only
	// while other requests wait for the verification of their tokens.
	forgedTokenDelay = time.Second
)

// sleep waits for d. It returns earlier if the client disconnects or the server stops.
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

// poolRefusal converts a pool's refusal to an HTTP response. It returns nil if full is nil.
func poolRefusal(full *admission.Refusal) *refusal {
	if full == nil {
		return nil
	}
	r := newRefusal(http.StatusServiceUnavailable, full.Pool().Code, "%s", full.Error())
	r.pool, r.shareExceeded = full.Pool().Name, full.ShareExceeded()
	return r
}
