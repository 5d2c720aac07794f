package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
)

// All tokens of a customer have the same caller. Other callers are identified by their subjects.
func TestCallers(t *testing.T) {
	h := httpHandler{weights: map[commerce.Role]int{commerce.RoleService: 8}}
	for name, c := range map[string]struct {
		who  commerce.Principal
		want admission.Caller
	}{
		"a customer": {commerce.Principal{ID: "a", Role: commerce.RoleCustomer, Customer: "cust_01"}, admission.Caller{Key: "customer/cust_01"}},
		"a service":  {commerce.Principal{ID: "b", Role: commerce.RoleService}, admission.Caller{Key: "b", Weight: 8}},
		"an address": {anonymousPrincipal("203.0.113.7:1000"), admission.Caller{Key: "anonymous/203.0.113.7", Anonymous: true}},
		"a network":  {anonymousPrincipal("[2001:db8::1]:1000"), admission.Caller{Key: "anonymous/2001:db8::/64", Anonymous: true}},
	} {
		if got := h.callerOf(auth.Identity{Principal: c.who}); got != c.want {
			t.Errorf("%s has the caller %+v, want %+v", name, got, c.want)
		}
	}
	if got := h.anonymousCaller("203.0.113.7:1000"); got != (admission.Caller{}) {
		t.Errorf("without authentication, the caller is %+v, want the zero value", got)
	}
	h.authentication.tokens = new(auth.Authenticator)
	if got := h.anonymousCaller("203.0.113.7:1000"); got != (admission.Caller{Key: "address/203.0.113.7", Anonymous: true}) {
		t.Errorf("before the token is verified, the caller is %+v", got)
	}
}

// Only a refusal that concerns its caller alone is delayed, and the delay ends if the client
// disconnects.
func TestRefusalsOfACallerAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for name, c := range map[string]struct {
			ctx     context.Context
			refused *refusal
			outcome graph.Outcome
			want    time.Duration
		}{
			"no refusal":              {t.Context(), nil, graph.Executed, 0},
			"a refused document":      {t.Context(), nil, graph.Refused, 0},
			"no points left":          {t.Context(), nil, graph.RateLimited, refusalDelay},
			"no points for the bytes": {t.Context(), &refusal{rateLimitResult: &graph.Result{}}, graph.Executed, refusalDelay},
			"a full server":           {t.Context(), &refusal{pool: "requests"}, graph.Executed, 0},
			"a caller's share":        {t.Context(), &refusal{pool: "requests", shareExceeded: true}, graph.Executed, refusalDelay},
			"a client that has gone":  {cancelled, &refusal{pool: "requests", shareExceeded: true}, graph.Executed, 0},
		} {
			start := time.Now()
			delayRefusal(c.ctx, c.refused, graph.Result{Outcome: c.outcome})
			if elapsed := time.Since(start); elapsed != c.want {
				t.Errorf("%s: the refusal was delayed by %v, want %v", name, elapsed, c.want)
			}
		}
	})
}
