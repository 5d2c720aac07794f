package graph

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// load is what the operations that are being executed cost together. Their answers grow in memory at the same time, so that a limit for
// each, and one for how many there are, would let two hundred of the largest take gigabytes.
type load struct {
	most int64
	room *semaphore.Weighted
}

func newLoad(most int) *load { return &load{int64(most), semaphore.NewWeighted(int64(most))} }

// smallCost is what an operation can cost that is always let in: a few large ones must not keep out everybody else. A page of 20 with
// ten fields costs some 250.
const smallCost = 2000

// begin takes room for an operation, and tells whether there is any. One that alone costs more than there is has it all.
func (l *load) begin(cost int) bool {
	return cost <= smallCost || l.room.TryAcquire(min(int64(cost), l.most))
}

// end gives back what begin has taken.
func (l *load) end(cost int) {
	if cost > smallCost {
		l.room.Release(min(int64(cost), l.most))
	}
}

// eventShare is the part of what operations can cost at once that the events of subscriptions can cost besides: a fourth. They have room of
// their own, so that a change that ten thousand follow keeps no query out.
const eventShare = 4

// wait takes room for an operation as soon as there is any, and tells what it has taken, which is to be given back with give. Also what
// costs little takes some: thousands of subscribers can be told of the same change at once. Meanwhile changes wait in the feed, which cuts
// those who fall behind.
//
// Errors: that of the context.
func (l *load) wait(ctx context.Context, cost int) (taken int64, err error) {
	taken = min(int64(max(cost, smallCost)), l.most)
	return taken, l.room.Acquire(ctx, taken)
}

// give gives back what wait has taken.
func (l *load) give(taken int64) { l.room.Release(taken) }
