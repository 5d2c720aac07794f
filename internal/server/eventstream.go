package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// serveEventStream responds with the results of one operation as server-sent events. If the
// operation cannot be started, the response is JSON with the errors. See
// https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md#distinct-connections-mode.
func (h httpHandler) serveEventStream(w http.ResponseWriter, r *http.Request) {
	var stream *graph.Subscription
	telemetry.RequestFromContext(r.Context()).SetEventStream()
	r, result, refused := h.startOperation(w, r, &stream)
	delayRefusal(r.Context(), nil, result)
	if stream != nil {
		defer h.releaseCapacity(r.Context(), admission.PoolSubscriptions, 1)
		defer h.releaseCapacity(r.Context(), admission.PoolSockets, 1)
		defer stream.Close()
	}
	// Errors of SetWriteDeadline are ignored: the ResponseWriter of a test has no connection, and
	// therefore supports no deadlines.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(h.limits.AnswerTime))
	switch {
	case refused != nil:
		h.writeRefusal(w, r, refused, typeJSON)
		return
	case result.Outcome != graph.Executed:
		code := httpStatus(result, typeGraphQL)
		setStatusHeaders(w.Header(), result, code)
		writeResponse(w, typeJSON, code, newResponseBody(result))
		return
	}
	ctx, cancel := context.WithCancel(withExplain(r.Context(), r.Header))
	defer cancel()
	defer h.authentication.watchToken(ctx, cancel)()
	defer context.AfterFunc(lifecycle.StoppingContext(ctx), cancel)()
	s := &eventStream{w: w, control: control, limits: h.limits, cancel: cancel}
	defer s.stop()
	w.Header().Set("Content-Type", string(typeEventStream)+"; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise, the proxy nginx delays events in its buffer
	w.WriteHeader(http.StatusOK)
	if stream == nil {
		_ = h.writeEvent(ctx, s, result)
		_ = s.write("event: complete\ndata:\n\n")
		return
	}
	if s.write(":\n\n") {
		s.startKeepAlive()
		h.writeEvents(ctx, s, stream)
	}
}

// startOperation reads a request and starts its operation. If this starts a subscription,
// startOperation sets *stream. When the subscription ends, the caller must release one unit of
// admission.PoolSubscriptions and one unit of admission.PoolSockets.
func (h httpHandler) startOperation(w http.ResponseWriter, r *http.Request, stream **graph.Subscription) (*http.Request, graph.Result, *refusal) {
	withPrincipal, arrived, refused := h.readRequest(w, r, true)
	if refused != nil {
		return r, graph.Result{}, refused
	}
	r = withPrincipal
	var full *refusal
	result, refused := h.execute(withExplain(r.Context(), r.Header), arrived, func(ctx context.Context, request graph.Request) graph.Result {
		started, result := h.executor.Start(ctx, request)
		if started == nil {
			return result
		}
		if full = h.acquire(ctx, admission.PoolSockets, 1); full == nil {
			if full = h.acquire(ctx, admission.PoolSubscriptions, 1); full != nil {
				h.releaseCapacity(ctx, admission.PoolSockets, 1)
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

// writeEvents writes the events of a subscription until the subscription or ctx ends. ctx ends when
// the client disconnects, the server stops, or the token is no longer valid.
func (h httpHandler) writeEvents(ctx context.Context, s *eventStream, stream *graph.Subscription) {
	for {
		result, more := stream.Next(ctx)
		// Without an event of type complete, the client reconnects.
		if ctx.Err() != nil {
			return
		}
		if more && h.writeEvent(ctx, s, result) {
			continue
		}
		if !more {
			if len(result.Errors) > 0 && !h.writeEvent(ctx, s, result) {
				return
			}
			s.write("event: complete\ndata:\n\n")
		}
		return
	}
}

// writeEvent writes a result as an event, and reports whether the stream continues. If
// admission.PoolResponses has no capacity for the event, writeEvent writes an error instead and
// completes the stream.
func (h httpHandler) writeEvent(ctx context.Context, s *eventStream, result graph.Result) bool {
	data := encodeResult(result)
	if full := h.acquire(ctx, admission.PoolResponses, len(data)); full != nil {
		instead := full.result()
		if result.Mutation {
			instead = mutationResponseDropped()
		}
		s.write("event: next\ndata: " + string(encodeResult(instead)) + "\n\nevent: complete\ndata:\n\n")
		return false
	}
	defer h.releaseCapacity(ctx, admission.PoolResponses, len(data))
	return s.write("event: next\ndata: ", string(data), "\n\n")
}

// eventStream writes server-sent events to one HTTP response. It is safe for concurrent use,
// because a timer writes keep-alive comments while the handler waits for events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limits  Limits
	// cancel ends the wait for the next event.
	cancel func()

	mu             sync.Mutex
	closed         bool
	keepAliveTimer *time.Timer
}

// write writes the given strings and flushes the response. It returns false if the stream is
// closed, if the write fails, or if the write takes longer than Limits.AnswerTime.
func (s *eventStream) write(parts ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.limits.AnswerTime))
	for _, part := range parts {
		if _, err := s.w.Write([]byte(part)); err != nil {
			s.closed = true
			s.cancel()
			return false
		}
	}
	if err := s.control.Flush(); err != nil {
		s.closed = true
		s.cancel()
		return false
	}
	if s.keepAliveTimer != nil {
		s.keepAliveTimer.Reset(s.limits.KeepAlive)
	}
	return true
}

// startKeepAlive starts a timer that writes a comment whenever nothing has been written for
// Limits.KeepAlive. The comments keep idle connections open and detect disconnected clients.
func (s *eventStream) startKeepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepAliveTimer = time.AfterFunc(s.limits.KeepAlive, func() { s.write(":\n\n") })
}

// stop waits for a write in progress and prevents further writes. The handler calls stop before it
// returns, because the ResponseWriter must not be used afterwards.
func (s *eventStream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.keepAliveTimer != nil {
		s.keepAliveTimer.Stop()
	}
}
