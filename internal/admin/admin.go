// Package admin serves metrics, profiles, the configuration and health checks for operators, on a
// listener of its own. It imports only the standard library.
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

// Paths of the listener. The paths of the health checks are the same as on the public listener.
const (
	PathMetrics = "/metrics"
	PathConfig  = "/config"
	PathProfile = "/debug/pprof/"
)

// Options are the pages of the listener.
type Options struct {
	// Metrics serves PathMetrics.
	Metrics http.Handler
	// Config writes the text of PathConfig. It must not write secrets. If it is nil, the path does not
	// exist.
	Config func(io.Writer) error
	// Health serves the paths in HealthPaths.
	Health      http.Handler
	HealthPaths []string
	// Log receives a message if the configuration cannot be written.
	Log *slog.Logger
}

// New returns the handler of the listener. The listener has no authentication, so it must not be
// reachable for clients.
func New(opts Options) http.Handler {
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

// Time limits of the listener. A profile can take minutes, so responses have no time limit.
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

// Listen starts to serve h on an address.
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
// It protects a listener on a loopback address from DNS rebinding: a website could otherwise make a
// browser on this machine read the pages.
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

// Addr returns the address of the listener.
func (a *Listener) Addr() net.Addr { return a.listener.Addr() }

// Close stops the listener. Requests in progress have a second to finish.
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

// ParseAddr returns the address host:port of a setting. A port alone means 127.0.0.1, so that the
// listener is not public by mistake.
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
