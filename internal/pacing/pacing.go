// Package pacing tells Go's garbage collector when to collect, for a server: less often while its
// heap is small, and within the memory that its container has.
//
// By itself the runtime collects when the heap has doubled (https://go.dev/doc/gc-guide#GOGC). What
// a server of this kind holds between requests is a few megabytes, so that it would collect every
// few dozen requests, and each collection looks through all stacks, wakes all processors and slows
// down what allocates meanwhile.
package pacing

import (
	"math"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// ballast is how much the heap counts beyond what lives in it, in bytes. The heap so grows by
	// as much more before it is collected, whatever lives: no moment has a goal that is a multiple
	// of what the last one had, as with a GOGC that is set anew after each collection.
	//
	// It is held in vain when much lives, in a burst: so it is no more than makes collections rare
	// while a server holds little.
	ballast = 8 << 20
	// leastMemory is how much memory a container has in which so much more is little.
	leastMemory = 256 << 20
	// limitPercent is how much of a container's memory the Go runtime is to stay within; the rest
	// is for what it does not count.
	limitPercent = 90
)

// Options are what decides about the pace.
type Options struct {
	// GOGC and GOMEMLIMIT are what the operator says of the runtime's own variables, empty for
	// nothing. The runtime has read them; where either is set, the pace is the operator's.
	GOGC, GOMEMLIMIT string
	// Memory is how much memory the container has, in bytes, 0 for no limit.
	Memory uint64
}

// ContainerMemory is how much memory the control group of this process has, in bytes; 0 where it
// has no limit, or the system has no control groups.
func ContainerMemory() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0
	}
	return limit
}

// Start sets the pace until the function that it returns is called, which gives the runtime back
// what it had.
func Start(opts Options) (stop func()) {
	var weight []byte
	if opts.GOGC == "" && opts.GOMEMLIMIT == "" && (opts.Memory == 0 || opts.Memory >= leastMemory) {
		// Nothing is ever written to it, so that the system gives no memory for it; and it has no
		// pointers, so that the collector does not look into it.
		weight = make([]byte, ballast)
	}
	limit := int64(-1) // changes nothing
	if opts.GOMEMLIMIT == "" && opts.Memory > 0 {
		// The runtime counts the ballast as if it were memory.
		limit = debug.SetMemoryLimit(int64(opts.Memory/100*limitPercent) + int64(len(weight)))
	}
	return func() {
		debug.SetMemoryLimit(limit)
		runtime.KeepAlive(weight)
		weight = nil
	}
}
