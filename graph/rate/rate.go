// Package rate limits the cost of each principal's requests over time. Within the module, it
// imports only graph/errcode and internal/setting.
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

// Options configures the rate limit. Each principal has a token bucket that contains points.
// Requests take points from the bucket, and the bucket regains points over time.
type Options struct {
	// Burst is the capacity of a bucket in points. 0 means no rate limit. Otherwise, operations
	// that cost more than Burst fail with TOO_EXPENSIVE.
	Burst int
	// Restore is the number of points that a bucket regains per second. The minimum is 1.
	Restore int
	// Now returns the current time. Sleep waits for the duration d, or until the context ends. If a
	// function is nil, the real clock is used instead.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// DefaultOptions returns the options for a server that authenticates callers. Each principal can
// request about 800 pages at once, and then 8 per second.
func DefaultOptions() Options { return Options{Burst: 200_000, Restore: 2000} }

// SettingDefinitions returns the settings of the rate limit. Burst has no default here, because its
// default depends on whether the server authenticates callers.
func (o *Options) SettingDefinitions() []setting.Setting {
	return []setting.Setting{
		{Name: "ORDERGRAPH_RATE_BURST", Value: setting.Number(&o.Burst, "", 0, math.MaxInt32), Exceeded: "`" + errcode.RateLimited + "` (429)", Meaning: fmt.Sprintf("maximum balance of points; `0` turns rate limits off. Default: `0` without authentication, otherwise `%d`, or `ORDERGRAPH_MAX_COST` if higher", DefaultOptions().Burst)},
		{Name: "ORDERGRAPH_RATE_RESTORE", Value: setting.Limit(&o.Restore, fmt.Sprint(DefaultOptions().Restore)), Exceeded: "`" + errcode.RateLimited + "` (429)", Meaning: "points added to each balance per second"},
	}
}

// maxBuckets is the maximum number of buckets. Each bucket takes about 100 bytes. If there are too
// many buckets, the least recently used one that is not in debt is dropped. Its principal then
// starts again with a full bucket.
const maxBuckets = 1 << 16

// maxDebtorsPassed is the maximum number of buckets in debt that are kept when a bucket is dropped.
// It limits how long a new principal's request takes if very many principals are in debt.
const maxDebtorsPassed = 1000

// unitsPerPoint is the number of units in one point: a unit is a billionth of a point. A bucket
// that regains n points per second regains exactly n units per nanosecond.
const unitsPerPoint = int64(time.Second)

// Limiter contains the token buckets of all principals. It is safe for concurrent use. A nil
// Limiter does not limit callers.
type Limiter struct {
	Options
	mu      sync.Mutex
	buckets *simplelru.LRU[string, *bucket]
}

// bucket is the token bucket of one principal.
type bucket struct {
	// balance is the number of units in the bucket at the time updatedAt. It never exceeds the
	// capacity. If it is negative, the principal is in debt for work that Deduct has charged
	// afterwards. The debt never exceeds the capacity either.
	balance int64
	// messages is the number of units that Pace can take at the time updatedAt, if balance is not
	// lower. It never exceeds Limiter.messageCapacity.
	messages int64
	// updatedAt is the time of the last update of balance and messages.
	updatedAt time.Time
	// eventTurn is a semaphore that lets only one subscription event of the principal sleep until the
	// bucket has enough points. Other events wait for the semaphore. Until an event has to wait,
	// eventTurn is nil. messageTurn is the same for calls of Pace.
	eventTurn, messageTurn chan struct{}
}

// NewLimiter returns a Limiter with the given options. If Burst is 0, it returns nil.
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

// withBucket adds the points that a principal's bucket has regained since its last update. It then
// calls do with the bucket.
func (r *Limiter) withBucket(principal string, do func(*bucket)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	b, ok := r.buckets.Get(principal)
	if !ok {
		b = &bucket{balance: r.capacity(), messages: r.messageCapacity(), updatedAt: now}
		r.keepDebtors(now)
		r.buckets.Add(principal, b)
	}
	if since := now.Sub(b.updatedAt); since > 0 { // since is negative if the clock was set back
		b.balance, b.messages = r.restored(b.balance, r.capacity(), since), r.restored(b.messages, r.messageCapacity(), since)
		b.updatedAt = now
	}
	do(b)
}

// keepDebtors makes sure that the next bucket to be dropped is not in debt. Otherwise, a principal
// could get rid of a debt by waiting until its bucket is dropped.
func (r *Limiter) keepDebtors(now time.Time) {
	if r.buckets.Len() < maxBuckets {
		return
	}
	for range maxDebtorsPassed {
		principal, b, _ := r.buckets.GetOldest()
		if r.restored(b.balance, r.capacity(), now.Sub(b.updatedAt)) >= 0 {
			return
		}
		r.buckets.Get(principal) // makes it the most recently used bucket
	}
}

// restored returns a number of units after the bucket has regained units for some time.
func (r *Limiter) restored(units, capacity int64, since time.Duration) int64 {
	if missing := capacity - units; int64(since) > missing/int64(r.Restore) {
		return capacity
	}
	return units + int64(since)*int64(r.Restore)
}

// capacity returns the capacity of a bucket in units.
func (r *Limiter) capacity() int64 { return int64(r.Burst) * unitsPerPoint }

// minMessageBurst is the minimum number of points that Pace can take at once.
const minMessageBurst = 100

// messageBurst returns the number of points that Pace can take at once: the points that a bucket
// regains in a second, but at least minMessageBurst, and at most Burst.
func (r *Limiter) messageBurst() int { return min(max(r.Restore, minMessageBurst), r.Burst) }

func (r *Limiter) messageCapacity() int64 { return int64(r.messageBurst()) * unitsPerPoint }

// Take takes points from a principal's bucket. If there are too few, Take takes none, and ok is
// false. A retry must pay the points in paid again, so wait is the time until the bucket contains
// points+paid. points must not exceed the capacity.
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

// Deduct takes points for work that has already been done without a reservation. If the bucket has
// too few points, the principal is in debt, up to the capacity of the bucket. Take, Wait and Pace
// take no points until the debt is repaid.
func (r *Limiter) Deduct(principal string, points int) {
	if r != nil && points > 0 {
		r.withBucket(principal, func(b *bucket) {
			// More than twice the capacity would only exceed the maximum debt.
			b.balance = max(-r.capacity(), b.balance-min(int64(points), 2*int64(r.Burst))*unitsPerPoint)
		})
	}
}

// refund returns points to a principal's bucket, up to the capacity of the bucket.
func (r *Limiter) refund(principal string, points int) {
	r.withBucket(principal, func(b *bucket) { b.balance = min(b.balance+int64(points)*unitsPerPoint, r.capacity()) })
}

// waitSemaphore returns a semaphore of a principal's bucket. field returns the semaphore's field.
func (r *Limiter) waitSemaphore(principal string, field func(*bucket) *chan struct{}) (turn chan struct{}) {
	r.withBucket(principal, func(b *bucket) {
		semaphore := field(b)
		if *semaphore == nil {
			*semaphore = make(chan struct{}, 1)
		}
		turn = *semaphore
	})
	return turn
}

// Available returns the number of points in a principal's bucket, rounded down. If the principal is
// in debt, the number is 0.
func (r *Limiter) Available(principal string) (points int) {
	r.withBucket(principal, func(b *bucket) { points = int(max(0, b.balance) / unitsPerPoint) })
	return points
}
