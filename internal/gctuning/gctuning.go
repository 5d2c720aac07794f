// Package gctuning tunes Go's garbage collector for a server. It makes collections less frequent
// while the heap is small, and derives the memory limit from the container.
//
// By default, the runtime collects when the heap has doubled (https://go.dev/doc/gc-guide#GOGC).
// This server's live heap between requests is a few megabytes, so the runtime would collect every
// few dozen requests. Each collection scans all stacks, wakes all processors and slows down
// allocations.
package gctuning

import (
	"math"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// ballastBytes is the size in bytes of an unused allocation that counts as live heap. It raises
	// the heap's goal by the same constant for every live size. A GOGC that changes after each
	// collection would multiply the goal instead.
	//
	// A larger ballast would waste memory during bursts. This size is enough to make collections rare
	// while the heap is small.
	ballastBytes = 8 << 20
	// minMemoryForBallast is the minimum memory of a container in bytes that allows the ballast.
	minMemoryForBallast = 256 << 20
	// memoryLimitPercent is the runtime's memory limit as a percentage of the container's memory. The
	// rest is for memory that the runtime does not count.
	memoryLimitPercent = 90
)

// Options configure Start.
type Options struct {
	// GOGC and GOMEMLIMIT are the values of the runtime's environment variables. The runtime has
	// already applied them. If either is set, Start adds no ballast. If GOMEMLIMIT is set, Start does
	// not change the memory limit.
	GOGC, GOMEMLIMIT string
	// Memory is the container's memory in bytes, or 0 for no limit.
	Memory uint64
}

// ContainerMemory returns the memory limit of this process's control group in bytes. It returns 0
// without a limit, or on a system without control groups.
func ContainerMemory() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0
	}
	return limit
}

// Start tunes the garbage collector. The returned function restores the previous settings.
func Start(opts Options) (stop func()) {
	var allocation []byte
	if opts.GOGC == "" && opts.GOMEMLIMIT == "" && (opts.Memory == 0 || opts.Memory >= minMemoryForBallast) {
		// The bytes are never written, so the system provides no memory for them. They have no pointers,
		// so the collector does not scan them.
		allocation = make([]byte, ballastBytes)
	}
	limit := int64(-1) // SetMemoryLimit ignores negative limits
	if opts.GOMEMLIMIT == "" && opts.Memory > 0 {
		// The runtime counts the ballast as used memory.
		limit = debug.SetMemoryLimit(int64(opts.Memory/100*memoryLimitPercent) + int64(len(allocation)))
	}
	return func() {
		debug.SetMemoryLimit(limit)
		runtime.KeepAlive(allocation)
		allocation = nil
	}
}
