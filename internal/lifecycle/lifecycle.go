// Package lifecycle runs an HTTP server from its start to its end. It limits the number of open
// connections. When the server shuts down, the package lets requests in progress complete.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// Options configure Serve.
type Options struct {
	// Connections is the pool that limits the number of open connections. Authenticated is true if the
	// server authenticates requests. If Authenticated is false, each network address has its own share
	// of the connections.
	Connections   *admission.Pool
	Authenticated bool
	// TrustedProxy, if set, reports whether a connection's address belongs to a trusted proxy. The
	// requests on its connections come from many clients, so the limit for callers without a token does
	// not apply until a handler calls SetCaller.
	TrustedProxy func(remote string) bool
	// HeaderTime limits the time to read the headers of a request. ReadTime limits the time to read
	// the complete request. WriteTime limits the time from the end of the headers to the end of the
	// response. A handler can set other deadlines.
	HeaderTime, ReadTime, WriteTime time.Duration
	Shutdown                        Shutdown
	// Log is the server's logger.
	Log *slog.Logger
}

// Shutdown sets how long each phase of a shutdown may take.
type Shutdown struct {
	// Delay is how long the server continues to serve all requests after the shutdown has begun.
	// During this time, the readiness check fails, so that the load balancer sends requests to other
	// servers.
	Delay time.Duration
	// DrainTime is how long, after Delay, the server waits for requests in progress to complete. 0
	// means DefaultDrainTime.
	DrainTime time.Duration
}

// DefaultDrainTime is the default value of Shutdown.DrainTime.
const DefaultDrainTime = 15 * time.Second

const (
	maxHeader   = 32 << 10
	idleTimeout = 2 * time.Minute
)

// Serve accepts connections from l and serves h until ctx ends. Then the server shuts down as
// described in Shutdown. If connections are still in use after DrainTime, or l fails, Serve returns
// an error.
func Serve(ctx context.Context, l net.Listener, h http.Handler, opts Options) error {
	if opts.Shutdown.DrainTime == 0 {
		opts.Shutdown.DrainTime = DefaultDrainTime
	}
	open := newConnectionTracker(opts.Connections, opts.Authenticated, opts.TrustedProxy)
	base := context.WithoutCancel(ctx)
	stopping, stop := context.WithCancel(base)
	defer stop()
	srv := &http.Server{
		Handler: open.trackRequests(h),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionContextKey{}, conn)
		},
		BaseContext:       func(net.Listener) context.Context { return withPhases(base, phases{ctx, stopping}) },
		ReadHeaderTimeout: opts.HeaderTime,
		ReadTimeout:       opts.ReadTime,
		WriteTimeout:      opts.WriteTime,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// By default, net/http responds to the request OPTIONS * itself. Here, the handler responds to
		// it, so that the response contains a request ID.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
	// srv.Shutdown closes the listener before it calls stop. Then stop ends WebSockets and event
	// streams. Because the listener is closed, their clients reconnect to other servers.
	srv.RegisterOnShutdown(stop)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener{l, open}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	if opts.Shutdown.Delay > 0 {
		opts.Log.InfoContext(base, "the server is shutting down: it stops accepting connections after ORDERGRAPH_SHUTDOWN_DELAY", "delay", opts.Shutdown.Delay.String())
	}
	delay := time.NewTimer(opts.Shutdown.Delay)
	defer delay.Stop()
	select {
	case err := <-failed:
		return err
	case <-delay.C:
	}
	draining, cancel := context.WithTimeout(base, opts.Shutdown.DrainTime)
	defer cancel()
	err := srv.Shutdown(draining)
	if err == nil {
		err = open.wait(draining) // srv.Shutdown does not wait for WebSockets
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	if err != nil {
		open.closeAll()
		return fmt.Errorf("some connections were still in use %s after the server stopped accepting connections, so the server closed them: %w", opts.Shutdown.DrainTime, err)
	}
	return nil
}
