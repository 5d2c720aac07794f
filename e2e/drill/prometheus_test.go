package drill_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// alertRules are the rules for operators.
const alertRules = "../../deploy/prometheus/alerts.yml"

// undetermined contains alerts that depend on the speed of this machine, so the test neither
// requires nor forbids them. Their causes are slow requests, retries during the outage, and
// concurrent orders of one customer after lost responses.
var undetermined = []string{"OrdergraphDynamoDBSlow/ticket", "OrdergraphRetryBudgetExhausted/ticket", "OrdergraphConflicts/ticket"}

// alert is an alert rule of deploy/prometheus. The duration of the rule is omitted, because it is
// longer than the drill. The name contains the severity.
type alert struct{ name, expression string }

// prometheusServer is a running Prometheus that reads the metrics of both servers. It is nil if
// Prometheus is not installed.
type prometheusServer struct {
	base   string
	alerts []alert
	// fired describes the alerts of each phase.
	fired []string
}

// prometheusPath returns the path of Prometheus, or "" if it is not installed.
func prometheusPath(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path
	}
	tools := os.Getenv("ORDERGRAPH_TEST_LINTERS")
	if tools == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		tools = filepath.Join(cache, "ordergraph", "linters")
	}
	if path, err := exec.LookPath(filepath.Join(tools, "prometheus")); err == nil {
		return path
	}
	return ""
}

// targets forwards Prometheus's requests for metrics to the servers. Its addresses are known before
// the servers start, so that Prometheus can start first. Prometheus begins to read metrics only
// seconds after its start.
type targets struct {
	addresses [2]string
	urls      [2]atomic.Pointer[url.URL]
}

func newTargets(t *testing.T) *targets {
	a := &targets{}
	for i := range a.urls {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			metrics := a.urls[i].Load()
			if metrics == nil {
				http.Error(w, "the server has not started", http.StatusServiceUnavailable)
				return
			}
			forward := httputil.ReverseProxy{
				Rewrite: func(forwarded *httputil.ProxyRequest) { forwarded.Out.URL = metrics },
				// At the end of the test, the servers stop before Prometheus does.
				ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
			}
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		a.addresses[i] = s.Listener.Addr().String()
	}
	return a
}

// set sets the servers.
func (a *targets) set(t *testing.T, servers [2]*workload.Process) {
	t.Helper()
	for i, s := range servers {
		metrics, err := url.Parse(s.MetricsURL)
		if err != nil {
			t.Fatal(err)
		}
		a.urls[i].Store(metrics)
	}
}

// startPrometheus starts a Prometheus that ends with the test.
func startPrometheus(t *testing.T, read *targets) *prometheusServer {
	t.Helper()
	binary := prometheusPath(t)
	if binary == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("Prometheus is missing: make lint-deploy installs it")
		}
		return nil
	}
	folder := t.TempDir()
	configuration, err := json.Marshal(map[string]any{"scrape_configs": []any{map[string]any{
		"job_name": "ordergraph", "scrape_interval": sampleInterval.String(), "scrape_timeout": sampleInterval.String(),
		"static_configs": []any{map[string]any{"targets": read.addresses}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, configuration, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address=127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended := bufio.NewScanner(stderr), make(chan struct{})
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-ended
		_ = cmd.Wait() // the error is the signal
	})
	p := &prometheusServer{alerts: readAlerts(t)}
	var log strings.Builder
	for p.base == "" && lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if address := regexp.MustCompile(`msg="Listening on" address=(\S+)`).FindStringSubmatch(lines.Text()); address != nil {
			p.base = "http://" + address[1]
		}
	}
	go func() {
		defer close(ended)
		for lines.Scan() { // a full pipe would stop Prometheus
		}
	}()
	if p.base == "" {
		t.Fatalf("Prometheus did not start: %s", log.String())
	}
	return p
}

// readAlerts returns the alerts for operators. Their expressions contain the expressions of the
// recording rules instead of the names.
func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	text, err := os.ReadFile(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Record, Expr string
				Labels              struct{ Severity string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if r.Record != "" {
				recorded = append(recorded, r.Record, "("+r.Expr+")")
				continue
			}
			alerts = append(alerts, alert{r.Alert + "/" + r.Labels.Severity, strings.NewReplacer(recorded...).Replace(r.Expr)})
		}
	}
	if len(alerts) == 0 {
		t.Fatalf("%s has no alerts", alertRules)
	}
	return alerts
}

// windows matches the time ranges in an expression, such as [5m].
var windows = regexp.MustCompile(`\[\d+[smhd]\]`)

// query evaluates an expression of Prometheus and reports whether the result has a value. Each time
// range in the expression is replaced by the duration of the current phase.
func (p *prometheusServer) query(ctx context.Context, t *testing.T, expression string, within phase) bool {
	t.Helper()
	now := time.Now()
	window := fmt.Sprintf("[%dms]", now.Sub(within.start).Milliseconds())
	parameters := url.Values{"query": {windows.ReplaceAllString(expression, window)}, "time": {fmt.Sprintf("%.3f", float64(now.UnixMilli())/1000)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/api/v1/query?"+parameters.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var result struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil || result.Status != "success" {
		t.Fatalf("Prometheus cannot evaluate %s: %v %s", expression, err, result.Error)
	}
	return len(result.Data.Result) > 0
}

// measured has a value if Prometheus has read the metrics of both servers in the phase.
const measured = `count(rate(ordergraph_operations_total{job="ordergraph", type="query", code="OK"}[1m]) >= 0) == 2 and ` +
	`count(count_over_time(ordergraph_ready{job="ordergraph"}[1m]) >= 2) == 2`

// expect waits until all alerts in firing fire in the current phase. Alerts in tolerated and
// undetermined may also fire. All other alerts must not fire.
func (p *prometheusServer) expect(ctx context.Context, t *testing.T, current phase, firing []string, tolerated ...string) {
	t.Helper()
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	ticker := time.NewTicker(sampleInterval / 2)
	defer ticker.Stop()
	allowed := slices.Concat(firing, tolerated, undetermined)
	var fired []string
	for {
		missing := false
		for _, a := range p.alerts {
			if slices.Contains(firing, a.name) && !p.query(ctx, t, a.expression, current) {
				missing = true
			}
		}
		if !missing && p.query(ctx, t, measured, current) {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("phase %s, after %s: not all of the alerts %q fire, or Prometheus reads no metrics", current.name, current.seconds(), firing)
		case <-ticker.C:
		}
	}
	for _, a := range p.alerts {
		if !p.query(ctx, t, a.expression, current) {
			continue
		}
		fired = append(fired, a.name)
		if !slices.Contains(allowed, a.name) {
			t.Errorf("phase %s, after %s: the alert %s fires: %s", current.name, current.seconds(), a.name, a.expression)
		}
	}
	p.fired = append(p.fired, fmt.Sprintf("phase %s: %q", current.name, fired))
}

// report logs the alerts of all phases. Without Prometheus, it skips the test.
func (p *prometheusServer) report(t *testing.T) {
	t.Run("alerts", func(t *testing.T) {
		if p == nil {
			t.Skip("skipped: the alerts need Prometheus, which make lint-deploy installs")
		}
		t.Log(strings.Join(p.fired, "\n"))
	})
}
