// Package drill_test makes DynamoDB fail under load. Two servers use one table of DynamoDB Local
// through a proxy that injects faults. Clients verify each response, the test reads the metrics of
// both servers, and Prometheus evaluates the alerts of deploy/prometheus.
package drill_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

const (
	// timeLimit is the maximum time of one step. The limit detects a step that hangs.
	timeLimit = time.Minute
	// seed determines the order of the faults.
	seed = 19
)

// The sizes of the phases: the time with faults, and the requests that each open breaker rejects.
const (
	faultTime  = 2 * time.Minute
	rejections = 1000
)

// throttled is the percentage of DynamoDB requests that are throttled.
const throttled = 5

// transientFaults injects faults into some requests: throttling, server errors, and delays of 200
// ms. For some transactions, the response is lost after the commit.
func transientFaults() faults.Chooser {
	return faults.ExactShares(seed,
		faults.Counts{faults.ThroughputExceeded: throttled, faults.InternalServerError: 1, faults.Delayed: 5, faults.ConnectionReset: 2},
		faults.Counts{faults.ThroughputExceeded: throttled, faults.InternalServerError: 1, faults.Delayed: 5})
}

// proxy is the endpoint of the servers.
type proxy struct {
	client *faults.Client

	mu     sync.Mutex
	choose faults.Chooser
	// received counts the requests.
	received int64
}

// newProxy starts a proxy without faults. It returns the proxy and its URL.
func newProxy(t *testing.T, endpoint string) (*proxy, string) {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	p.client = faults.NewProxy(target, func(r faults.Request) faults.Kind {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.received++
		if p.choose == nil {
			return faults.None
		}
		return p.choose(r)
	})
	s := httptest.NewServer(p.client)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return p, s.URL
}

// set sets the faults of the following requests. It returns the number of requests that the proxy
// has received so far.
func (p *proxy) set(choose faults.Chooser) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choose = choose
	return p.received
}

func (p *proxy) requests() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received
}

// Two servers survive a drill:
//
//   - While DynamoDB works, no alert fires.
//   - While DynamoDB throttles, fails or delays some requests, all requests of clients succeed after
//     retries, or fail with an error that allows a retry. The circuit breakers stay closed.
//   - While all DynamoDB requests fail, the circuit breakers open: the servers are not ready and
//     reject operations.
//   - When DynamoDB works again, the servers recover without help.
//
// In all phases, each response is correct, and each acknowledged order exists once.
func TestDrill(t *testing.T) {
	longtest.Skip(t)
	read := newTargets(t)
	p := startPrometheus(t, read)
	instance := dynamolocal.Shared(t)
	binary := workload.BuildServer(t, "../..")
	db, table := instance.Client(), "drill"
	store := storetest.NewTable(t, db, dynamo.Options{Table: table})
	storetest.LoadDataset(t, store, workload.Fixture{Customers: buyers, Products: buyers, Warehouses: 1, Stock: 1_000_000_000}.Dataset(t))
	between, endpoint := newProxy(t, instance.Endpoint())
	environment := append(workload.ServerEnvironment(t, table, endpoint), "ORDERGRAPH_ADMIN_ADDR=127.0.0.1:0")
	var servers [2]*workload.Process
	defer func() {
		for _, s := range servers {
			if s != nil {
				s.Kill(t)
			}
		}
	}()
	for i := range servers {
		servers[i] = workload.StartServer(t, binary, environment)
	}
	read.set(t, servers)
	ctx, stop := context.WithTimeout(t.Context(), faultTime+5*timeLimit)
	defer stop()
	m := newMonitor(t, servers)
	defer m.stop()

	l := newLoad(t, servers)
	defer func() { stop(); l.stop() }()
	l.start(ctx, t)

	healthy := m.begin("healthy")
	l.waitSucceeded(ctx, t, 10)
	p.expect(ctx, t, healthy, nil)
	m.expectClosed(t, healthy)

	before, faulty := between.set(transientFaults()), m.begin("faults")
	m.wait(ctx, t, "the requests with faults", func([2]sample) bool {
		return time.Since(faulty.start) >= faultTime && between.client.LostCommits() > 0
	})
	// Reads have 3 attempts, so about one of 1,000 operations fails. This is the limit of the ticket.
	p.expect(ctx, t, faulty, []string{"OrdergraphThrottled/ticket"}, "OrdergraphErrorBudgetBurn/ticket")
	during := between.set(nil) - before
	m.expectClosed(t, faulty)
	injected := between.client.Counts()
	l.expectFewFailures(t)
	t.Logf("%s with faults: %d DynamoDB requests, faults %v, %d commits without a response", faulty.seconds(), during, injected, between.client.LostCommits())

	// At first, DynamoDB commits orders, but their responses are lost. Later, no DynamoDB request
	// succeeds.
	outage, lost := m.begin("outage"), between.client.LostCommits()
	silent := faults.Rates{faults.ConnectionReset: 1}
	between.set(faults.Random(seed, silent, nil))
	m.wait(ctx, t, "orders without a response", func([2]sample) bool { return between.client.LostCommits() >= lost+buyers })
	between.set(faults.Random(seed, silent, faults.Rates{faults.InternalServerError: 1}))
	var open [2]sample
	m.wait(ctx, t, "both breakers to open", func(now [2]sample) bool {
		open = now
		return now[0].isOpen() && now[1].isOpen()
	})
	opened, sent := time.Since(outage.start), between.requests()
	var now [2]sample
	m.wait(ctx, t, "rejections", func(s [2]sample) bool {
		now = s
		return s[0].rejections-open[0].rejections >= rejections && s[1].rejections-open[1].rejections >= rejections
	})
	sent = between.requests() - sent
	rejected := now[0].rejections + now[1].rejections - open[0].rejections - open[1].rejections
	t.Logf("outage: %d commits without a response; both breakers were open after %s, then rejected %.0f requests and sent %d",
		between.client.LostCommits()-lost, opened.Round(time.Millisecond), rejected, sent)
	if float64(sent) > rejected/2 {
		t.Errorf("the open breakers sent %d requests and rejected only %.0f", sent, rejected)
	}
	p.expect(ctx, t, outage, []string{"OrdergraphBreakerOpen/page", "OrdergraphNotReady/page", "OrdergraphErrorBudgetBurn/page", "OrdergraphErrorBudgetBurn/ticket"})

	between.set(nil)
	recovery := m.begin("recovery")
	l.waitSucceeded(ctx, t, 1)
	served := time.Since(recovery.start)
	m.wait(ctx, t, "both breakers to close", func(s [2]sample) bool { return s[0].isClosed() && s[1].isClosed() })
	t.Logf("recovery: each client had a response after %s, both servers were ready with closed breakers after %s",
		served.Round(time.Millisecond), recovery.seconds())

	recovered := m.begin("recovered")
	l.waitSucceeded(ctx, t, 10)
	p.expect(ctx, t, recovered, nil)
	m.expectClosed(t, recovered)
	l.stop()
	m.stop()
	t.Logf("%d samples of each server; %d orders, %d of %d requests failed", m.count(), len(l.orders), l.failed.Load(), l.sent.Load())

	for i, s := range servers {
		servers[i] = nil
		log, err := s.Terminate(t)
		if err != nil {
			t.Errorf("server %d ended with %v: %s", i, err, log)
		}
		checkTransitions(t, i, log, outage.start, recovery.start)
	}
	l.checkOrders(t, storetest.AssertConsistent(t, db, table, 1))
	p.report(t)
}
