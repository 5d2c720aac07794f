package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// requestIDHeader is the response header with the request ID. Log entries about the request contain
// the same ID.
const requestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// requestIDContext is a context with a request ID. It must not refer to the ResponseWriter. A
// WebSocket keeps the context, and everything to which it refers, in memory until the socket is
// closed.
type requestIDContext struct {
	context.Context
	id string
}

// Value returns the request ID, or the parent's value.
func (c *requestIDContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return c.id
	}
	return c.Context.Value(key)
}

// requestID returns the request ID in ctx. It returns an empty string if ctx does not belong to a
// request.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID is middleware that assigns an ID to each request. If the handler panics, the
// middleware recovers and responds to the request.
func withRequestID(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set(requestIDHeader, id)
		r = r.WithContext(&requestIDContext{r.Context(), id})
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			panicked := recover()
			if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(panicked) // net/http uses this panic to close the connection
			}
			if panicked != nil {
				log.ErrorContext(r.Context(), "request failed", "error", fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack()), "requestId", id)
				seen.writeError(id)
			}
		}()
		next.ServeHTTP(seen, r)
	})
}

// withObservation is middleware that passes measurements of each request to o, such as the status
// and duration. The ResponseWriter must be a statusWriter.
func withObservation(o *telemetry.Observer, next http.Handler) http.Handler {
	if o == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, request := o.Begin(r.Context(), requestID(r.Context()), telemetry.TransportHTTP, r.Method, r.URL.Path, r.Header)
		r = r.WithContext(ctx)
		if request == nil {
			next.ServeHTTP(w, r)
			return
		}
		sent, completed := w.(*statusWriter), false
		defer func() {
			status := sent.sentStatus()
			switch {
			case !completed: // the handler has panicked, and withRequestID responds
				request.Fail(errcode.Internal, "")
				status = http.StatusInternalServerError
			case sent.status == http.StatusSwitchingProtocols:
				status = sent.status
			}
			request.AddBytes(sent.bytes)
			request.End(status)
		}()
		next.ServeHTTP(w, r)
		completed = true
	})
}

// statusWriter records the status of a response and the number of bytes of its body.
type statusWriter struct {
	http.ResponseWriter
	status, bytes int
}

// WriteHeader writes and records the status.
func (w *statusWriter) WriteHeader(status int) {
	if w.status < http.StatusOK { // a status 1xx precedes the final status
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.status = w.sentStatus()
	w.bytes += len(b)
	return w.ResponseWriter.Write(b)
}

// sentStatus returns the status that the client gets.
func (w *statusWriter) sentStatus() int {
	if w.status < http.StatusOK {
		return http.StatusOK
	}
	return w.status
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeError responds to a request whose handler has panicked. If a part of the response has
// already been sent, writeError closes the connection instead, so that the client detects the
// incomplete response.
func (w *statusWriter) writeError(id string) {
	if w.status >= http.StatusOK {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	for name := range header {
		// The error response keeps the request ID, Vary and the CORS headers. All other headers are
		// deleted, because they describe the handler's response.
		if name != requestIDHeader && name != "Vary" && !strings.HasPrefix(name, "Access-Control-") {
			header.Del(name)
		}
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	refused := newRefusal(http.StatusInternalServerError, errcode.Internal, "Something went wrong on the server.")
	refused.requestID = id
	refused.write(w, typeJSON)
}
