package cli

import (
	"context"
	"io"
	"net"
	"net/http"

	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/internal/admin"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/version"
)

// metrics records the metrics of a server. If the server has no admin listener, its *metrics is
// nil. The methods observer, observeServer and listen accept a nil *metrics and then do nothing.
type metrics struct{ *telemetry.Telemetry }

// newMetrics returns the metrics of a server. If no admin listener is configured, it returns nil.
func newMetrics(cfg config.Config) *metrics {
	if cfg.AdminAddr == "" {
		return nil
	}
	built := version.Get()
	return &metrics{telemetry.New(telemetry.Options{Codes: append(errcode.All(), document.AllLimitCodes()...), Version: built.Version, Commit: built.Commit})}
}

// observer returns the observer that measures requests to DynamoDB. If m is nil, the observer is
// nil.
func (m *metrics) observer() trace.Observer {
	if m == nil {
		return nil
	}
	return m
}

// ObserveOperation counts an operation and its errors.
func (m *metrics) ObserveOperation(ctx context.Context, o observe.Operation) {
	m.Telemetry.ObserveOperation(ctx, o.Name, o.Type, o.Code(), o.Duration)
	for _, code := range o.Codes {
		m.ObserveError(code)
	}
}

// observeServer changes the options of a server so that the server records metrics in m.
func (m *metrics) observeServer(opts *server.Options) {
	if m == nil {
		return
	}
	for _, d := range opts.Graph.Documents {
		for _, name := range d.OperationNames() {
			m.TrustOperation(name)
		}
	}
	opts.Graph.ObserveBatch, opts.OnReadiness = m.ObserveBatch, m.SetReady
	m.SetReady(true) // openForServing has already checked the store
	m.Watch(telemetry.Sources{Store: opts.Graph.Store, Feed: opts.Graph.Feed, Pools: opts.Admission})
}

// listen starts the admin listener and returns its address. The admin listener passes health checks
// to handler. The function stop stops the listener.
func (m *metrics) listen(cfg config.Config, handler http.Handler, opts server.Options) (listening net.Addr, stop func(), err error) {
	if m == nil {
		return nil, func() {}, nil
	}
	pages := admin.NewHandler(admin.Options{Metrics: m.Handler(), Health: handler, HealthPaths: []string{server.PathHealth, server.PathReady}, Hosts: cfg.Hosts, Log: opts.Log,
		Config: func(w io.Writer) error { return config.WriteEffective(w, cfg) }})
	l, err := admin.Listen(cfg.AdminAddr, pages, opts.Log)
	if err != nil {
		return nil, nil, err
	}
	return l.Addr(), func() {
		if err := l.Close(); err != nil {
			opts.Log.Error("the admin listener failed", "error", err)
		}
	}, nil
}
