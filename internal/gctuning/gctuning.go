// Package gctuning tunes Go's garbage collector for a server. Collections become less frequent
// while the heap is small. The memory limit of the Go runtime is derived from the memory of the
// container.
//
// By default, the runtime starts a collection when the heap has doubled since the last collection
// (https://go.dev/doc/gc-guide#GOGC). Between requests, this server has a live heap of a few
// megabytes. So the runtime would start a collection every few dozen requests. Each collection
// scans all stacks, wakes all processors and slows down allocations.
package gctuning

import (
	"math"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// ballastBytes is the size in bytes of an allocation that is never used, but counts as live heap.
	// It increases the heap size at which the next collection starts. The increase is the same for any
	// live heap. A higher GOGC would instead multiply this heap size.
	//
	// A larger ballast would waste memory when many requests arrive at the same time. This size is
	// enough to make collections rare while the heap is small.
	ballastBytes = 8 << 20
	// minMemoryForBallast is the minimum container memory in bytes for the ballast to be allocated.
	minMemoryForBallast = 256 << 20
	// memoryLimitPercent is the memory limit of the Go runtime as a percentage of the container's
	// memory. The rest is for memory that the runtime does not count.
	memoryLimitPercent = 90
)

// Options configure Start.
type Options struct {
	// GOGC and GOMEMLIMIT are the values of these environment variables, which the runtime has already
	// applied. If GOGC or GOMEMLIMIT is set, Start allocates no ballast. If GOMEMLIMIT is set, Start
	// does not change the memory limit.
	GOGC, GOMEMLIMIT string
	// Memory is the memory limit of the container in bytes, or 0 if there is no limit.
	Memory uint64
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

// Start tunes the garbage collector. The returned function restores the previous settings.
func Start(opts Options) (stop func()) {
	var allocation []byte
	if opts.GOGC == "" && opts.GOMEMLIMIT == "" && (opts.Memory == 0 || opts.Memory >= minMemoryForBallast) {
		// The operating system provides no memory for these bytes, because they are never written. The
		// collector does not scan them, because they contain no pointers.
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
