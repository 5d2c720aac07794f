// Package server serves the GraphQL API, GraphiQL, webhooks and the health checks over HTTP.
//
// A GraphQL request passes through these steps:
//
//   - The request gets a request ID. If its handler panics, the server recovers (requestid.go).
//   - Telemetry observes the request (internal/telemetry).
//   - If authentication is off, the Host header is checked (httpheader.AllowedHosts).
//   - The CORS rules are applied.
//   - The Accept header determines the media type of the response (mediatype.go).
//   - The token is verified (authentication.go).
//   - A GET request is checked for cross-site request forgery (httpheader.PossibleCSRF).
//   - The body is read (request.go). Its length is charged to the caller's rate limit.
//   - The request acquires a slot of admission.PoolRequests, and its timeout begins (graphql.go).
//   - The request is decoded (parameters.go) and executed (graph.Executor).
//   - A long response is compressed (compression.go).
//
// Calls of MCP tools (mcp.go) and requests for the description of the table (table.go) pass through
// the same steps, except that they do not negotiate the media type. Subscriptions use WebSockets
// (websocket.go) or event streams (eventstream.go). Payment providers use webhooks (webhook.go),
// which have only some of these steps. Package internal/lifecycle accepts connections and stops the
// server. Package internal/admission gives each caller a share of connections, requests and other
// resources.
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

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/graphiql"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/lifecycle"
	"github.com/ordergraph/ordergraph/internal/provider"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/telemetry"
)

// Options are the options of a server.
type Options struct {
	// Graph contains the options of the GraphQL executor. New overwrites its fields Report, RequestID,
	// EventTime, Admission and Observer.
	Graph graph.Options
	// Auth verifies the tokens of requests. If Auth is nil, requests are not authenticated.
	Auth *auth.Authenticator
	// Anonymous reports whether requests without a token are accepted. These requests have the role
	// access.RoleAnonymous. Anonymous has an effect only if Auth is set.
	Anonymous bool
	// Origins are the origins of the pages that may call the API from a browser (CORS).
	Origins []string
	// Hosts are the host names of the server. If Auth is nil, requests are rejected unless their Host
	// header contains one of these names, localhost, or an IP address. Health checks are never
	// rejected.
	Hosts []string
	// Proxies are the proxies whose X-Forwarded-For header contains the clients' addresses.
	Proxies httpheader.Proxies
	// Webhooks are the webhooks of payment providers.
	Webhooks []*provider.Webhook
	// ConfirmPaid reports whether an order is confirmed when a webhook reports that it is paid.
	ConfirmPaid bool
	// NoGraphiQL disables GraphiQL.
	NoGraphiQL bool
	// NoMCP disables the tools for agents at PathMCP.
	NoMCP bool
	// Limits contains the maximum sizes and durations of a request or connection.
	Limits Limits
	// Admission contains the pools, which limit the capacity that each caller uses. If Admission is
	// nil, New creates pools of the default sizes.
	Admission *admission.Controller
	// Weights maps a role to a factor. For callers with this role, the share of each pool is
	// multiplied by the factor. For a role without an entry, the factor is 1.
	Weights map[access.Role]int
	// OnReadiness, if set, is called after each readiness check with its result.
	OnReadiness func(ready bool)
	// Shutdown contains the durations of the phases of a shutdown.
	Shutdown lifecycle.Shutdown
	// Log is the server's logger.
	Log *slog.Logger
	// Telemetry contains the receivers of metrics, traces and access log entries.
	Telemetry telemetry.Receivers
}

// Limits contains the maximum sizes and durations of a request or connection. If a field is zero,
// its default applies. setting.Limits describes the struct tags.
type Limits struct {
	Body                int           `env:"ORDERGRAPH_MAX_BODY" default:"131072" code:"BODY_TOO_LARGE (413)" meaning:"bytes of a request body"`
	SocketSubscriptions int           `env:"ORDERGRAPH_MAX_SOCKET_SUBSCRIPTIONS" default:"100" code:"TOO_MANY_SUBSCRIPTIONS" meaning:"concurrent operations on one WebSocket"`
	RequestTime         time.Duration `env:"ORDERGRAPH_REQUEST_TIMEOUT" default:"10s" code:"TIMED_OUT" meaning:"time to execute a request"`
	HeaderTime          time.Duration `env:"ORDERGRAPH_HEADER_TIMEOUT" default:"5s" exceeded:"connection closed" meaning:"time for request headers to arrive"`
	BodyTime            time.Duration `env:"ORDERGRAPH_BODY_TIMEOUT" default:"10s" code:"REQUEST_TIMEOUT (408)" meaning:"time for a request body to arrive"`
	AnswerTime          time.Duration `env:"ORDERGRAPH_ANSWER_TIMEOUT" default:"15s" exceeded:"connection closed" meaning:"time for a client to read a response"`
	InitTime            time.Duration `env:"ORDERGRAPH_INIT_TIMEOUT" default:"5s" exceeded:"socket closed (4408)" meaning:"time from opening a WebSocket to 'connection_init'; shorter while many sockets are open"`
	KeepAlive           time.Duration `env:"ORDERGRAPH_KEEP_ALIVE" default:"15s" exceeded:"silent WebSocket closed" meaning:"interval between pings on a WebSocket, or keep-alive comments in an event stream"`
}

