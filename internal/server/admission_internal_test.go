package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
)

// All tokens of a customer have the same caller. Other callers are identified by their subjects.
func TestCallers(t *testing.T) {
	h := httpHandler{weights: map[access.Role]int{access.RoleService: 8}}
	for name, c := range map[string]struct {
		who  access.Principal
		want admission.Caller
	}{
		"a customer": {access.Principal{ID: "a", Role: access.RoleCustomer, Customer: "cust_01"}, admission.Caller{Key: "customer/cust_01", Customer: true}},
		"a service":  {access.Principal{ID: "b", Role: access.RoleService}, admission.Caller{Key: "b", Weight: 8}},
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

// The fewer sockets are free, the shorter a new socket may wait for connection_init.
func TestInitTimeDecreases(t *testing.T) {
	pools := admission.New(admission.Sizes{admission.PoolConnections: 64}) // 48 sockets, 24 of them for callers without a token
	stranger := admission.Caller{Key: "address/203.0.113.7", Anonymous: true}
	h := webSocketHandler{httpHandler: httpHandler{pools: pools, limits: Limits{InitTime: 8 * time.Second}}}
	s := &socket{handler: h, operationContext: admission.WithCaller(t.Context(), stranger)}
	for _, c := range []struct {
		opened int
		want   time.Duration
	}{{0, 8 * time.Second}, {6, 6 * time.Second}, {6, 4 * time.Second}, {9, time.Second}} {
		if refused := pools[admission.PoolSockets].TryAcquire(stranger, c.opened); c.opened > 0 && refused != nil {
			t.Fatal(refused)
		}
		if got := s.initTime(); got != c.want {
			t.Errorf("after %d more sockets, the time is %v, want %v", c.opened, got, c.want)
		}
	}
	known := &socket{handler: h, operationContext: admission.WithCaller(t.Context(), admission.Caller{Key: "known"})}
	if got := known.initTime(); got != 4500*time.Millisecond { // 27 of 48 sockets are free
		t.Errorf("with a token in the upgrade, the time is %v", got)
	}
	s.handler.limits.InitTime = 100 * time.Millisecond
	if got := s.initTime(); got != 100*time.Millisecond {
		t.Errorf("the time is %v, want the limit, which is below the minimum", got)
	}
}
