package pacing

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// goal is how large the heap is let grow after a collection, in bytes.
func goal() int64 {
	runtime.GC()
	read := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(read)
	return int64(read[0].Value.Uint64())
}

// limit is the runtime's limit of memory.
func limit() int64 { return debug.SetMemoryLimit(-1) }

func TestPace(t *testing.T) {
	const container = 1 << 30
	gogc := debug.SetGCPercent(100)
	defer debug.SetGCPercent(gogc)
	usual := limit()
	for name, c := range map[string]struct {
		opts  Options
		grows bool
		limit int64
	}{
		"no container":           {Options{}, true, usual},
		"a container":            {Options{Memory: container}, true, container/100*90 + ballast},
		"a small container":      {Options{Memory: 64 << 20}, false, (64 << 20) / 100 * 90},
		"the operator's GOGC":    {Options{GOGC: "100", Memory: container}, false, container / 100 * 90},
		"the operator's limit":   {Options{GOMEMLIMIT: "1GiB", Memory: container}, false, usual},
		"both, and no container": {Options{GOGC: "100", GOMEMLIMIT: "1GiB"}, false, usual},
	} {
		stop := Start(c.opts)
		if g := goal(); (g >= 2*ballast) != c.grows {
			t.Errorf("%s: the heap grows to %d", name, g)
		}
		if l := limit(); l != c.limit {
			t.Errorf("%s: the limit is %d, want %d", name, l, c.limit)
		}
		stop()
		if g := goal(); g >= 2*ballast {
			t.Errorf("%s: the heap still grows to %d", name, g)
		}
		if l := limit(); l != usual {
			t.Errorf("%s: the limit stays at %d", name, l)
		}
	}
}
