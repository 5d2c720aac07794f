package server

import (
	"context"
	"net/http"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/errcode"
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
	switch customer := customerOf(ctx); {
	case !h.followed.take(customer):
		return refuse(http.StatusServiceUnavailable, errcode.TooManySubscriptions, "the customer has as many subscriptions as one can, %d: complete others", h.followed.most)
	case !take(h.subscriptions):
		h.followed.give(customer)
		refused := refuse(http.StatusServiceUnavailable, errcode.TooManySubscriptions, "the server has as many subscriptions as it takes on: try again later")
		h.shedding.one(ctx, refused.message)
		return refused
	}
	return nil
}

func (h overHTTP) unsubscribe(ctx context.Context) {
	<-h.subscriptions
	h.followed.give(customerOf(ctx))
}

// customerShare is the part of all that lasts which one customer can have. Others are the shop's
// own, of whom one may speak for many: a gateway.
const customerShare = 20

// shares count what customers have of something, so that none takes it from all others. They are
// safe for concurrent use.
type shares struct {
	most int
	mu   sync.Mutex
	had  map[commerce.CustomerID]int
}

func newShares(of int) *shares {
	return &shares{most: max(1, of/customerShare), had: map[commerce.CustomerID]int{}}
}

// take reports whether a customer may have one more; who is none may.
func (s *shares) take(customer commerce.CustomerID) bool {
	if customer == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.had[customer] >= s.most {
		return false
	}
	s.had[customer]++
	return true
}

// give takes one back.
func (s *shares) give(customer commerce.CustomerID) {
	if customer == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.had[customer]--; s.had[customer] == 0 {
		delete(s.had, customer)
	}
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
