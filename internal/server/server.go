// Package server serves the GraphQL face, GraphiQL and the health checks over HTTP.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rs/cors"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/graphiql"
)

// Options are what a server needs.
type Options struct {
	// Graph are the options of the GraphQL face; its Report is the server's own.
	Graph graph.Options
	// Origins are the origins whose pages may call the API from a browser.
	Origins []string
	// Log is where the server logs.
	Log *slog.Logger
}

// Limits of a request.
const (
	maxBody        = 128 << 10
	maxHeader      = 32 << 10
	requestTimeout = 10 * time.Second
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	// writeTimeout leaves a request its own time and a slow client some more.
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	// drainTimeout is how long requests under way have when the server stops.
	drainTimeout = 15 * time.Second
)

// Paths.
const (
	PathGraphQL = "/graphql"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
)

// ExplainHeader asks for extensions.explain when it is "true", or 1.
const ExplainHeader = "X-Ordergraph-Explain"

// requestIDHeader names the request in every reply and in the log.
const requestIDHeader = "X-Request-Id"

// New returns the handler of everything that is served.
//
// Errors: one where the built-in pages cannot be read.
func New(opts Options) (http.Handler, error) {
	pages, err := graphiql.Handler()
	if err != nil {
		return nil, err
	}
	opts.Graph.Report = func(ctx context.Context, err error) {
		if errors.Is(err, context.Canceled) {
			return // the caller went away
		}
		opts.Log.ErrorContext(ctx, "query failed", "error", err, "requestId", requestID(ctx))
	}
	api := cors.New(cors.Options{
		AllowedOrigins: opts.Origins,
		// Without origins rs/cors would allow all of them.
		AllowOriginFunc: allowNone(opts.Origins),
		AllowedMethods:  []string{http.MethodGet, http.MethodPost},
		AllowedHeaders:  []string{"Content-Type", "Authorization", ExplainHeader, requestIDHeader},
		ExposedHeaders:  []string{requestIDHeader},
		MaxAge:          600,
	}).Handler(explained(graph.NewHandler(opts.Graph)))

	mux := http.NewServeMux()
	mux.Handle(PathGraphQL, limited(api))
	mux.HandleFunc("GET "+PathHealth, func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+PathReady, readiness(opts.Graph.Store.Ping, time.Now, opts.Log))
	mux.Handle("/", pages)
	return logged(opts.Log, mux), nil
}

// allowNone refuses every origin where none is configured.
func allowNone(origins []string) func(string) bool {
	if len(origins) > 0 {
		return nil
	}
	return func(string) bool { return false }
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// limited bounds the size of a request and the time that it may take.
func limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// explained lets a request ask for the explain output.
func explained(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if on, err := strconv.ParseBool(r.Header.Get(ExplainHeader)); err == nil && on {
			r = r.WithContext(graph.WithExplain(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// readyFor is how long an answer about readiness holds, so that checks cannot load the table.
const readyFor = time.Second

// readiness answers whether the table can be read.
func readiness(ping func(context.Context) error, now func() time.Time, log *slog.Logger) http.HandlerFunc {
	var mu sync.Mutex
	var asked time.Time
	var last error
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if now().Sub(asked) >= readyFor {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*time.Second)
			defer cancel()
			before := last
			last, asked = ping(ctx), now()
			switch {
			case before == nil && last != nil:
				log.ErrorContext(ctx, "not ready", "error", last)
			case before != nil && last == nil:
				log.InfoContext(ctx, "ready again")
			}
		}
		if last != nil {
			plain(w, http.StatusServiceUnavailable, "the table cannot be read")
			return
		}
		plain(w, http.StatusOK, "ready")
	}
}

type requestIDKey struct{}

// requestID is the id of the request that ctx belongs to, empty outside of one.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// logged gives every request an id and logs it, at debug level: what fails is logged where it fails.
func logged(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		w.Header().Set(requestIDHeader, id)
		ctx := context.WithValue(r.Context(), requestIDKey{}, id)
		if !log.Enabled(ctx, slog.LevelDebug) {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		start := time.Now()
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r.WithContext(ctx))
		log.DebugContext(ctx, "request", "method", r.Method, "path", r.URL.Path, "status", seen.status,
			"duration", time.Since(start), "requestId", id)
	})
}

// statusWriter remembers the status of a reply.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader writes and remembers the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Serve serves h on l until ctx ends, then lets requests under way finish.
//
// Errors: one where serving fails, or where requests do not finish in time.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(draining)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return err
}
