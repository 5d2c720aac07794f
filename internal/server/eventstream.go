package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// streamed answers a request with a stream of events, one connection for each
// (https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md#distinct-connections-mode).
// What goes wrong before the stream begins has the status that says so, as with GraphQL's own type;
// it is told as JSON.
func (h overHTTP) streamed(w http.ResponseWriter, r *http.Request) {
	var stream *graph.Stream
	r, result, refused := h.start(w, r, &stream)
	delayRefusal(r.Context(), nil, result)
	if stream != nil {
		defer h.give(r.Context(), admission.Subscriptions, 1)
		defer h.give(r.Context(), admission.Sockets, 1)
		defer stream.Close()
	}
	// Errors: a writer without a connection, as in tests, has no deadlines.
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
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
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

// start begins what a request asks for, and returns the request in the name of who makes it. Where
// it is a subscription, it is counted, and so is the connection.
func (h overHTTP) start(w http.ResponseWriter, r *http.Request, stream **graph.Stream) (*http.Request, graph.Result, *refusal) {
	asked, arrived, refused := h.asked(w, r, true)
	if refused != nil {
		return r, graph.Result{}, refused
	}
	r = asked
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

// follow tells a subscription's events until it is over, the client has gone, the server stops, or
// who uses it has no right to any more. Only in the first case the stream is complete, else it
// breaks off: clients then connect again.
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

// event writes a result, and reports whether to go on.
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

// eventStream is the answer to a request as a stream. It is safe for concurrent use: comments are
// written while events are waited for.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limits  Limits
	// end ends the waiting for events.
	end func()

	mu    sync.Mutex
	over  bool
	quiet *time.Timer
}

// write writes something, and reports whether that went well within the time for answers.
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

// keepAlive writes comments where nothing else is written for a while, so that proxies do not take
// the connection for a dead one, and that one that is dead is found out.
func (s *eventStream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = time.AfterFunc(s.limits.KeepAlive, func() { s.write(":\n\n") })
}

// stop waits for what is being written: nothing may be once the request's handler has returned.
func (s *eventStream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.quiet != nil {
		s.quiet.Stop()
	}
}
