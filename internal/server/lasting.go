package server

import (
	"context"
	"net/http"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/rate"
)

// What lasts: sockets, streams of events and the subscriptions on them. Each is counted, as each
// takes memory for as long as its client likes.

// stay counts a connection that stays, and reports whether there is room for it; leave gives it
// back.
func (h overHTTP) stay() bool { return take(h.staying) }
func (h overHTTP) leave()     { <-h.staying }

// subscribe counts a subscription, or another operation on a socket, for whom a context speaks for,
// or tells why there is no room for it; unsubscribe gives it back.
func (h overHTTP) subscribe(ctx context.Context) *refusal {
	switch caller := callerOf(ctx); {
	case !h.followed.take(caller):
		return refuse(http.StatusServiceUnavailable, errcode.TooManySubscriptions, "the %s has as many subscriptions as one can, %d: complete others", sharer(caller), h.followed.most)
	case !take(h.subscriptions):
		h.followed.give(caller)
		refused := refuse(http.StatusServiceUnavailable, errcode.TooManySubscriptions, "the server has as many subscriptions as it takes on: try again later")
		h.shedding.one(ctx, refused.message)
		return refused
	}
	return nil
}

func (h overHTTP) unsubscribe(ctx context.Context) {
	<-h.subscriptions
	h.followed.give(callerOf(ctx))
}

// callerShare is the part of all that lasts which one customer, or one address without a token, can
// have. Others are the shop's own, of whom one may speak for many: a gateway.
const callerShare = 20

// shares count what callers have of something, so that none takes it from all others. They are safe
// for concurrent use.
type shares struct {
	// most is how many one caller can have, and mostAnonymous all without a token together.
	most, mostAnonymous int

	mu        sync.Mutex
	had       map[string]int
	anonymous int
}

func newShares(of int) *shares {
	return &shares{most: max(1, of/callerShare), mostAnonymous: max(1, of/rate.AnonymousShare), had: map[string]int{}}
}

// take reports whether a caller may have one more; those without a share may.
func (s *shares) take(who commerce.Principal) bool {
	key, limited := shareKey(who)
	if !limited {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	anonymous := who.Role == commerce.RoleAnonymous
	if s.had[key] >= s.most || anonymous && s.anonymous >= s.mostAnonymous {
		return false
	}
	if s.had[key]++; anonymous {
		s.anonymous++
	}
	return true
}

// give takes one back.
func (s *shares) give(who commerce.Principal) {
	key, limited := shareKey(who)
	if !limited {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.had[key]--; s.had[key] == 0 {
		delete(s.had, key)
	}
	if who.Role == commerce.RoleAnonymous {
		s.anonymous--
	}
}

// shareKey identifies whom a caller's share belongs to, false where the caller has none.
func shareKey(who commerce.Principal) (key string, limited bool) {
	switch {
	case who.Role == commerce.RoleAnonymous:
		return who.ID, true
	case who.Customer != "":
		return "customer/" + string(who.Customer), true
	default:
		return "", false
	}
}

// sharer is a word for whom a caller's share belongs to.
func sharer(who commerce.Principal) string {
	if who.Role == commerce.RoleAnonymous {
		return "address"
	}
	return "customer"
}

func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func tooManyStay() *refusal {
	return refuse(http.StatusServiceUnavailable, errcode.Overloaded, "the server has as many sockets and streams of events as it takes on: use one socket for several subscriptions, or try again later")
}

type stoppingKey struct{}

// withStopping returns a context whose requests know when the server stops. They are not ended by
// it: those that answer soon still do.
func withStopping(ctx, stopping context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// stopping ends when the server stops that a request came to.
func stopping(ctx context.Context) context.Context {
	if stopping, ok := ctx.Value(stoppingKey{}).(context.Context); ok {
		return stopping
	}
	return context.Background()
}
