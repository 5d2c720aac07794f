// Package admin serves metrics, profiles, the configuration and health checks for operators. It
// uses its own listener, which is separate from the public one. Within the module, it imports only
// internal/httpheader.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/ordergraph/ordergraph/internal/httpheader"
)

// Paths of the admin listener. Health checks have the same paths as on the public listener.
const (
	PathMetrics = "/metrics"
	PathConfig  = "/config"
	PathProfile = "/debug/pprof/"
)

// Options contains the handlers of the admin listener.
type Options struct {
	// Metrics serves PathMetrics.
	Metrics http.Handler
	// Config writes the response for PathConfig, which is the server's configuration without
	// secrets. If Config is nil, the admin listener does not serve PathConfig.
	Config func(io.Writer) error
	// Health serves all paths in HealthPaths.
	Health      http.Handler
	HealthPaths []string
	// Hosts are additional host names in the Host header of requests. See httpheader.AllowedHosts.
	Hosts []string
	// If Config fails, a message is written to Log.
	Log *slog.Logger
}

// NewHandler returns the handler of the admin listener. The handler does not authenticate requests,
// so clients must not be able to reach the listener.
func NewHandler(opts Options) http.Handler {
	mux, private := http.NewServeMux(), http.NewServeMux()
	mux.Handle("GET "+PathMetrics, opts.Metrics)
	for _, path := range opts.HealthPaths {
		mux.Handle("GET "+path, opts.Health)
	}
	if opts.Config != nil {
		private.HandleFunc("GET "+PathConfig, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			if err := opts.Config(w); err != nil {
				opts.Log.WarnContext(r.Context(), "the configuration cannot be sent", "error", err)
			}
		})
	}
	private.HandleFunc("GET "+PathProfile, pprof.Index)
	private.HandleFunc("GET "+PathProfile+"cmdline", pprof.Cmdline)
	private.HandleFunc("GET "+PathProfile+"profile", pprof.Profile)
	private.HandleFunc("GET "+PathProfile+"symbol", pprof.Symbol)
	private.HandleFunc("GET "+PathProfile+"trace", pprof.Trace)
	// The symbols of addresses are the only request with a body. It is sent by go tool pprof.
	private.HandleFunc("POST "+PathProfile+"symbol", pprof.Symbol)
	protected := protect(httpheader.NewAllowedHosts(opts.Hosts), private)
	mux.Handle(PathConfig, protected)
	mux.Handle(PathProfile, protected)
	return mux
}

// protect is middleware that rejects requests that a website could have caused: with DNS rebinding,
// it could read the configuration, and with a link to a profile, it could slow down the server.
func protect(allowed httpheader.AllowedHosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !allowed.Allow(r.Host):
			refuse(w, "the Host header is not allowed: use localhost, an IP address, or a host name in ORDERGRAPH_ALLOWED_HOSTS")
		case httpheader.PossibleCSRF(r.Header, httpheader.PreflightHeaders()):
			refuse(w, "a page of another site could have sent the request: enter the address in the browser with the host localhost, or use another program than a browser")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse responds with status 403 and closes the connection, so that the response does not wait for
// the rest of a body.
func refuse(w http.ResponseWriter, message string) {
	w.Header().Set("Connection", "close")
	http.Error(w, message, http.StatusForbidden)
}

// Limits of the admin listener. There is no time limit for responses, because a profile can take
// minutes.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = time.Second
	maxHeader     = 16 << 10
)

// Listener is the running admin listener.
type Listener struct {
	server   *http.Server
	listener net.Listener
	stopped  chan error
}

// Listen listens on the TCP address addr and serves h in the background. The HTTP server writes its
// errors to log at the debug level.
func Listen(addr string, h http.Handler, log *slog.Logger) (*Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the admin listener cannot listen on %s: choose another address: %w", addr, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		h = onlyLocalHosts(h)
	}
	a := &Listener{
		listener: l, stopped: make(chan error, 1),
		server: &http.Server{
			Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	go func() { a.stopped <- a.server.Serve(l) }()
	return a, nil
}

// onlyLocalHosts is middleware that rejects requests with a Host header that is neither localhost
// nor an IP address, so that websites cannot read the metrics with DNS rebinding.
func onlyLocalHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !(httpheader.AllowedHosts{}).Allow(r.Host) {
			refuse(w, "the Host header is not allowed: on a loopback address, the admin listener accepts only localhost and IP addresses")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Addr returns the network address of the admin listener.
func (a *Listener) Addr() net.Addr { return a.listener.Addr() }

// Close stops the admin listener. Requests in progress have one second to finish.
func (a *Listener) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		_ = a.server.Close() // ends profiles in progress
	}
	if err := <-a.stopped; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the admin listener has failed: %w", err)
	}
	return nil
}

// ParseAddr converts the text of a setting to an address of the form host:port. If the port is
// invalid, ParseAddr returns false.
func ParseAddr(text string) (string, bool) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		// Without a host, the listener must not be public by mistake.
		host, port = "127.0.0.1", text
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", false
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), true
}
