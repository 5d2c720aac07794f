package graph

import "sync/atomic"

// load is what the operations that are being executed cost together. Their answers grow in memory at the same time, so that a limit for
// each, and one for how many there are, would let two hundred of the largest take gigabytes.
type load struct {
	most int64
	cost atomic.Int64
}

// smallCost is what an operation can cost that is always let in: a few large ones must not keep out everybody else. A page of 20 with
// ten fields costs some 250.
const smallCost = 2000

// begin takes room for an operation, and tells whether there is any. One that alone costs more than there is has it all.
func (l *load) begin(cost int) bool {
	if cost <= smallCost {
		return true
	}
	added := min(int64(cost), l.most)
	for {
		before := l.cost.Load()
		if before+added > l.most {
			return false
		}
		if l.cost.CompareAndSwap(before, before+added) {
			return true
		}
	}
}

// end gives back what begin has taken.
func (l *load) end(cost int) {
	if cost > smallCost {
		l.cost.Add(-min(int64(cost), l.most))
	}
}
