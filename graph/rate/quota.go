package rate

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Quota is an amount that requests take parts of and give back. It is safe for concurrent use.
type Quota struct {
	most, free int64
	left       *semaphore.Weighted
}

// NewQuota returns a quota of most. Parts of up to free are not counted: a few large requests must
// not keep out all small ones.
func NewQuota(most, free int) *Quota {
	return &Quota{int64(most), int64(free), semaphore.NewWeighted(int64(most))}
}

// Take takes a part and reports whether there was as much. A part larger than the quota takes all
// of it.
func (q *Quota) Take(part int) bool {
	return int64(part) <= q.free || q.left.TryAcquire(min(int64(part), q.most))
}

// Give gives back a part that was taken.
func (q *Quota) Give(part int) {
	if int64(part) > q.free {
		q.left.Release(min(int64(part), q.most))
	}
}

// Await takes a part as soon as there is as much, and returns what it has taken, for Release. Small
// parts are counted here, as large ones of the size that is not.
//
// Errors: that of the context.
func (q *Quota) Await(ctx context.Context, part int) (taken int64, err error) {
	taken = min(max(int64(part), q.free), q.most)
	return taken, q.left.Acquire(ctx, taken)
}

// Release gives back what Await has taken.
func (q *Quota) Release(taken int64) { q.left.Release(taken) }
