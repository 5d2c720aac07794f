package gctuning

import (
	"math"
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
		"the operator's limit":   {Options{GOMEMLIMIT: "2GiB", Memory: container}, false, 2 << 30},
		"both, and no container": {Options{GOGC: "100", GOMEMLIMIT: "off"}, false, math.MaxInt64},
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

// Without a reader of the heap profile, the runtime samples no allocations.
func TestHeapProfile(t *testing.T) {
	initial := runtime.MemProfileRate
	for profile, want := range map[bool]int{true: initial, false: 0} {
		stop := Start(Options{HeapProfile: profile})
		if got := runtime.MemProfileRate; got != want {
			t.Errorf("with HeapProfile = %v, the rate is %d, want %d", profile, got, want)
		}
		stop()
		if got := runtime.MemProfileRate; got != initial {
			t.Errorf("after stop, the rate is %d, want %d", got, initial)
		}
	}
}

// Start sets GOGC, and stop restores it. All formats of the Go runtime for GOGC and GOMEMLIMIT are
// valid.
func TestFormats(t *testing.T) {
	initial := debug.SetGCPercent(100)
	defer debug.SetGCPercent(initial)
	for text, want := range map[string]int{"off": -1, "50": 50, "0": 0, "-1": -1} {
		stop := Start(Options{GOGC: text})
		if got := debug.SetGCPercent(want); got != want || !ValidGOGC(text) {
			t.Errorf("GOGC=%s sets %d, want %d", text, got, want)
		}
		stop()
		if got := debug.SetGCPercent(100); got != 100 {
			t.Errorf("after GOGC=%s and stop, the percentage is %d", text, got)
		}
	}
	for text, want := range map[string]int64{"7": 7, "7B": 7, "7KiB": 7 << 10, "7MiB": 7 << 20, "7GiB": 7 << 30, "7TiB": 7 << 40, "off": math.MaxInt64} {
		if got, ok := parseGOMEMLIMIT(text); got != want || !ok || !ValidGOMEMLIMIT(text) {
			t.Errorf("GOMEMLIMIT=%s is %d, %t, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1KB", "1Ki", "KiB", "1.5GiB", "1 GiB", "9000000TiB", "9223372036854775808"} {
		if ValidGOMEMLIMIT(text) {
			t.Errorf("GOMEMLIMIT=%s is valid", text)
		}
	}
	for _, text := range []string{"", "x", "50%", "1e2", "2147483648"} {
		if ValidGOGC(text) {
			t.Errorf("GOGC=%s is valid", text)
		}
	}
}
