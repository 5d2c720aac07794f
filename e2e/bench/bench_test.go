package bench_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/racing"
	"github.com/ordergraph/ordergraph/internal/replay"
	"github.com/ordergraph/ordergraph/internal/server"
)

// BenchmarkHandler measures one request after the other: from the HTTP request to the written
// answer.
func BenchmarkHandler(b *testing.B) {
	shop := open(b)
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			bodies, c := o.bodies(b), shop.client()
			for _, body := range bodies { // so that everything is kept that can be
				if err := o.check(c.do(b.Context(), body)); err != nil {
					b.Fatal(err)
				}
			}
			before, n := shop.table.Requests(), 0
			b.ReportAllocs()
			for b.Loop() {
				c.do(b.Context(), bodies[n%len(bodies)])
				n++
			}
			b.ReportMetric(float64(shop.table.Requests()-before)/float64(n), "dynamodb-requests/op")
			if err := o.check(c.answer.status, c.answer.body.Bytes()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkHandlerParallel is the same with as many clients at once as keep a server busy: what
// waits for others shows here.
func BenchmarkHandlerParallel(b *testing.B) {
	shop := open(b)
	for _, o := range operations() {
		b.Run(o.name, func(b *testing.B) {
			bodies, first := o.bodies(b), shop.client()
			for _, body := range bodies {
				if err := o.check(first.do(b.Context(), body)); err != nil {
					b.Fatal(err)
				}
			}
			b.SetParallelism(16)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				c, n := shop.client(), 0
				for ; pb.Next(); n++ {
					c.do(b.Context(), bodies[n%len(bodies)])
				}
				if n == 0 {
					return
				}
				if err := o.check(c.answer.status, c.answer.body.Bytes()); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// What one request allocates does not creep up. Times are no matter of tests; counts hardly change
// from machine to machine.
func TestAllocations(t *testing.T) {
	if racing.On || testing.CoverMode() != "" {
		t.Skip("more is allocated under the race detector, and where coverage is counted")
	}
	shop := open(t)
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			bodies, c := o.bodies(t), shop.client()
			for _, body := range bodies {
				if err := o.check(c.do(t.Context(), body)); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			made := testing.AllocsPerRun(100, func() {
				c.do(t.Context(), bodies[n%len(bodies)])
				n++
			})
			t.Logf("%.0f allocations, %.0f are allowed", made, o.allocations)
			if made > o.allocations {
				t.Errorf("a request makes %.0f allocations, at most %.0f are allowed", made, o.allocations)
			}
		})
	}
}

// Every one of many operations at once makes the requests of its budget, and no more; explain says
// the same, with the units.
func TestBudgetsUnderLoad(t *testing.T) {
	shop := open(t)
	const clients = 32
	each := longtest.Size(3, 15)
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			bodies := o.bodies(t)
			// Whatever is read once is replayed from then on, however many ask at once.
			first := shop.client()
			for _, explained := range []string{"false", "true"} {
				first.template.Header.Set(server.ExplainHeader, explained)
				for _, body := range bodies {
					if err := o.check(first.do(t.Context(), body)); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := shop.table.Requests()
			var running sync.WaitGroup
			for i := range clients {
				running.Go(func() {
					c := shop.client()
					// Every second client wants to know what its requests cost.
					explained := i%2 == 0
					if explained {
						c.template.Header.Set(server.ExplainHeader, "true")
					}
					for n := range each {
						var made atomic.Int64
						status, answer := c.do(replay.Counting(t.Context(), &made), bodies[(i+n)%len(bodies)])
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
			if made := shop.table.Requests() - before; made != clients*each*o.requests {
				t.Errorf("%d operations made %d requests to DynamoDB, want %d", clients*each, made, clients*each*o.requests)
			}
		})
	}
}

// checkExplained compares what an answer says of its cost with the budget.
func (o operation) checkExplained(t *testing.T, answer []byte) {
	t.Helper()
	var said struct {
		Extensions struct {
			Explain struct {
				Totals struct {
					Requests  int
					ReadUnits float64
				}
			}
		}
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		t.Error(err)
		return
	}
	if totals := said.Extensions.Explain.Totals; totals.Requests != o.requests || totals.ReadUnits != o.units {
		t.Errorf("explain tells of %+v, want %d requests and %v units", totals, o.requests, o.units)
	}
}

// A client that goes away in the middle leaves nothing behind that the next one could trip over.
func TestCancelledRequests(t *testing.T) {
	shop := open(t)
	for _, o := range operations() {
		bodies, c := o.bodies(t), shop.client()
		gone, leave := context.WithCancel(t.Context())
		leave()
		if status, answer := c.do(gone, bodies[0]); o.check(status, answer) == nil {
			t.Errorf("%s was answered for nobody", o.name)
		}
		if err := o.check(c.do(t.Context(), bodies[0])); err != nil {
			t.Error(err)
		}
	}
}
