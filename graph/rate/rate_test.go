package rate

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// manualClock is a clock that advances only by forward and sleep.
type manualClock struct {
	mu  sync.Mutex
	now time.Time
	// slept is the number of calls of sleep.
	slept int
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *manualClock) sleep(_ context.Context, d time.Duration) {
	c.advance(d)
	c.slept++
}

func (c *manualClock) options(burst, restore int) Options {
	c.now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return Options{Burst: burst, Restore: restore, Now: c.Now, Sleep: c.sleep}
}

// referenceBucket is the reference implementation of a bucket, with exact fractions.
type referenceBucket struct {
	left *big.Rat
	at   time.Duration
}

// The buckets agree with the reference implementation after any operations. A request is accepted
// after the returned wait, and not a nanosecond before.
func TestBucketsAgreeWithFractions(t *testing.T) {
	rejections := 0
	rapid.Check(t, func(rt *rapid.T) {
		burst, restore := rapid.IntRange(1, 1<<31-1).Draw(rt, "burst"), rapid.IntRange(1, 1<<31-1).Draw(rt, "restore")
		if rapid.Bool().Draw(rt, "small") {
			burst, restore = burst%100+1, restore%1000+1
		}
		var clock manualClock
		r := NewLimiter(clock.options(burst, restore))
		model, now := map[string]*referenceBucket{}, time.Duration(0)
		full := new(big.Rat).SetInt64(int64(burst))
		of := func(principal string) *referenceBucket {
			b := model[principal]
			if b == nil {
				b = &referenceBucket{full, now}
				model[principal] = b
			}
			back := new(big.Rat).Mul(big.NewRat(int64(restore), 1), big.NewRat(int64(now-b.at), int64(time.Second)))
			b.left = new(big.Rat).Add(b.left, back)
			if b.at = now; b.left.Cmp(full) > 0 {
				b.left = full
			}
			return b
		}
		forward := func(d time.Duration) { clock.advance(d); now += d }
		take := func(principal string, points int) (time.Duration, bool) {
			wait, ok := r.Take(principal, points, 0)
			b, want := of(principal), new(big.Rat).SetInt64(int64(points))
			if fits := want.Cmp(b.left) <= 0; fits != ok || fits != (wait == 0) {
				rt.Fatalf("taking %d points of %s: accepted is %v with a wait of %v", points, b.left.FloatString(9), ok, wait)
			}
			if ok {
				b.left = new(big.Rat).Sub(b.left, want)
			}
			return wait, ok
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			principal := fmt.Sprint("p", rapid.IntRange(0, 2).Draw(rt, "principal"))
			points := rapid.IntRange(0, burst).Draw(rt, "points")
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0:
				forward(time.Duration(rapid.Int64Range(0, int64(time.Duration(burst)*time.Second)/int64(restore)+1).Draw(rt, "time")))
			case 1:
				deducted := points * rapid.IntRange(1, 3).Draw(rt, "factor") // up to more than the maximum debt
				r.Deduct(principal, deducted)
				b, most := of(principal), new(big.Rat).Neg(full)
				if b.left = new(big.Rat).Sub(b.left, new(big.Rat).SetInt64(int64(deducted))); b.left.Cmp(most) < 0 {
					b.left = most
				}
			case 2:
				r.refund(principal, points)
				b := of(principal)
				if b.left = new(big.Rat).Add(b.left, new(big.Rat).SetInt64(int64(points))); b.left.Cmp(full) > 0 {
					b.left = full
				}
			default:
				if wait, ok := take(principal, points); !ok {
					rejections++
					forward(wait - 1)
					if _, ok := take(principal, points); ok {
						rt.Fatal("accepted before the wait ended")
					}
					forward(1)
					if _, ok := take(principal, points); !ok {
						rt.Fatal("rejected after the wait")
					}
				}
			}
			left := of(principal).left
			if got, want := r.Available(principal), max(0, int(new(big.Int).Quo(left.Num(), left.Denom()).Int64())); got != want || got < 0 || got > burst {
				rt.Fatalf("%d points are available, want %d, and at most %d", got, want, burst)
			}
		}
	})
	if rejections < 4 { // short tests have about 15
		t.Errorf("only %d requests were rejected", rejections)
	}
}

// Concurrent requests never take more points than the bucket has, and all refunds are in the
// bucket.
func TestConcurrentRequests(t *testing.T) {
	var clock manualClock
	r := NewLimiter(clock.options(1000, 1))
	var taken atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			principal := fmt.Sprint("p", i%2)
			for range 300 {
				if _, ok := r.Take(principal, 7, 0); ok {
					r.refund(principal, 2)
					taken.Add(5)
				}
				if left := r.Available(principal); left < 0 || left > 1000 {
					t.Errorf("%d points are left", left)
				}
			}
		})
	}
	all.Wait()
	if left := r.Available("p0") + r.Available("p1"); left != 2000-int(taken.Load()) || left >= 2*7 {
		t.Errorf("%d points are left after %d of 2000 were taken", left, taken.Load())
	}
}

// A clock that is set back takes no points and restores none twice.
func TestClockSetBack(t *testing.T) {
	var clock manualClock
	r := NewLimiter(clock.options(100, 10))
	r.Take("p", 100, 0)
	clock.advance(5 * time.Second)
	if left := r.Available("p"); left != 50 {
		t.Errorf("%d points are left, want 50", left)
	}
	clock.advance(-5 * time.Second)
	if left := r.Available("p"); left != 50 {
		t.Errorf("after the clock moved back, %d points are left, want 50", left)
	}
	clock.advance(5 * time.Second)
	if left := r.Available("p"); left != 50 {
		t.Errorf("%d points are left afterwards, want 50", left)
	}
}

