package drill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// sampleInterval is the interval between two samples, both in this test and in Prometheus.
const sampleInterval = time.Second

// sample contains metrics of one server, and the status of its readiness check.
type sample struct {
	at                       time.Time
	state, ready, rejections float64
	readyStatus              int
}

func (s sample) isOpen() bool {
	return s.state == float64(attempt.BreakerOpen) && s.ready == 0 && s.readyStatus == http.StatusServiceUnavailable
}

func (s sample) isClosed() bool {
	return s.state == float64(attempt.BreakerClosed) && s.ready == 1 && s.readyStatus == http.StatusOK
}

// monitor reads the metrics of both servers periodically.
type monitor struct {
	urls   [2]string
	client *http.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	samples [][2]sample
}

func newMonitor(t *testing.T, servers [2]*workload.Process) *monitor {
	m := &monitor{client: &http.Client{Timeout: timeLimit}, done: make(chan struct{})}
	m.changed = sync.NewCond(&m.mu)
	for i, s := range servers {
		m.urls[i] = s.MetricsURL
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	go m.run(ctx, t)
	t.Cleanup(func() { m.stop(); m.client.CloseIdleConnections() })
	return m
}

// stop stops the monitor.
func (m *monitor) stop() {
	m.cancel()
	<-m.done
}

func (m *monitor) run(ctx context.Context, t *testing.T) {
	defer close(m.done)
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		var both [2]sample
		for i, url := range m.urls {
			var err error
			if both[i], err = m.read(ctx, url); err != nil && ctx.Err() == nil {
				t.Errorf("read the metrics of server %d: %v", i, err)
			}
		}
		if ctx.Err() == nil {
			m.mu.Lock()
			m.samples = append(m.samples, both)
			m.changed.Broadcast()
			m.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// read takes a sample. It calls the readiness check before it reads the metrics, because a metric
// contains the result of the check.
func (m *monitor) read(ctx context.Context, url string) (sample, error) {
	ready, err := m.get(ctx, strings.TrimSuffix(url, "/metrics")+server.PathReady)
	if err != nil {
		return sample{}, err
	}
	ready.Body.Close()
	metrics, err := m.get(ctx, url)
	if err != nil {
		return sample{}, err
	}
	defer metrics.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics.Body)
	if err != nil {
		return sample{}, err
	}
	s := sample{at: time.Now(), readyStatus: ready.StatusCode}
	for name, to := range map[string]*float64{
		"ordergraph_dynamodb_breaker_state": &s.state, "ordergraph_ready": &s.ready, "ordergraph_dynamodb_breaker_rejections_total": &s.rejections,
	} {
		family := families[name]
		if family == nil || len(family.Metric) != 1 {
			return sample{}, fmt.Errorf("%s is %v, want one value", name, family)
		}
		*to = family.Metric[0].GetGauge().GetValue() + family.Metric[0].GetCounter().GetValue()
	}
	return s, nil
}

func (m *monitor) get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return m.client.Do(request)
}

// count returns the number of samples.
func (m *monitor) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.samples)
}

// phase is a phase of the drill.
type phase struct {
	name  string
	start time.Time
	// first is the index of the first sample.
	first int
}

// seconds formats the duration of the phase until now.
func (p phase) seconds() time.Duration { return time.Since(p.start).Round(time.Millisecond) }

// begin begins a phase. The phase contains only samples that are taken from now on.
func (m *monitor) begin(name string) phase {
	m.mu.Lock()
	defer m.mu.Unlock()
	return phase{name, time.Now(), len(m.samples) + 1} // a sample may be in progress
}

// expectClosed fails the test if a breaker was not closed in a sample of the phase.
func (m *monitor) expectClosed(t *testing.T, p phase) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, both := range m.samples[min(p.first, len(m.samples)):] {
		for i, s := range both {
			if s.state != float64(attempt.BreakerClosed) {
				t.Errorf("phase %s, after %s: the breaker of server %d has the state %v", p.name, s.at.Sub(p.start), i, s.state)
			}
		}
	}
}

// wait waits until a further sample fulfills the condition.
func (m *monitor) wait(ctx context.Context, t *testing.T, event string, condition func([2]sample) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, faultTime+timeLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed.Broadcast()
	})()
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := len(m.samples); ; n++ {
		for len(m.samples) <= n {
			if ctx.Err() != nil || t.Failed() {
				t.Fatalf("waited for %s: %v; last sample: %+v", event, ctx.Err(), m.samples[len(m.samples)-1])
			}
			m.changed.Wait()
		}
		if condition(m.samples[n]) {
			return
		}
	}
}

// checkTransitions verifies the state changes of a circuit breaker in the log of a server. The
// breaker must open only during the outage, and must stay closed after the recovery.
func checkTransitions(t *testing.T, number int, log string, outage, recovery time.Time) {
	t.Helper()
	var changes []string
	last := ""
	for line := range strings.Lines(log) {
		var entry struct {
			Time time.Time
			Msg  string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("server %d logs %q: %v", number, line, err)
		}
		for name, message := range map[string]string{"open": "the circuit breaker is open", "half-open": "the circuit breaker is half-open", "closed": "the circuit breaker is closed"} {
			if !strings.Contains(entry.Msg, message) {
				continue
			}
			last = name
			changes = append(changes, fmt.Sprintf("%s %.1f s", name, entry.Time.Sub(outage).Seconds()))
			if name == "closed" && entry.Time.Before(recovery) || entry.Time.Before(outage) {
				t.Errorf("server %d: the breaker is %s %s after the outage began", number, name, entry.Time.Sub(outage))
			}
		}
	}
	t.Logf("server %d, after the start of the outage: %s; DynamoDB works again after %.1f s", number, strings.Join(changes, ", "), recovery.Sub(outage).Seconds())
	if len(changes) < 3 || !strings.HasPrefix(changes[0], "open") || last != "closed" {
		t.Errorf("server %d: the changes of the breaker are %q, want open, half-open, ..., closed", number, changes)
	}
}