// maxInitMessageBytes is the maximum size in bytes of a client's WebSocket messages until the
// server sends connection_ack.
const maxInitMessageBytes = 32 << 10

// Paths of the server.
const (
	PathGraphQL = "/graphql"
	PathTable   = "/table"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
	PathMCP     = "/mcp"
)

// ExplainHeader is the request header that makes the server add extensions.explain to the response.
// Its value must be true.
const ExplainHeader = "X-Ordergraph-Explain"

// New returns the handler of all paths. It returns an error if it cannot read the files of GraphiQL
// or cannot configure the compression.
func New(opts Options) (http.Handler, error) {
	pages := http.NotFoundHandler()
	if !opts.NoGraphiQL {
		var err error
		if pages, err = graphiql.Handler(); err != nil {
			return nil, err
		}
	}
	opts.Graph.Report = func(ctx context.Context, err error) {
		if isLogged(err) {
			opts.Log.ErrorContext(ctx, "query failed", "error", err, "requestId", requestID(ctx))
		}
	}
	opts.Graph.RequestID = requestID
	opts.Graph.Authenticated = opts.Graph.Authenticated || opts.Auth != nil
	limits := setting.OrDefaults(opts.Limits)
	opts.Graph.EventTime = limits.RequestTime
	if opts.Admission == nil {
		opts.Admission = admission.New(admission.Sizes{})
	}
	opts.Graph.Admission = opts.Admission
	observed := telemetry.NewObserver(opts.Telemetry)
	if observed != nil {
		opts.Graph.Observer = observed
	}
	compress, err := newCompressor()
	if err != nil {
		return nil, err
	}
	crossOrigin := cors.New(cors.Options{
		AllowedOrigins: opts.Origins,
		// If AllowedOrigins is empty, the library rs/cors would allow every origin.
		AllowOriginFunc: denyAllOrigins(opts.Origins),
		AllowedMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: slices.Concat([]string{"Accept", "Authorization", "Content-Type", requestIDHeader,
			"Apollographql-Client-Name", "Apollographql-Client-Version", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"}, preflightHeaders),
		ExposedHeaders: []string{requestIDHeader, "Retry-After"},
		MaxAge:         600,
	})
	queries := httpHandler{
		executor: graph.NewExecutor(opts.Graph), limits: limits, pools: opts.Admission, weights: opts.Weights, shedding: &sheddingLog{log: opts.Log, now: time.Now},
		authentication: authentication{opts.Auth, opts.Anonymous, opts.Log}, compress: compress,
	}
	pages = queries.withCharge(pages)
	webSockets := webSocketHandler{queries, crossOrigin.OriginAllowed, opts.Log, observed, append(initPayloadHeaders[:], observed.TraceHeaders()...)}
	withCORS := crossOrigin.Handler(queries)

	mux := http.NewServeMux()
	var serve http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isWebSocketUpgrade(r) {
			webSockets.ServeHTTP(w, r)
			return
		}
		withCORS.ServeHTTP(w, r)
	})
	described := crossOrigin.Handler(newTableHandler(queries))
	tools := crossOrigin.Handler(newMCPHandler(queries, crossOrigin.OriginAllowed, opts.Graph, opts.Log))
	if opts.Auth == nil {
		allowed := httpheader.NewAllowedHosts(opts.Hosts)
		for _, h := range []*http.Handler{&serve, &described, &tools, &pages} {
			*h = withAllowedHosts(allowed, *h)
		}
	}
	mux.Handle(PathGraphQL, withObservation(observed, serve))
	mux.Handle(PathTable, withObservation(observed, described))
	if !opts.NoMCP {
		mux.Handle(PathMCP, withObservation(observed, tools))
	}
	for _, w := range opts.Webhooks {
		mux.Handle("POST "+provider.PathPrefix+w.Name(), withObservation(observed, webhookHandler{queries, w, opts.Graph.Store, opts.ConfirmPaid, opts.Graph.Observer, opts.Log}))
	}
	mux.HandleFunc("GET "+PathHealth, func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+PathReady, readiness(opts.Graph.Store.Ping, opts.OnReadiness, time.Now, opts.Log))
	mux.Handle("/", pages)
	return withUnreadBody(withClientAddress(opts.Proxies, withRequestID(opts.Log, mux))), nil
}

