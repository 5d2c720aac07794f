package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// adminPaths are the paths that only the admin listener serves.
func adminPaths() []string {
	return []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/config"}
}

// metricsURL returns the URL of the admin listener from the output of the server.
func metricsURL(t *testing.T, c *command) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  Metrics   (http://127\.0\.0\.1:\d+)/metrics$`).FindStringSubmatch(c.stdout.String())
	if m == nil {
		t.Fatalf("the server does not print the address of the metrics: %s", c.stdout.String())
	}
	return m[1]
}

// samples returns the sum of all samples of each metric, by the name of the metric. For units, the
// key also contains the label unit.
func samples(t *testing.T, url string) map[string]float64 {
	t.Helper()
	status, text := get(t, url+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	sums := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)(\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		name := m[1]
		if unit := regexp.MustCompile(`unit="(\w+)"`).FindStringSubmatch(m[2]); unit != nil {
			name += " " + unit[1]
		}
		sums[name] += n
	}
	return sums
}

type explainTotals struct{ Requests, ReadUnits, WriteUnits float64 }

// explainOperation executes an operation and returns the totals in its explain output.
func explainOperation(t *testing.T, url, operation string) explainTotals {
	t.Helper()
	_, answer := postExplained(t, url, operation)
	var got struct {
		Errors     []any
		Extensions struct {
			Explain struct{ Totals explainTotals }
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Errors) > 0 {
		t.Fatalf("%s: error %v", answer, err)
	}
	return got.Extensions.Explain.Totals
}

// The metrics count the same requests and units as the explain output.
func TestMetricsAgreeWithExplain(t *testing.T) {
	_, _, variables := newTestTable(t)
	run(t, "table create", variables...).checkSucceeded(t)
	run(t, "seed", variables...).checkSucceeded(t)
	for name, variables := range map[string][]string{"embedded": nil, "dynamodb": variables} {
		t.Run(name, func(t *testing.T) {
			c, url := serve(t, "-addr 127.0.0.1:0", append(variables, "ORDERGRAPH_ADMIN_ADDR=0")...)
			metrics := metricsURL(t, c)
			before, want := samples(t, metrics), explainTotals{}
			for _, operation := range []string{
				firstQuery,
				`{ product(sku: "prod_100") { name inventory { nodes { quantity } } } }`,
				`mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "a"}) { order { id customer { orderCount } } } }`,
				`mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "a"}) { order { id } } }`,
			} {
				totals := explainOperation(t, url, operation)
				want.Requests += totals.Requests
				want.ReadUnits += totals.ReadUnits
				want.WriteUnits += totals.WriteUnits
			}
			after := samples(t, metrics)
			delta := func(metric string) float64 { return after[metric] - before[metric] }
			got := explainTotals{delta("ordergraph_dynamodb_requests_total"), delta("ordergraph_dynamodb_units_total read"), delta("ordergraph_dynamodb_units_total write")}
			// For transactions, local engines report up to twice or half of the units that Amazon DynamoDB
			// charges.
			if got.WriteUnits > want.WriteUnits/2 && got.WriteUnits < want.WriteUnits*2 {
				got.WriteUnits = want.WriteUnits
			}
			if got != want || want.Requests == 0 || want.ReadUnits == 0 || want.WriteUnits == 0 {
				t.Errorf("the metrics count %+v, the explain output %+v", got, want)
			}
			for metric, want := range map[string]float64{
				"ordergraph_dynamodb_request_duration_seconds_count": want.Requests, "ordergraph_dynamodb_fast_path_total": want.Requests,
				"ordergraph_idempotent_replays_total": 1, "ordergraph_conflicts_total": 1, // the second placeOrder fails its condition first
				"ordergraph_pool_refusals_total": 0,
			} {
				if delta(metric) != want {
					t.Errorf("%s has increased by %v, want %v", metric, delta(metric), want)
				}
			}
			if after["ordergraph_ready"] != 1 || after["ordergraph_pool_size"] == 0 || delta("ordergraph_loader_batch_size_count") == 0 {
				t.Errorf("ready, pool size or batches are missing in %v", after)
			}
		})
	}
}

func TestOnlyTheAdminListenerServesItsPages(t *testing.T) {
	const secret = "a secret of the test"
	c, url := serve(t, "-addr 127.0.0.1:0", "ORDERGRAPH_ADMIN_ADDR=127.0.0.1:0", "ORDERGRAPH_CURSOR_KEY="+secret)
	admin := metricsURL(t, c)
	if _, text := get(t, admin+"/config"); !strings.Contains(text, "ORDERGRAPH_CURSOR_KEY") || strings.Contains(text, secret) {
		t.Errorf("the page of the configuration lacks the cursor key or contains its value: %s", text)
	}
	for _, path := range adminPaths() {
		if status, text := get(t, url+path); status != http.StatusNotFound {
			t.Errorf("the public listener serves %s: %d %s", path, status, text)
		}
	}
	for _, path := range append(adminPaths(), "/healthz", "/readyz") {
		if status, text := get(t, admin+path); status != http.StatusOK {
			t.Errorf("the admin listener returns %d for %s: %s", status, path, text)
		}
	}
	if status, _ := get(t, admin+"/graphql"); status != http.StatusNotFound {
		t.Errorf("the admin listener returns %d for /graphql, want 404", status)
	}
	r, err := http.NewRequest(http.MethodGet, admin+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "rebound.example"
	if status, _ := readResponse(t)(http.DefaultClient.Do(r)); status != http.StatusForbidden {
		t.Errorf("the admin listener returns %d for another host name, want 403", status)
	}
}

// A server without ORDERGRAPH_ADMIN_ADDR prints no address of metrics. With the setting, the admin
// listener ends with the server, so that the next server can use the same address.
func TestAdminListenerStartsAndEndsWithTheServer(t *testing.T) {
	c, _ := serve(t, "-addr 127.0.0.1:0")
	if strings.Contains(c.stdout.String(), "Metrics") {
		t.Errorf("the server prints an address of the metrics: %s", c.stdout.String())
	}
	addr := "127.0.0.1:0"
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		c := start(ctx, "-addr 127.0.0.1:0", "ORDERGRAPH_ADMIN_ADDR="+addr)
		select {
		case <-c.listening:
			addr = strings.TrimPrefix(metricsURL(t, c), "http://")
		case <-c.done:
			t.Errorf("the server ended: %s", c.stderr.String())
		}
		stop()
		<-c.done
	}
}
