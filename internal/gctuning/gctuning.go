// Package gctuning tunes Go's garbage collector for a server. It makes collections less frequent
// while the heap is small, and derives the memory limit of the Go runtime from the memory of the
// container. It also turns off the sampling of allocations if nothing reads the heap profile.
//
// By default, the runtime starts a collection when the heap has doubled since the last collection
// (https://go.dev/doc/gc-guide#GOGC). Between requests, this server has a live heap of only a few
// megabytes, so the runtime would start a collection every few dozen requests. Each collection
// scans all stacks, wakes all processors and slows down allocations.
package gctuning

import (
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// ballastBytes is the size in bytes of an allocation that is never used, but counts as live heap.
	// The ballast makes the next collection start later, at a larger heap. The difference is the same
	// number of bytes for a small and a large live heap. With a higher GOGC instead, the difference
	// would grow with the live heap.
	//
	// A larger ballast would waste memory when many requests arrive at the same time. With this size,
	// collections take less than 3 % of the CPU time of a busy server with a small heap.
	ballastBytes = 16 << 20
	// minMemoryForBallast is a number of bytes. In a container with less memory, Start allocates no
	// ballast.
	minMemoryForBallast = 256 << 20
	// memoryLimitPercent is the memory limit of the Go runtime as a percentage of the container's
	// memory. The other 10 percent are for memory that the runtime does not count.
	memoryLimitPercent = 90
)

// Options configure Start.
type Options struct {
	// GOGC and GOMEMLIMIT have the format of the environment variables with these names. ValidGOGC and
	// ValidGOMEMLIMIT must accept them. If GOGC or GOMEMLIMIT is set, Start allocates no ballast. If
	// GOMEMLIMIT is set, Memory has no effect.
	GOGC, GOMEMLIMIT string
	// Memory is the memory limit of the container in bytes, or 0 if there is no limit.
	Memory uint64
	// HeapProfile reports whether the runtime samples allocations for the heap profile. Sampling takes
	// CPU time, because it records a stack for every 512 KiB allocated.
	HeapProfile bool
}

// ContainerMemory returns the memory limit of this process's control group, in bytes. It returns 0
// if there is no limit or the system has no control groups.
func ContainerMemory() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0
	}
	return limit
}

// ValidGOGC reports whether text is a percentage or off.
func ValidGOGC(text string) bool {
	_, ok := parseGOGC(text)
	return ok
}

// ValidGOMEMLIMIT reports whether text is a number of bytes with an optional unit, such as 512MiB,
// or off.
func ValidGOMEMLIMIT(text string) bool {
	_, ok := parseGOMEMLIMIT(text)
	return ok
}

// parseGOGC returns the percentage for debug.SetGCPercent. The percentage is negative if text is
// off.
func parseGOGC(text string) (percent int, ok bool) {
	if text == "off" {
		return -1, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil
}

// parseGOMEMLIMIT returns the limit for debug.SetMemoryLimit.
func parseGOMEMLIMIT(text string) (limit int64, ok bool) {
	if text == "off" {
		return math.MaxInt64, true
	}
	number, unit := strings.TrimSuffix(text, "B"), int64(1)
	for i, suffix := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if digits, found := strings.CutSuffix(number, suffix); found && number != text {
			number, unit = digits, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return n * unit, err == nil && n >= 0 && n <= math.MaxInt64/unit
}

// Start tunes the garbage collector. The returned function restores the previous settings.
func Start(opts Options) (stop func()) {
	var allocation []byte
	if opts.GOGC == "" && opts.GOMEMLIMIT == "" && (opts.Memory == 0 || opts.Memory >= minMemoryForBallast) {
		// The operating system provides no memory for these bytes, because they are never written. The
		// collector does not scan them, because they contain no pointers.
		allocation = make([]byte, ballastBytes)
	}
	restoreGOGC := func() {}
	if percent, ok := parseGOGC(opts.GOGC); ok {
		before := debug.SetGCPercent(percent)
		restoreGOGC = func() { debug.SetGCPercent(before) }
	}
	limit := int64(-1) // SetMemoryLimit ignores negative limits
	if bytes, ok := parseGOMEMLIMIT(opts.GOMEMLIMIT); ok {
		limit = debug.SetMemoryLimit(bytes)
	} else if opts.Memory > 0 {
		// The runtime counts the ballast as used memory.
		limit = debug.SetMemoryLimit(int64(opts.Memory/100*memoryLimitPercent) + int64(len(allocation)))
	}
	rate := runtime.MemProfileRate
	if !opts.HeapProfile {
		runtime.MemProfileRate = 0
	}
	return func() {
		runtime.MemProfileRate = rate
		restoreGOGC()
		debug.SetMemoryLimit(limit)
		runtime.KeepAlive(allocation)
		allocation = nil
	}
}