// isLogged reports whether an error is logged. context.Canceled is not logged, because it means
// that the client has disconnected. attempt.ErrBreakerOpen is not logged, because the circuit
// breaker itself has logged that it is open.
func isLogged(err error) bool {
	return !errors.Is(err, context.Canceled) && !errors.Is(err, attempt.ErrBreakerOpen)
}

// withCharge is middleware for requests that need no authentication. It charges each request to the
// rate limit of the client's network address. Health checks do not use it, because a load balancer
// must not take a server out of service while other clients of its address exceed their limit.
func (h httpHandler) withCharge(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		anonymous := r.WithContext(graph.WithPrincipal(r.Context(), anonymousPrincipal(r.RemoteAddr)))
		if _, limited := h.charge(anonymous, 0); limited != nil {
			w.Header()["X-Content-Type-Options"] = nosniff
			w.Header()["Cache-Control"] = noStore
			h.writeRefusal(w, r, limited, typeJSON)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withClientAddress is middleware that sets the RemoteAddr of requests from trusted proxies to the
// client's address.
func withClientAddress(trusted httpheader.Proxies, next http.Handler) http.Handler {
	if len(trusted) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = trusted.ClientAddress(r.RemoteAddr, r.Header)
		next.ServeHTTP(w, r)
	})
}

// denyAllOrigins returns nil if origins are configured, because rs/cors then uses them. Otherwise,
// it returns a function that rejects all origins.
func denyAllOrigins(origins []string) func(string) bool {
	if len(origins) > 0 {
		return nil
	}
	return func(string) bool { return false }
}

// preflightHeaders are request headers that a page of another site cannot send without a CORS
// preflight. The slice must not be modified.
var preflightHeaders = append(httpheader.PreflightHeaders(), ExplainHeader)

// withAllowedHosts is middleware that responds with status 421 (Misdirected Request) if the Host
// header is not allowed.
func withAllowedHosts(allowed httpheader.AllowedHosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed.Allow(r.Host) {
			w.Header()["X-Content-Type-Options"] = nosniff
			w.Header()["Cache-Control"] = noStore
			refused := newRefusal(http.StatusMisdirectedRequest, errcode.HostNotAllowed, "the server has no authentication and does not accept this Host header: use localhost, an IP address, or a host name in ORDERGRAPH_ALLOWED_HOSTS")
			telemetry.RequestFromContext(r.Context()).Fail(refused.code, refused.pool)
			refused.write(w, typeJSON)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// readinessTTL is how long the server reuses the result of a readiness check, so that frequent
// probes do not read the table each time.
const readinessTTL = time.Second

// readiness returns the handler of the readiness check. The check fails if the server is shutting
// down, the table cannot be read, or the clocks of the server and DynamoDB differ by more than
// table.MaxClockDifference.
func readiness(ping func(context.Context) error, onCheck func(ready bool), now func() time.Time, log *slog.Logger) http.HandlerFunc {
	var mu sync.Mutex
	var checked time.Time
	var last error
	return func(w http.ResponseWriter, r *http.Request) {
		if lifecycle.ShuttingDown(r.Context()) {
			writeText(w, http.StatusServiceUnavailable, "shutting down")
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if now().Sub(checked) >= readinessTTL {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*time.Second)
			defer cancel()
			before := last
			if last, checked = ping(ctx), now(); onCheck != nil {
				onCheck(last == nil)
			}
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
			writeText(w, http.StatusOK, "ready")
		case errors.Is(last, attempt.ErrBreakerOpen):
			writeText(w, http.StatusServiceUnavailable, last.Error())
		case errors.As(last, &clock):
			writeText(w, http.StatusServiceUnavailable, "the server's clock is "+clock.DifferenceText()+" DynamoDB's")
		default:
			writeText(w, http.StatusServiceUnavailable, "the table cannot be read")
		}
	}
}

// Serve serves the handler h on the listener l until ctx ends. It returns the errors of
// lifecycle.Serve.
func Serve(ctx context.Context, l net.Listener, h http.Handler, opts Options) error {
	limits := setting.OrDefaults(opts.Limits)
	if opts.Admission == nil {
		opts.Admission = admission.New(admission.Sizes{})
	}
	return lifecycle.Serve(ctx, l, h, lifecycle.Options{
		Connections: opts.Admission[admission.PoolConnections], Authenticated: opts.Auth != nil, TrustedProxy: opts.Proxies.Trusts,
		HeaderTime: limits.HeaderTime, ReadTime: limits.HeaderTime + limits.BodyTime,
		WriteTime: limits.BodyTime + limits.RequestTime + limits.AnswerTime,
		Shutdown:  opts.Shutdown, Log: opts.Log,
	})
}