// The number of buckets is bounded. A principal whose bucket was dropped starts with a full bucket.
func TestBucketsAreBounded(t *testing.T) {
	var clock manualClock
	r := NewLimiter(clock.options(10, 1))
	r.Take("first", 10, 0)
	for i := range maxBuckets {
		r.Take(fmt.Sprint(i), 10, 0)
	}
	if n := r.buckets.Len(); n != maxBuckets {
		t.Errorf("%d buckets", n)
	}
	if left := r.Available("first"); left != 10 {
		t.Errorf("the principal of the evicted bucket has %d points, want a full bucket", left)
	}
	if left := r.Available(fmt.Sprint(maxBuckets - 1)); left != 0 {
		t.Errorf("the last principal has %d points", left)
	}
}

// A bucket in debt is not dropped, so that its principal cannot get rid of the debt. If too many
// buckets are in debt, their number is still bounded.
func TestDebtsAreKept(t *testing.T) {
	var clock manualClock
	r := NewLimiter(clock.options(10, 1))
	r.Deduct("debtor", 15)
	r.Deduct("repaid", 11)
	clock.advance(time.Second)
	for i := range maxBuckets {
		r.Take(fmt.Sprint(i), 10, 0)
	}
	if wait, ok := r.Take("debtor", 1, 0); ok || wait != 5*time.Second {
		t.Errorf("the debtor's point is taken: %v, wait %v, want a wait of 5s", ok, wait)
	}
	if left := r.Available("repaid"); left != 10 {
		t.Errorf("the principal that has repaid its debt has %d points, want a new bucket", left)
	}
	for i := range maxBuckets + 10 {
		r.Deduct(fmt.Sprint("debtor", i), 20)
	}
	if n := r.buckets.Len(); n != maxBuckets {
		t.Errorf("%d buckets", n)
	}
}

// If many events of a principal wait, only one of them sleeps at a time. Restored points therefore
// do not wake up all events.
func TestOneEventSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 50
		sleeps := atomic.Int64{}
		r := NewLimiter(Options{Burst: 10, Restore: 10, Sleep: func(ctx context.Context, d time.Duration) {
			sleeps.Add(1)
			sleep(ctx, d)
		}})
		began := time.Now()
		var all sync.WaitGroup
		for range events {
			all.Go(func() {
				if _, err := r.Wait(t.Context(), "p", 10); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if sleeps.Load() >= events {
			t.Errorf("%d events slept %d times, want fewer", events, sleeps.Load())
		}
		if took := time.Since(began).Round(time.Second); took != (events-1)*time.Second {
			t.Errorf("the events took %v, want %v", took, (events-1)*time.Second)
		}
	})
}

// An event waits for enough points. It costs nothing if its subscriber disconnects.
func TestEventsWaitForPoints(t *testing.T) {
	var clock manualClock
	r := NewLimiter(clock.options(100, 10))
	for i, slept := range []int{0, 0, 1, 2} {
		p, err := r.Wait(t.Context(), "p", 40)
		if err != nil || p == nil || clock.slept != slept {
			t.Fatalf("event %d: %v, slept %d times, want %d", i, err, clock.slept, slept)
		}
	}
	if got := clock.now.Sub(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)); got != 6*time.Second { // 160 points: 100 of the full bucket, 60 restored
		t.Errorf("waiting for the points of four events took %v, want 6s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	clock.advance(time.Minute)
	if _, err := r.Wait(ctx, "p", 40); err == nil || r.Available("p") != 100 {
		t.Errorf("with a canceled context, Wait returns %v and leaves %d points, want an error and 100", err, r.Available("p"))
	}
	// The real clock's sleep ends with the context.
	sleep(ctx, time.Hour)
}

// Messages of a principal can spend the points of a second at once, and then those that the bucket
// regains. They also wait if the balance is too low.
func TestPace(t *testing.T) {
	var clock manualClock
	r := NewLimiter(clock.options(10_000, 200))
	began := clock.Now()
	pace := func(points int, want time.Duration) {
		t.Helper()
		if err := r.Pace(t.Context(), "a", points); err != nil {
			t.Fatal(err)
		}
		if took := clock.Now().Sub(began); took != want {
			t.Errorf("%d points after %v, want %v", points, took, want)
		}
	}
	pace(200, 0)
	pace(1, 5*time.Millisecond)
	pace(999, 5*time.Second)
	if got := r.Available("a"); got != 10_000-1200+1000 {
		t.Errorf("%d points are left", got)
	}
	clock.advance(time.Hour)
	began = clock.Now()
	pace(200, 0)
	if _, ok := r.Take("a", 9800, 0); !ok {
		t.Fatal("the balance is lower than 9800")
	}
	clock.advance(time.Second)
	pace(200, time.Second)
	r.Deduct("a", 10_000)
	if got := r.Available("a"); got != 0 {
		t.Errorf("%d points are left", got)
	}
	pace(10, time.Second+50*time.Second+50*time.Millisecond) // the debt is repaid first
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.Pace(ended, "a", 10); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if err := r.Pace(ended, "b", 10); err != nil {
		t.Errorf("with enough points, the end of the context does not matter: %v", err)
	}
	if err := (*Limiter)(nil).Pace(ended, "a", 10); err != nil {
		t.Errorf("without rate limits: %v", err)
	}
}
