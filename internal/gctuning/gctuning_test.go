package gctuning

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// goal returns the heap size in bytes at which the next collection starts.
func goal() int64 {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64())
}

// limit returns the runtime's memory limit.
func limit() int64 { return debug.SetMemoryLimit(-1) }

func TestStart(t *testing.T) {
	const container = 1 << 30
	gogc := debug.SetGCPercent(100)
	defer debug.SetGCPercent(gogc)
	initial := limit()
	for name, c := range map[string]struct {
		opts  Options
		grows bool
		limit int64
	}{
		"no container":           {Options{}, true, initial},
		"a container":            {Options{Memory: container}, true, container/100*90 + ballastBytes},
		"a small container":      {Options{Memory: 64 << 20}, false, (64 << 20) / 100 * 90},
		"the operator's GOGC":    {Options{GOGC: "100", Memory: container}, false, container / 100 * 90},
		"the operator's limit":   {Options{GOMEMLIMIT: "1GiB", Memory: container}, false, initial},
		"both, and no container": {Options{GOGC: "100", GOMEMLIMIT: "1GiB"}, false, initial},
	} {
		stop := Start(c.opts)
		if g := goal(); (g >= 2*ballastBytes) != c.grows {
			t.Errorf("%s: the heap goal is %d", name, g)
		}
		if l := limit(); l != c.limit {
			t.Errorf("%s: the limit is %d, want %d", name, l, c.limit)
		}
		stop()
		if g := goal(); g >= 2*ballastBytes {
			t.Errorf("%s: after stop, the heap's goal is %d", name, g)
		}
		if l := limit(); l != initial {
			t.Errorf("%s: after stop, the limit is %d", name, l)
		}
	}
}
