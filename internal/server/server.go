// Package server serves the GraphQL face, GraphiQL and the health checks over HTTP.
//
// A GraphQL request passes, from outside: an id, for the log, and an end for panics (requestid.go);
// without authentication, the check of its Host header (hosts.go); CORS; the choice of the answer's
// type (mediatype.go); who makes it (authentication.go); the rule against forged GETs (forgery.go);
// reading (request.go, parameters.go); the points of its bytes (graph.Executor.Charge); its part of
// the requests in progress, and a limit of time (graphql.go). Long answers are compressed
// (compression.go). Subscriptions come over sockets (websocket.go) or as streams of events
// (eventstream.go). Connections are admitted in connections.go. What callers share, and each
// caller's share of it, is in internal/admission.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rs/cors"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/graphiql"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Options are what a server needs.
type Options struct {
	// Graph are the options of the GraphQL face; its Report is the server's own.
	Graph graph.Options
	// Auth checks the tokens that requests come with; nil where nobody is asked who they are.
	Auth *auth.Authenticator
	// Anonymous accepts requests without a token where Auth is set. They have
	// commerce.RoleAnonymous.
	Anonymous bool
	// Origins are the origins whose pages may call the API from a browser.
	Origins []string
	// Hosts are the names by which clients may call the server, beside localhost and IP addresses.
	// They are checked where Auth is nil, on everything but the health checks.
	Hosts []string
	// Limits bound what one request or connection can take.
	Limits Limits
	// Admission has the pools that callers share; nil for pools of the default sizes.
	Admission *admission.Controller
	// Weights multiply the shares of callers of a role; 1 for a role that is not in it.
	Weights map[commerce.Role]int
	// Log is where the server logs.
	Log *slog.Logger
}

// Limits bound what one request or connection can take. A zero value stands for its default;
// setting.Limits describes the tags.
type Limits struct {
	Body                int           `env:"ORDERGRAPH_MAX_BODY" default:"131072" code:"BODY_TOO_LARGE (413)" meaning:"bytes of a request body"`
	SocketSubscriptions int           `env:"ORDERGRAPH_MAX_SOCKET_SUBSCRIPTIONS" default:"100" code:"TOO_MANY_SUBSCRIPTIONS" meaning:"operations in progress on one WebSocket"`
	RequestTime         time.Duration `env:"ORDERGRAPH_REQUEST_TIMEOUT" default:"10s" code:"TIMED_OUT" meaning:"time after a request has arrived"`
	HeaderTime          time.Duration `env:"ORDERGRAPH_HEADER_TIMEOUT" default:"5s" exceeded:"connection closed" meaning:"time for request headers to arrive"`
	BodyTime            time.Duration `env:"ORDERGRAPH_BODY_TIMEOUT" default:"10s" code:"REQUEST_TIMEOUT (408)" meaning:"time for a request body to arrive"`
	AnswerTime          time.Duration `env:"ORDERGRAPH_ANSWER_TIMEOUT" default:"15s" exceeded:"connection closed" meaning:"time for a client to read a response"`
	InitTime            time.Duration `env:"ORDERGRAPH_INIT_TIMEOUT" default:"5s" exceeded:"socket closed (4408)" meaning:"time from opening a WebSocket to 'connection_init'"`
	KeepAlive           time.Duration `env:"ORDERGRAPH_KEEP_ALIVE" default:"15s" exceeded:"silent WebSocket closed" meaning:"interval of WebSocket pings and event stream comments"`
}

const (
	maxHeader   = 32 << 10
	idleTimeout = 2 * time.Minute
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

// New returns the handler of everything that is served.
//
// Errors: one where the built-in pages cannot be read, or answers cannot be compressed.
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
	opts.Graph.RequestID = requestID
	opts.Graph.Authenticated = opts.Graph.Authenticated || opts.Auth != nil
	limits := setting.OrDefaults(opts.Limits)
	opts.Graph.EventTime = limits.RequestTime
	if opts.Admission == nil {
		opts.Admission = admission.New(admission.Sizes{})
	}
	opts.Graph.Admission = opts.Admission
	compress, err := compression()
	if err != nil {
		return nil, err
	}
	crossOrigin := cors.New(cors.Options{
		AllowedOrigins: opts.Origins,
		// Without origins rs/cors would allow all of them.
		AllowOriginFunc: allowNone(opts.Origins),
		AllowedMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: slices.Concat([]string{"Accept", "Authorization", "Content-Type", requestIDHeader,
			"Apollographql-Client-Name", "Apollographql-Client-Version"}, provingHeaders[:]),
		ExposedHeaders: []string{requestIDHeader, "Retry-After"},
		MaxAge:         600,
	})
	overHTTP := overHTTP{
		executor: graph.NewExecutor(opts.Graph), limits: limits, pools: opts.Admission, weights: opts.Weights, shedding: &shedding{log: opts.Log, now: time.Now},
		authentication: authentication{opts.Auth, opts.Anonymous, opts.Log}, compress: compress,
	}
	overWebSocket := overWebSocket{overHTTP, crossOrigin.OriginAllowed, opts.Log}
	answered := crossOrigin.Handler(overHTTP)

	mux := http.NewServeMux()
	var serve http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if upgrades(r) {
			overWebSocket.ServeHTTP(w, r)
			return
		}
		answered.ServeHTTP(w, r)
	})
	if opts.Auth == nil {
		allowed := newHosts(opts.Hosts)
		serve, pages = allowed.checked(serve), allowed.checked(pages)
	}
	mux.Handle(PathGraphQL, serve)
	mux.HandleFunc("GET "+PathHealth, func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+PathReady, readiness(opts.Graph.Store.Ping, time.Now, opts.Log))
	mux.Handle("/", pages)
	return identified(opts.Log, mux), nil
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

// readyFor is how long an answer about readiness holds, so that checks cannot load the table.
const readyFor = time.Second

// readiness reports whether the table can be read, and whether the clock is right, without which
// nothing is written.
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
		clock := (*table.ClockError)(nil)
		switch {
		case last == nil:
			plain(w, http.StatusOK, "ready")
		case errors.As(last, &clock):
			plain(w, http.StatusServiceUnavailable, "the server's clock is "+clock.Difference()+" DynamoDB's")
		default:
			plain(w, http.StatusServiceUnavailable, "the table cannot be read")
		}
	}
}

// Serve serves h on l until ctx ends, then lets requests under way finish, and closes sockets and
// streams of events.
//
// Errors: one where serving fails, or where requests or sockets do not finish in time.
func Serve(ctx context.Context, l net.Listener, h http.Handler, opts Options) error {
	limits := setting.OrDefaults(opts.Limits)
	if opts.Admission == nil {
		opts.Admission = admission.New(admission.Sizes{})
	}
	open := newConnections(opts.Admission[admission.Connections], opts.Auth != nil)
	srv := &http.Server{
		Handler: open.served(h),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, conn)
		},
		BaseContext:       func(net.Listener) context.Context { return withStopping(context.WithoutCancel(ctx), ctx) },
		ReadHeaderTimeout: limits.HeaderTime,
		ReadTimeout:       limits.HeaderTime + limits.BodyTime,
		// For what has no closer deadline of its own.
		WriteTimeout:   limits.BodyTime + limits.RequestTime + limits.AnswerTime,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader,
		// OPTIONS * has an answer like all others, with the request's id.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener{l, open}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(draining)
	if err == nil {
		err = open.wait(draining) // net/http does not know of sockets
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return err
}
