package rate

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Quota is an amount that requests take parts of and give back. It is safe for concurrent use.
type Quota struct {
	most, free int64
	left       *semaphore.Weighted
	// whole is the quota that this one is a share of, nil if it is not a share.
	whole *Quota
}

// AnonymousShare is the part that callers without a token have together of what all callers share:
// a half.
const AnonymousShare = 2

// NewQuota returns a quota of most. Parts of up to free are not counted: a few large requests must
// not keep out all small ones.
func NewQuota(most, free int) *Quota {
	return &Quota{most: int64(most), free: int64(free), left: semaphore.NewWeighted(int64(most))}
}

// Share returns a quota for some of the callers, a part of this one: half of it for 2. They take
// from both quotas, so that they leave the rest to the others. A share has no Await.
func (q *Quota) Share(of int) *Quota {
	share := NewQuota(max(1, int(q.most)/of), int(q.free))
	share.whole = q
	return share
}

// Take takes a part and reports whether there was as much. A part larger than the quota takes all
// of it.
func (q *Quota) Take(part int) bool {
	if int64(part) <= q.free {
		return true
	}
	taken := min(int64(part), q.most)
	switch {
	case !q.left.TryAcquire(taken):
		return false
	case q.whole != nil && !q.whole.Take(part):
		q.left.Release(taken)
		return false
	default:
		return true
	}
}

// Give gives back a part that was taken.
func (q *Quota) Give(part int) {
	if int64(part) <= q.free {
		return
	}
	q.left.Release(min(int64(part), q.most))
	if q.whole != nil {
		q.whole.Give(part)
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
