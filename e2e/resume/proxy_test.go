package resume_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/server"
)

// pollInterval is the interval between two readiness checks of one server by a balancer.
const pollInterval = 20 * time.Millisecond

// balancer is a load balancer for two servers. It sends each request to a server that is ready. If
// this server refuses the connection, it sends the request to the other server. It repeats no other
// failed request.
type balancer struct {
	// URL is the URL of the GraphQL endpoint.
	URL       string
	transport *http.Transport

	mu      sync.Mutex
	changed *sync.Cond
	// servers contains the base URLs of the servers. ready contains the results of their last
	// readiness checks.
	servers [2]*url.URL
	ready   [2]bool
	next    int
	// refused is the number of refused connections. failures contains the errors of all other failed
	// requests.
	refused  int
	failures []error
}

// newBalancer starts a balancer that stops when the test ends.
func newBalancer(t *testing.T) *balancer {
	b := &balancer{transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.changed = sync.NewCond(&b.mu)
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {},
		Transport: b,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // the client has not disconnected
				b.mu.Lock()
				b.failures = append(b.failures, err)
				b.mu.Unlock()
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	s := httptest.NewServer(proxy)
	ctx, stop := context.WithCancel(context.Background())
	var polls sync.WaitGroup
	for i := range b.servers {
		polls.Go(func() { b.poll(ctx, i) })
	}
	t.Cleanup(func() {
		stop()
		polls.Wait()
		s.CloseClientConnections()
		s.Close()
		b.transport.CloseIdleConnections()
	})
	b.URL = s.URL + server.PathGraphQL
	return b
}

// set sets the URL of server i. graphQL is the URL of its GraphQL endpoint.
func (b *balancer) set(t *testing.T, i int, graphQL string) {
	t.Helper()
	base, err := url.Parse(strings.TrimSuffix(graphQL, server.PathGraphQL))
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers[i] = base
}

// waitReady waits until server i is ready or ctx ends.
func (b *balancer) waitReady(ctx context.Context, i int) error {
	defer context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.ready[i] && ctx.Err() == nil {
		b.changed.Wait()
	}
	return ctx.Err()
}

// poll checks the readiness of server i periodically until ctx ends.
func (b *balancer) poll(ctx context.Context, i int) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		b.mu.Lock()
		base := b.servers[i]
		b.mu.Unlock()
		if base == nil {
			continue
		}
		ready := false
		if response, err := client.Get(base.String() + server.PathReady); err == nil {
			ready = response.StatusCode == http.StatusOK
			response.Body.Close()
		}
		b.mu.Lock()
		if b.servers[i] == base {
			b.ready[i] = ready
			b.changed.Broadcast()
		}
		b.mu.Unlock()
	}
}

// errNoServer means that no server is ready.
var errNoServer = errors.New("no server is ready")

// choose returns a ready server other than the given server.
func (b *balancer) choose(other *url.URL) (*url.URL, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.servers {
		b.next = (b.next + 1) % len(b.servers)
		if b.ready[b.next] && b.servers[b.next] != other {
			return b.servers[b.next], nil
		}
	}
	return nil, errNoServer
}

// RoundTrip sends a request to a ready server.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	var refusing *url.URL
	for {
		base, err := b.choose(refusing)
		if err != nil {
			return nil, err
		}
		sent := r.Clone(r.Context())
		sent.URL.Scheme, sent.URL.Host, sent.Host = base.Scheme, base.Host, base.Host
		if r.Body != nil {
			sent.Body, sent.GetBody = io.NopCloser(bytes.NewReader(body)), nil
		}
		response, err := b.transport.RoundTrip(sent)
		if err == nil || refusing != nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return response, err
		}
		refusing = base
		b.mu.Lock()
		b.refused++
		b.mu.Unlock()
	}
}
