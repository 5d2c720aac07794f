package server

import (
	"context"
	"net/http"

	"github.com/ordergraph/ordergraph/graph"
)

// What lasts: sockets, streams of events and the subscriptions on them. Each is counted, as each takes memory for as long as its client likes.

// stay counts a connection that stays, and tells whether there is room for it; leave gives it back.
func (h overHTTP) stay() bool { return take(h.staying) }
func (h overHTTP) leave()     { <-h.staying }

// subscribe counts a subscription, or another operation on a socket, and tells whether there is room for it; unsubscribe gives it back.
func (h overHTTP) subscribe() bool { return take(h.subscriptions) }
func (h overHTTP) unsubscribe()    { <-h.subscriptions }

func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func tooManyStay() *refusal {
	return refuse(http.StatusServiceUnavailable, graph.CodeOverloaded, "the server has as many sockets and streams of events as it takes on: use one socket for several subscriptions, or try again later")
}

func tooManySubscriptions() *refusal {
	return refuse(http.StatusServiceUnavailable, graph.CodeTooManySubscriptions, "the server has as many subscriptions as it takes on: try again later")
}

type stoppingKey struct{}

// withStopping returns a context whose requests know when the server stops. They are not ended by it: those that answer soon still do.
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
