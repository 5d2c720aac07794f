// Package lifecycle serves HTTP connections from the start of a server to its end. It limits the
// number of open connections. When the server stops, it lets requests in progress complete.
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
	// Connections is the pool of connections that callers share. Authenticated reports whether the
	// server authenticates requests. If it is false, the owner of a connection is the client's network
	// address.
	Connections   *admission.Pool
	Authenticated bool
	// HeaderTime is the maximum time to read the headers of a request. ReadTime is the maximum time to
	// read the whole request. WriteTime is the maximum time to write the response. A handler can set
	// an earlier write deadline for its response.
	HeaderTime, ReadTime, WriteTime time.Duration
	Shutdown                        Shutdown
	// Log is the server's logger.
	Log *slog.Logger
}

// Shutdown sets how long each phase of a shutdown may take.
type Shutdown struct {
	// Delay is how long the server continues to serve all requests after the shutdown has begun.
	// Meanwhile, the readiness check fails, so that the load balancer stops sending requests.
	Delay time.Duration
	// DrainTime is the maximum time that the server waits, after Delay, for requests in progress. 0
	// means DefaultDrainTime.
	DrainTime time.Duration
}

// DefaultDrainTime is the default of Shutdown.DrainTime.
const DefaultDrainTime = 15 * time.Second

const (
	maxHeader   = 32 << 10
	idleTimeout = 2 * time.Minute
)

// Serve serves h on l until ctx ends. Then it shuts down in two phases:
//
//  1. During Shutdown.Delay, it serves all requests, but closes each connection after its response.
//     ShuttingDown returns true, so that the readiness check fails.
//  2. It accepts no more connections, and ends the context that Stopping returns. It waits for
//     requests in progress, WebSockets and event streams.
//
// Serve returns an error if serving fails. If connections are still in use after
// Shutdown.DrainTime, Serve closes them and returns an error.
func Serve(ctx context.Context, l net.Listener, h http.Handler, opts Options) error {
	if opts.Shutdown.DrainTime == 0 {
		opts.Shutdown.DrainTime = DefaultDrainTime
	}
	open := newConnectionTracker(opts.Connections, opts.Authenticated)
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
		// The handler responds to OPTIONS * in place of net/http, so that the response contains a request
		// ID.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
	// Shutdown first closes the listener. Then it calls stop, which ends WebSockets and event streams.
	// Their clients therefore reconnect to other servers.
	srv.RegisterOnShutdown(stop)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener{l, open}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	if opts.Shutdown.Delay > 0 {
		opts.Log.InfoContext(base, "the server stops accepting connections after ORDERGRAPH_SHUTDOWN_DELAY", "delay", opts.Shutdown.Delay.String())
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
		err = open.wait(draining) // Shutdown does not wait for WebSockets
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	if err != nil {
		open.closeAll()
		return fmt.Errorf("the server closed connections that were still in use %s after it had stopped accepting connections: %w", opts.Shutdown.DrainTime, err)
	}
	return nil
}
