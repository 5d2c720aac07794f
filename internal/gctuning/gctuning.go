// Package gctuning configures Go's garbage collector for a server. It makes collections less
// frequent while the heap is small. It also sets the memory limit of the Go runtime, according to
// the memory of the container. If nothing reads the heap profile, the package turns off the
// sampling of allocations.
//
// By default, the runtime starts a collection when the heap has doubled since the last collection
// (https://go.dev/doc/gc-guide#GOGC). Between requests, the heap of this server contains only a few
// megabytes of live data. The runtime would therefore start a collection every few dozen requests.
// Each collection costs CPU time, because it scans the stacks of all goroutines.
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
	// ballastBytes is the size of an allocation that Start makes, but never uses. The larger heap
	// delays garbage collections. A higher GOGC would also delay them, but its additional memory would
	// grow with the heap.
	ballastBytes = 16 << 20
	// minMemoryForBallast is a number of bytes. If the memory limit of the container is lower, Start
	// does not allocate ballastBytes.
	minMemoryForBallast = 256 << 20
	// memoryLimitPercent is the memory limit of the Go runtime, as a percentage of the container's
	// memory. The rest is for memory that the runtime does not manage.
	memoryLimitPercent = 90
)

// Options configure Start.
type Options struct {
	// GOGC and GOMEMLIMIT are the values of the environment variables with these names. An empty value
	// means that the variable is not set. If either variable is set, Start does not allocate
	// ballastBytes. If GOMEMLIMIT is set, Start ignores Memory.
	GOGC, GOMEMLIMIT string
	// Memory is the memory limit of the container in bytes, or 0 if the container has no limit.
	Memory uint64
	// If HeapProfile is true, the runtime samples allocations for the heap profile. Sampling takes CPU
	// time, because the runtime records a stack trace for about every 512 KiB allocated.
	HeapProfile bool
}

// ContainerMemory returns the memory limit of this process's control group, in bytes. It returns 0
// if there is no limit, or if the system has no control groups.
func ContainerMemory() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0
	}
	return limit
}

// ValidGOGC reports whether text is a percentage, such as 100, or off.
func ValidGOGC(text string) bool {
	_, ok := parseGOGC(text)
	return ok
}

// ValidGOMEMLIMIT reports whether text is a size in bytes or off. A size can have a unit, such as
// 512MiB.
func ValidGOMEMLIMIT(text string) bool {
	_, ok := parseGOMEMLIMIT(text)
	return ok
}

// parseGOGC returns the percentage for debug.SetGCPercent. If text is off, the percentage is
// negative, which turns off the collector.
func parseGOGC(text string) (percent int, ok bool) {
	if text == "off" {
		return -1, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil
}

// parseGOMEMLIMIT returns the limit in bytes for debug.SetMemoryLimit.
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

// Start configures the garbage collector of this process. The returned function restores the
// previous configuration.
func Start(opts Options) (stop func()) {
	var allocation []byte
	if opts.GOGC == "" && opts.GOMEMLIMIT == "" && (opts.Memory == 0 || opts.Memory >= minMemoryForBallast) {
		// The allocation takes no physical memory, because it is never written. The collector does not
		// scan it, because it contains no pointers.
		allocation = make([]byte, ballastBytes)
	}
	restoreGOGC := func() {}
	if percent, ok := parseGOGC(opts.GOGC); ok {
		before := debug.SetGCPercent(percent)
		restoreGOGC = func() { debug.SetGCPercent(before) }
	}
	limit := int64(-1) // with a negative limit, SetMemoryLimit changes nothing
	if bytes, ok := parseGOMEMLIMIT(opts.GOMEMLIMIT); ok {
		limit = debug.SetMemoryLimit(bytes)
	} else if opts.Memory > 0 {
		// The runtime counts the unused allocation as used memory, although it takes no physical memory.
		// Its size is therefore added to the limit.
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
