// Package rate limits the cost of the requests of each principal over time. Within the module, it
// imports graph/errcode and internal/setting.
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

// Options configure the rate limit, which is a token bucket for each principal. Requests take
// points from the bucket, and points are restored over time.
type Options struct {
	// Burst is the capacity of a bucket in points. A new bucket is full. 0 disables the limit. If
	// Burst is below Limits.Cost, operations that cost more than Burst are rejected with
	// TOO_EXPENSIVE.
	Burst int
	// Restore is the number of points that a caller regains per second, at least 1.
	Restore int
	// Now is the clock. Sleep waits for d, or until the context ends. If either is nil, the real clock
	// is used.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// DefaultOptions returns the options for a server that authenticates callers. A page of 20 records
// with ten fields costs about 250 points. The defaults allow 800 such pages in a burst, and 8 pages
// per second over time. An empty bucket is full again after 100 seconds.
func DefaultOptions() Options { return Options{Burst: 200_000, Restore: 2000} }

// SettingDefinitions returns the settings of the rate limit. Burst has no default here, because its
// default depends on whether the server authenticates callers.
func (o *Options) SettingDefinitions() []setting.Setting {
	return []setting.Setting{
		{Name: "ORDERGRAPH_RATE_BURST", Value: setting.Number(&o.Burst, "", 0, math.MaxInt32), Exceeded: "`" + errcode.RateLimited + "` (429)", Meaning: fmt.Sprintf("maximum balance of points; `0` turns rate limits off. Default: `0` without authentication, otherwise `%d`, or `ORDERGRAPH_MAX_COST` if higher", DefaultOptions().Burst)},
		{Name: "ORDERGRAPH_RATE_RESTORE", Value: setting.Limit(&o.Restore, fmt.Sprint(DefaultOptions().Restore)), Exceeded: "`" + errcode.RateLimited + "` (429)", Meaning: "points added to each balance per second"},
	}
}

// maxBuckets is the maximum number of buckets. Each bucket takes about 100 bytes. When there are
// too many, the least recently used bucket is dropped. Its principal then starts again with a full
// bucket.
const maxBuckets = 1 << 16

// unitsPerPoint is the number of units in a point. Buckets count in these units, so that the amount
// restored in each nanosecond is a whole number.
const unitsPerPoint = int64(time.Second)

// Limiter holds the token buckets of all principals. It is safe for concurrent use. A nil Limiter
// does not limit callers.
type Limiter struct {
	Options
	mu      sync.Mutex
	buckets *simplelru.LRU[string, *bucket]
}

// bucket is the balance of a principal.
type bucket struct {
	// balance is the number of units in the bucket at updatedAt, from 0 to the capacity.
	balance int64
	// updatedAt is the time of the last update.
	updatedAt time.Time
	// turn is a semaphore for the principal's waiting events. Only the event that holds the semaphore
	// sleeps in Wait. turn is nil until an event waits.
	turn chan struct{}
}

// NewLimiter returns a Limiter. It returns nil if Burst is 0.
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
	buckets, _ := simplelru.NewLRU[string, *bucket](maxBuckets, nil) // the error is nil for sizes above 0
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

// withBucket restores the points of a principal's bucket up to the current time. It then calls do
// with the bucket.
func (r *Limiter) withBucket(principal string, do func(*bucket)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	b, ok := r.buckets.Get(principal)
	if !ok {
		b = &bucket{balance: r.capacity(), updatedAt: now}
		r.buckets.Add(principal, b)
	}
	if since := now.Sub(b.updatedAt); since > 0 { // the clock may have been set back
		if missing := r.capacity() - b.balance; int64(since) > missing/int64(r.Restore) {
			b.balance = r.capacity()
		} else {
			b.balance += int64(since) * int64(r.Restore)
		}
		b.updatedAt = now
	}
	do(b)
}

// capacity returns the capacity of a bucket in units.
func (r *Limiter) capacity() int64 { return int64(r.Burst) * unitsPerPoint }

// Take takes points from a principal's bucket. If the bucket has too few points, Take takes none
// and returns the time until a retry can succeed. paid is the number of points that the request has
// already paid. A retry must pay them again, so they increase this time. points must not exceed the
// capacity of a bucket.
func (r *Limiter) Take(principal string, points, paid int) (wait time.Duration, ok bool) {
	if r == nil {
		return 0, true
	}
	r.withBucket(principal, func(b *bucket) {
		requested := int64(points) * unitsPerPoint
		if ok = requested <= b.balance; ok {
			b.balance -= requested
			return
		}
		missing := requested + int64(paid)*unitsPerPoint - b.balance
		wait = time.Duration((missing + int64(r.Restore) - 1) / int64(r.Restore))
	})
	return wait, ok
}

// Deduct takes points that were used without a reservation. It does not reduce the balance below 0.
func (r *Limiter) Deduct(principal string, points int) {
	if r != nil && points > 0 {
		r.withBucket(principal, func(b *bucket) { b.balance = max(0, b.balance-int64(points)*unitsPerPoint) })
	}
}

// refund refunds points.
func (r *Limiter) refund(principal string, points int) {
	r.withBucket(principal, func(b *bucket) { b.balance = min(b.balance+int64(points)*unitsPerPoint, r.capacity()) })
}

// waitSemaphore returns the semaphore for the waiting events of a principal.
func (r *Limiter) waitSemaphore(principal string) (turn chan struct{}) {
	r.withBucket(principal, func(b *bucket) {
		if b.turn == nil {
			b.turn = make(chan struct{}, 1)
		}
		turn = b.turn
	})
	return turn
}

// Available returns the number of whole points in a principal's bucket.
func (r *Limiter) Available(principal string) (points int) {
	r.withBucket(principal, func(b *bucket) { points = int(b.balance / unitsPerPoint) })
	return points
}
