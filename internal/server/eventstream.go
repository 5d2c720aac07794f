package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// streamed responds to a request with a stream of server-sent events, on one connection per
// operation
// (https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md#distinct-connections-mode). An
// error before the stream begins has the HTTP status of typeGraphQL and a body in JSON.
func (h overHTTP) streamed(w http.ResponseWriter, r *http.Request) {
	var stream *graph.Stream
	r, result, refused := h.start(w, r, &stream)
	delayRefusal(r.Context(), nil, result)
	if stream != nil {
		defer h.give(r.Context(), admission.Subscriptions, 1)
		defer h.give(r.Context(), admission.Sockets, 1)
		defer stream.Close()
	}
	// The errors are ignored: a writer without a connection, as in tests, has no deadlines.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(h.limits.AnswerTime))
	switch {
	case refused != nil:
		h.refuse(w, r, refused, typeJSON)
		return
	case result.Outcome != graph.Executed:
		code := status(result, typeGraphQL)
		advise(w.Header(), result, code)
		reply(w, typeJSON, code, encoded(result))
		return
	}
	ctx, cancel := context.WithCancel(explaining(r.Context(), r.Header))
	defer cancel()
	defer h.authentication.watch(ctx, cancel)()
	defer context.AfterFunc(stopping(ctx), cancel)()
	s := &eventStream{w: w, control: control, limits: h.limits, end: cancel}
	defer s.stop()
	w.Header().Set("Content-Type", string(typeEventStream)+"; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer events
	w.WriteHeader(http.StatusOK)
	if stream == nil {
		_ = h.event(ctx, s, result)
		_ = s.write("event: complete\ndata:\n\n")
		return
	}
	if s.write(":\n\n") {
		s.keepAlive()
		h.follow(ctx, s, stream)
	}
}

// start starts the operation of a request. It returns the request with its principal. For a
// subscription it sets stream, and counts the subscription and its connection.
func (h overHTTP) start(w http.ResponseWriter, r *http.Request, stream **graph.Stream) (*http.Request, graph.Result, *refusal) {
	withPrincipal, arrived, refused := h.asked(w, r, true)
	if refused != nil {
		return r, graph.Result{}, refused
	}
	r = withPrincipal
	var full *refusal
	result, refused := h.placed(explaining(r.Context(), r.Header), arrived, func(ctx context.Context, request graph.Request) graph.Result {
		started, result := h.executor.Start(ctx, request)
		if started == nil {
			return result
		}
		if full = h.take(ctx, admission.Sockets, 1); full == nil {
			if full = h.take(ctx, admission.Subscriptions, 1); full != nil {
				h.give(ctx, admission.Sockets, 1)
			}
		}
		if full != nil {
			started.Close()
			return result
		}
		*stream = started
		return result
	})
	if full != nil {
		refused = full
	}
	return r, result, refused
}

// follow writes a subscription's events. It returns when the subscription ends, the client
// disconnects, the server stops, or the token is no longer valid. Only the end of the subscription
// completes the stream. Otherwise the stream breaks off, and clients connect again.
func (h overHTTP) follow(ctx context.Context, s *eventStream, stream *graph.Stream) {
	for {
		result, more := stream.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		if more && h.event(ctx, s, result) {
			continue
		}
		if !more {
			if len(result.Errors) > 0 && !h.event(ctx, s, result) {
				return
			}
			s.write("event: complete\ndata:\n\n")
		}
		return
	}
}

// event writes a result, and reports whether the stream continues.
func (h overHTTP) event(ctx context.Context, s *eventStream, result graph.Result) bool {
	data := encode(result)
	if full := h.take(ctx, admission.Answers, len(data)); full != nil {
		instead := full.result()
		if result.Mutation {
			instead = mutationDropped()
		}
		s.write("event: next\ndata: " + string(encode(instead)) + "\n\nevent: complete\ndata:\n\n")
		return false
	}
	defer h.give(ctx, admission.Answers, len(data))
	return s.write("event: next\ndata: ", string(data), "\n\n")
}

// eventStream is a response that is a stream of events. It is safe for concurrent use, because
// comments are written while the handler waits for events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limits  Limits
	// end cancels the wait for events.
	end func()

	mu    sync.Mutex
	over  bool
	quiet *time.Timer
}

// write writes parts and flushes them. It reports whether both succeeded within the response
// timeout.
func (s *eventStream) write(parts ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.limits.AnswerTime))
	for _, part := range parts {
		if _, err := s.w.Write([]byte(part)); err != nil {
			s.over = true
			s.end()
			return false
		}
	}
	if err := s.control.Flush(); err != nil {
		s.over = true
		s.end()
		return false
	}
	if s.quiet != nil {
		s.quiet.Reset(s.limits.KeepAlive)
	}
	return true
}

// keepAlive writes a comment after each period without an event. Proxies then keep the connection
// open, and the server detects a dead connection.
func (s *eventStream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = time.AfterFunc(s.limits.KeepAlive, func() { s.write(":\n\n") })
}

// stop waits for a write in progress and prevents further writes. A ResponseWriter must not be used
// after its handler has returned.
func (s *eventStream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.quiet != nil {
		s.quiet.Stop()
	}
}
