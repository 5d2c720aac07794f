package trace

import (
	"context"
	"math"
	"sync/atomic"
)

// Usage counts the DynamoDB requests of one GraphQL operation and adds up their capacity units. It
// is safe for concurrent use.
type Usage struct {
	// If Exact is true, each read asks DynamoDB for its read units. Otherwise, ReadUnits includes only
	// the reads that are measured for a Trace or an Observer. Set Exact before calling NewContext.
	Exact bool

	requests              atomic.Int64
	readUnits, writeUnits atomicFloat
	// outer is the Usage of the parent context, or nil. It also counts the requests that this Usage
	// counts.
	outer *Usage
}

type usageKey struct{}

// NewContext returns a context in which u counts the requests. If ctx already has a Usage, that
// Usage counts these requests, too. Call NewContext only once.
func (u *Usage) NewContext(ctx context.Context) context.Context {
	u.outer = UsageFromContext(ctx)
	u.Exact = u.Exact || u.outer.isExact()
	return context.WithValue(ctx, usageKey{}, u)
}

// UsageFromContext returns the Usage of ctx. It returns nil if ctx has no Usage.
func UsageFromContext(ctx context.Context) *Usage {
	u, _ := ctx.Value(usageKey{}).(*Usage)
	return u
}

// Requests returns the number of requests that were started. Retries of a request are not counted.
func (u *Usage) Requests() int { return int(u.requests.Load()) }

// ReadUnits returns the read units that the requests have consumed. The result includes all
// requests only if Exact is true.
func (u *Usage) ReadUnits() float64 { return u.readUnits.load() }

// WriteUnits returns the computed write units of the requests. The result includes cancelled
// transactions, because they also consume units.
func (u *Usage) WriteUnits() float64 { return u.writeUnits.load() }

func (u *Usage) isExact() bool { return u != nil && u.Exact }

func (u *Usage) addRequest() {
	for ; u != nil; u = u.outer {
		u.requests.Add(1)
	}
}

func (u *Usage) add(r Request) {
	for ; u != nil; u = u.outer {
		u.readUnits.add(r.ReadUnits)
		u.writeUnits.add(r.WriteUnits)
	}
}

// atomicFloat is a float64 that several goroutines can change concurrently.
type atomicFloat struct{ bits atomic.Uint64 }

func (f *atomicFloat) load() float64 { return math.Float64frombits(f.bits.Load()) }

func (f *atomicFloat) add(delta float64) {
	for delta != 0 {
		before := f.bits.Load()
		if f.bits.CompareAndSwap(before, math.Float64bits(math.Float64frombits(before)+delta)) {
			return
		}
	}
}
