// Package rate limits what each principal may spend in a time. Of the module it imports
// graph/errcode and internal/setting.
package rate

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Options are how much somebody may cost: a bucket of points for each principal, which what they
// ask for empties and time fills.
type Options struct {
	// Burst is how many points a bucket holds, a full one from the start; 0 for no limit. It is at
	// least Limits.Cost, or operations that cost more than it are refused with TOO_EXPENSIVE.
	Burst int
	// Restore is how many points come back each second; at least 1.
	Restore int
	// Now is the clock, and Sleep waits so long or until the context is done; nil for the real
	// ones.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// DefaultOptions are for a server that knows who asks: a page of 20 with ten fields costs some 250,
// so that is 800 of them at once and eight a second, and a bucket that is empty is full again after
// 100 seconds.
func DefaultOptions() Options { return Options{Burst: 200_000, Restore: 2000} }

// Settings are the rows of the rates. Burst has no default here, because its default depends on how
// callers are authenticated.
func (o *Options) Settings() []setting.Setting {
	return []setting.Setting{
		{Name: "ORDERGRAPH_RATE_BURST", Value: setting.Number(&o.Burst, "", 0, math.MaxInt32), Exceeded: "`" + errcode.RateLimited + "` (429)", Meaning: fmt.Sprintf("points that a caller can spend at once, `0` for no limit; by default the higher of `%d` and `ORDERGRAPH_MAX_COST`, without authentication `0`", DefaultOptions().Burst)},
		{Name: "ORDERGRAPH_RATE_RESTORE", Value: setting.Limit(&o.Restore, fmt.Sprint(DefaultOptions().Restore)), Exceeded: "`" + errcode.RateLimited + "` (429)", Meaning: "points that a caller regains per second"},
	}
}

// maxBuckets is how many principals are known at once, some 100 bytes each. One that is forgotten,
// as so many others have asked since, begins with a full bucket.
const maxBuckets = 1 << 16

// point is a point in the unit that buckets count in. So what comes back in a span of nanoseconds
// is whole, and nothing is ever rounded.
const point = int64(time.Second)

// Limiter are the buckets of all principals. It is safe for concurrent use; one that is nil limits
// nobody.
type Limiter struct {
	Options
	mu      sync.Mutex
	buckets *simplelru.LRU[string, *bucket]
}

// bucket is what a principal has left.
type bucket struct {
	// left is in parts of a point, never below 0 nor above the burst.
	left int64
	// at is when it was so much.
	at time.Time
}

// NewLimiter returns a Limiter; nil, which limits nobody, for a burst of 0.
func NewLimiter(r Options) *Limiter {
	if r.Burst <= 0 {
		return nil
	}
	r.Burst, r.Restore = min(r.Burst, math.MaxInt32), min(max(r.Restore, 1), math.MaxInt32)
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Sleep == nil {
		r.Sleep = sleep
	}
	buckets, _ := simplelru.NewLRU[string, *bucket](maxBuckets, nil) // it fails for sizes below 1
	return &Limiter{Options: r, buckets: buckets}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// with calls do with a principal's bucket as it is now.
func (r *Limiter) with(principal string, do func(*bucket)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	b, ok := r.buckets.Get(principal)
	if !ok {
		b = &bucket{left: r.full(), at: now}
		r.buckets.Add(principal, b)
	}
	if since := now.Sub(b.at); since > 0 { // a clock may have been put back
		if missing := r.full() - b.left; int64(since) > missing/int64(r.Restore) {
			b.left = r.full()
		} else {
			b.left += int64(since) * int64(r.Restore)
		}
		b.at = now
	}
	do(b)
}

// full is what a full bucket holds, in parts of a point.
func (r *Limiter) full() int64 { return int64(r.Burst) * point }

// Take takes points out of a principal's bucket, if it has as many. Else it tells how long it takes
// until it has, and so many as were paid before besides: whoever asks again pays them again. More
// than a bucket holds are never there: what costs more was refused before.
func (r *Limiter) Take(principal string, points, paid int) (wait time.Duration, ok bool) {
	if r == nil {
		return 0, true
	}
	r.with(principal, func(b *bucket) {
		want := int64(points) * point
		if ok = want <= b.left; ok {
			b.left -= want
			return
		}
		missing := want + int64(paid)*point - b.left
		wait = time.Duration((missing + int64(r.Restore) - 1) / int64(r.Restore))
	})
	return wait, ok
}

// Deduct takes points for what was done already, or as many as are left.
func (r *Limiter) Deduct(principal string, points int) {
	if r != nil && points > 0 {
		r.with(principal, func(b *bucket) { b.left = max(0, b.left-int64(points)*point) })
	}
}

// give puts points back that were taken and not used.
func (r *Limiter) give(principal string, points int) {
	r.with(principal, func(b *bucket) { b.left = min(b.left+int64(points)*point, r.full()) })
}

// Available is how many whole points a principal has left.
func (r *Limiter) Available(principal string) (points int) {
	r.with(principal, func(b *bucket) { points = int(b.left / point) })
	return points
}
