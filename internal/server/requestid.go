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
	"time"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// requestIDHeader names the request in every reply and in the log.
const requestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// identifiedContext is the context of a request that has an id. It holds nothing of the reply: a
// socket keeps it.
type identifiedContext struct {
	context.Context
	id string
}

// Value is the id, or what the context beneath has.
func (c *identifiedContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return c.id
	}
	return c.Context.Value(key)
}

// requestID is the id of the request that ctx belongs to, empty outside of one.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// identified gives every request an id, answers for panics, and logs requests, at debug level: what
// fails is logged where it fails.
func identified(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set(requestIDHeader, id)
		r = r.WithContext(&identifiedContext{r.Context(), id})
		logged := log.Enabled(r.Context(), slog.LevelDebug)
		var start time.Time
		if logged {
			start = time.Now()
		}
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			panicked := recover()
			if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(panicked) // net/http's own way to cut a connection
			}
			if panicked != nil {
				log.ErrorContext(r.Context(), "request failed", "error", fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack()), "requestId", id)
				seen.fail(id)
			}
			if logged { // what is logged takes memory before the log can decline it
				log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", seen.sent(), "duration", time.Since(start), "requestId", id)
			}
		}()
		next.ServeHTTP(seen, r)
	})
}

// statusWriter remembers the status of a reply.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader writes and remembers the status.
func (w *statusWriter) WriteHeader(status int) {
	if w.status < http.StatusOK { // 1xx come before the reply's own
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.status = w.sent()
	return w.ResponseWriter.Write(b)
}

// sent is the status that the client gets.
func (w *statusWriter) sent() int {
	if w.status < http.StatusOK {
		return http.StatusOK
	}
	return w.status
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers a request whose handler panicked. If a part of the reply is out already, the
// connection is cut, so that the client does not take that part for the whole.
func (w *statusWriter) fail(id string) {
	if w.status >= http.StatusOK {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	for name := range header {
		// The rest described another body.
		if name != requestIDHeader && name != "Vary" && !strings.HasPrefix(name, "Access-Control-") {
			header.Del(name)
		}
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	refused := refuse(http.StatusInternalServerError, errcode.Internal, "Something went wrong on the server.")
	refused.requestID = id
	refused.reply(w, typeJSON)
}
