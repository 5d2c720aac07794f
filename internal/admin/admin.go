// Package admin serves metrics, profiles, the configuration and health checks for operators. It
// uses a listener that is separate from the public listener. It imports only the standard library.
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
	"strings"
	"time"
)

// Paths of the admin listener. The health checks have the same paths as on the public listener.
const (
	PathMetrics = "/metrics"
	PathConfig  = "/config"
	PathProfile = "/debug/pprof/"
)

// Options contains the handlers of the admin listener.
type Options struct {
	// Metrics serves PathMetrics.
	Metrics http.Handler
	// Config writes the server's configuration, without secrets, as the response of PathConfig. If
	// Config is nil, the admin listener does not serve PathConfig.
	Config func(io.Writer) error
	// Health serves the paths in HealthPaths.
	Health      http.Handler
	HealthPaths []string
	// Log receives a message if Config fails.
	Log *slog.Logger
}

// NewHandler returns the handler of the admin listener. The listener does not authenticate requests, so
// clients must not be able to reach it.
func NewHandler(opts Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+PathMetrics, opts.Metrics)
	for _, path := range opts.HealthPaths {
		mux.Handle("GET "+path, opts.Health)
	}
	if opts.Config != nil {
		mux.HandleFunc("GET "+PathConfig, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			if err := opts.Config(w); err != nil {
				opts.Log.WarnContext(r.Context(), "the configuration cannot be sent", "error", err)
			}
		})
	}
	mux.HandleFunc(PathProfile, pprof.Index)
	mux.HandleFunc(PathProfile+"cmdline", pprof.Cmdline)
	mux.HandleFunc(PathProfile+"profile", pprof.Profile)
	mux.HandleFunc(PathProfile+"symbol", pprof.Symbol)
	mux.HandleFunc(PathProfile+"trace", pprof.Trace)
	return mux
}

// Time limits of the admin listener. Responses have no time limit, because a profile can take
// minutes.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = time.Second
	maxHeader     = 16 << 10
)

// Listener serves the handler of New.
type Listener struct {
	server   *http.Server
	listener net.Listener
	stopped  chan error
}

// Listen opens the address and serves h on it.
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

// onlyLocalHosts rejects requests with a Host header that is neither localhost nor an IP address.
// It protects a listener on a loopback address from DNS rebinding: without the check, a website
// could make a browser on this machine read the metrics and profiles.
func onlyLocalHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if host != "localhost" && net.ParseIP(host) == nil {
			http.Error(w, "the admin listener accepts only localhost and IP addresses in the Host header", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Addr returns the address of the admin listener.
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

// ParseAddr converts the text of a setting to an address host:port. If the text is only a port, the
// host is 127.0.0.1, so that the listener is not public by mistake.
func ParseAddr(text string) (string, bool) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = "127.0.0.1", text
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", false
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), true
}
