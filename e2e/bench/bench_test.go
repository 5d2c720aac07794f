package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/telemetry"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
	"github.com/ordergraph/ordergraph/internal/test/replay"
)

// BenchmarkHandler measures sequential requests, from the HTTP request to the written response.
func BenchmarkHandler(b *testing.B) { benchmarkHandler(b, newTestServer(b)) }

// BenchmarkHandlerWithMetrics runs BenchmarkHandler on a server that records metrics.
func BenchmarkHandlerWithMetrics(b *testing.B) {
	benchmarkHandler(b, newServerWithMetrics(b, telemetry.NewMetrics()))
}

func benchmarkHandler(b *testing.B, api *testServer) {
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			bodies, c := o.bodies(b), api.client()
			for _, body := range bodies { // fill all caches
				if err := o.check(c.do(b.Context(), body)); err != nil {
					b.Fatal(err)
				}
			}
			before, n := api.table.RequestCount(), 0
			b.ReportAllocs()
			for b.Loop() {
				c.do(b.Context(), bodies[n%len(bodies)])
				n++
			}
			b.ReportMetric(float64(api.table.RequestCount()-before)/float64(n), "dynamodb-requests/op")
			if err := o.check(c.response.status, c.response.body.Bytes()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkCustomFields runs BenchmarkHandler on a server with 20 custom fields, which no operation
// selects.
func BenchmarkCustomFields(b *testing.B) { benchmarkHandler(b, newCustomFieldsServer(b)) }

// newCustomFieldsServer starts a server with 20 custom fields. They are declared until the test ends.
func newCustomFieldsServer(t testing.TB) *testServer {
	t.Helper()
	var file strings.Builder
	for _, typ := range []string{"Customer", "Order", "OrderItem", "Product"} {
		fmt.Fprintf(&file, "extend type %s { f1: String @field f2: Int @field f3: Boolean! @field(default: false) f4: Money @field f5: [String!] @field }\n", typ)
	}
	declared, err := graph.ParseExtension("bench.graphqls", file.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(declared.Declare())
	return newTestServer(t, func(cfg *config.Config, _ *telemetry.Receivers) { cfg.Extension = declared })
}

// BenchmarkHandlerParallel measures concurrent requests with enough clients to keep a server busy.
// If requests wait for locks, the result is worse than that of BenchmarkHandler.
func BenchmarkHandlerParallel(b *testing.B) {
	api := newTestServer(b)
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			bodies, first := o.bodies(b), api.client()
			for _, body := range bodies {
				if err := o.check(first.do(b.Context(), body)); err != nil {
					b.Fatal(err)
				}
			}
			b.SetParallelism(16)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				c, n := api.client(), 0
				for ; pb.Next(); n++ {
					c.do(b.Context(), bodies[n%len(bodies)])
				}
				if n == 0 {
					return
				}
				if err := o.check(c.response.status, c.response.body.Bytes()); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// No request makes more allocations than its limit. Tests limit allocations instead of times,
// because allocation counts are almost equal on all machines.
func TestAllocations(t *testing.T) {
	if raceenabled.On || testing.CoverMode() != "" {
		t.Skip("skipped: the race detector and coverage allocate more")
	}
	api := newTestServer(t)
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			allocations := o.countAllocations(t, api)
			t.Logf("%.0f allocations, at most %.0f allowed", allocations, o.allocations)
			if allocations > o.allocations {
				t.Errorf("a request makes %.0f allocations, want at most %.0f", allocations, o.allocations)
			}
		})
	}
}

// countAllocations returns the number of allocations of a request.
func (o operation) countAllocations(t *testing.T, api *testServer) float64 {
	t.Helper()
	bodies, c := o.bodies(t), api.client()
	for _, body := range bodies {
		if err := o.check(c.do(t.Context(), body)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	return testing.AllocsPerRun(100, func() {
		c.do(t.Context(), bodies[n%len(bodies)])
		n++
	})
}

// Custom fields that a query does not select need no allocations.
func TestAllocationsWithCustomFields(t *testing.T) {
	if raceenabled.On || testing.CoverMode() != "" {
		t.Skip("skipped: the race detector and coverage allocate more")
	}
	without, plain := map[string]float64{}, newTestServer(t)
	queries := slices.DeleteFunc(operations(), func(o operation) bool { return strings.HasPrefix(o.document, "mutation") })
	for _, o := range queries {
		without[o.name] = o.countAllocations(t, plain)
	}
	api := newCustomFieldsServer(t)
	for _, o := range queries {
		if with := o.countAllocations(t, api); with > without[o.name]+1 {
			t.Errorf("%s: a request makes %.0f allocations with custom fields, and %.0f without", o.name, with, without[o.name])
		}
	}
}

// Under load, each operation sends exactly the number of DynamoDB requests in its budget. The
// explain output reports the same numbers of requests and read units.
func TestRequestBudgetsUnderLoad(t *testing.T) {
	api := newTestServer(t)
	const clients = 32
	each := longtest.Size(3, 15)
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			bodies := o.bodies(t)
			// The first client sends each operation once. After that, DynamoDB's responses are replayed.
			first := api.client()
			for _, explained := range []string{"false", "true"} {
				first.template.Header.Set(server.ExplainHeader, explained)
				for _, body := range bodies {
					if err := o.check(first.do(t.Context(), body)); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := api.table.RequestCount()
			var running sync.WaitGroup
			for i := range clients {
				running.Go(func() {
					c := api.client()
					// Every second client requests explain.
					explained := i%2 == 0
					if explained {
						c.template.Header.Set(server.ExplainHeader, "true")
					}
					for n := range each {
						var made atomic.Int64
						status, answer := c.do(replay.WithRequestCounter(t.Context(), &made), bodies[(i+n)%len(bodies)])
						if err := o.check(status, answer); err != nil {
							t.Error(err)
							return
						}
						if int(made.Load()) != o.requests {
							t.Errorf("an operation made %d requests to DynamoDB, want %d", made.Load(), o.requests)
							return
						}
						if explained {
							o.checkExplained(t, answer)
						}
					}
				})
			}
			running.Wait()
			if made := api.table.RequestCount() - before; made != clients*each*o.requests {
				t.Errorf("%d operations made %d requests to DynamoDB, want %d", clients*each, made, clients*each*o.requests)
			}
		})
	}
}

// checkExplained compares the explain output of a response with the budget.
func (o operation) checkExplained(t *testing.T, answer []byte) {
	t.Helper()
	var response struct {
		Extensions struct {
			Explain struct {
				Totals struct {
					Requests  int
					ReadUnits float64
				}
			}
		}
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		t.Error(err)
		return
	}
	if totals := response.Extensions.Explain.Totals; totals.Requests != o.requests || totals.ReadUnits != o.readUnits {
		t.Errorf("explain reports %+v, want %d requests and %v read units", totals, o.requests, o.readUnits)
	}
}

// A cancelled request does not affect the next request.
func TestCancelledRequests(t *testing.T) {
	api := newTestServer(t)
	for _, o := range operations() {
		bodies, c := o.bodies(t), api.client()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if status, answer := c.do(cancelled, bodies[0]); o.check(status, answer) == nil {
			t.Errorf("%s: a cancelled request succeeded", o.name)
		}
		if err := o.check(c.do(t.Context(), bodies[0])); err != nil {
			t.Error(err)
		}
	}
}
