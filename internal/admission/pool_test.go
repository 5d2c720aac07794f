package admission

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func pool(size int) *Pool { return newPool(PoolDeclaration{Name: "test", Size: size}) }

// maxParts returns the maximum number of parts of size 1 that a caller gets.
func maxParts(p *Pool, c Caller) (n int) {
	for p.TryAcquire(c, 1) == nil {
		n++
	}
	return n
}

// A single caller gets seven eighths of a pool. Later callers get the same part of the rest. When
// the first caller releases its part, all callers converge to equal shares.
func TestShares(t *testing.T) {
	p := pool(800)
	a, b, c := Caller{Key: "a"}, Caller{Key: "b"}, Caller{Key: "c"}
	if first, second, third := maxParts(p, a), maxParts(p, b), maxParts(p, c); first != 700 || second != 88 || third != 11 {
		t.Errorf("the callers can acquire %d, %d and %d units, want 700, 88 and 11", first, second, third)
	}
	for range 5000 {
		for _, caller := range []Caller{a, b, c} {
			if p.UsedBy(caller) > 0 {
				p.Release(caller, 1)
			}
			for _, again := range []Caller{c, b, a} {
				_ = p.TryAcquire(again, 1) // the caller need not get more
			}
		}
	}
	for _, caller := range []Caller{a, b, c} {
		if has := p.UsedBy(caller); has < 240 || has > 270 {
			t.Errorf("caller %s uses %d units in the end, want about 255", caller.Key, has)
		}
	}
}

// Customers that hold capacity without a time limit leave capacity for others, however few release
// it.
func TestHeldCapacity(t *testing.T) {
	for id, d := range New(Sizes{}) {
		if held := PoolID(id) == PoolSockets || PoolID(id) == PoolSubscriptions || PoolID(id) == PoolSubscriptionMemory; held != (d.HeldDivisor > 0) {
			t.Errorf("pool %s: the divisor is %d", d.Name, d.HeldDivisor)
		}
	}
	for _, size := range []int{48, 300, 3072} {
		p := newPool(PoolDeclaration{Size: size, HeldDivisor: 16})
		for i := range 10 {
			if n := maxParts(p, Caller{Key: fmt.Sprint("c", i), Customer: true}); n != size/16 {
				t.Errorf("customer %d can acquire %d of %d units, want a sixteenth", i, n, size)
			}
		}
		if n := maxParts(p, Caller{Key: "customer with a weight", Weight: 4, Customer: true}); n != 4*size/16 {
			t.Errorf("a customer with weight 4 can acquire %d of %d units, want a quarter", n, size)
		}
	}
	p := newPool(PoolDeclaration{Size: 8, HeldDivisor: 16})
	for i := range 5 {
		if n := maxParts(p, Caller{Key: fmt.Sprint("c", i), Customer: true}); n != 1 {
			t.Errorf("customer %d can acquire %d of 8 units, want 1", i, n)
		}
	}
	if n := maxParts(newPool(PoolDeclaration{Size: 80, HeldDivisor: 16}), Caller{Key: "gateway"}); n != 70 {
		t.Errorf("a gateway can acquire %d of 80 units, want seven eighths", n)
	}
}

// A pool counts refusals by their reason. A caller that waits is not counted as refused.
func TestRefusalsAreCounted(t *testing.T) {
	p := pool(8)
	a, b := Caller{Key: "a"}, Caller{Key: "b"}
	for range 8 {
		_ = p.TryAcquire(a, 1) // the eighth exceeds the share
	}
	_ = p.TryAcquire(b, 2) // only one is free
	if full, share := p.Refusals(); full != 1 || share != 1 {
		t.Errorf("%d refusals because the pool is full and %d because of the share, want 1 and 1", full, share)
	}
}

func TestWeights(t *testing.T) {
	p := pool(1000)
	heavy, light := Caller{Key: "heavy", Weight: 4}, Caller{Key: "light"}
	for range 2000 {
		for _, c := range []Caller{light, heavy} {
			if p.UsedBy(c) > 0 {
				p.Release(c, 1)
			}
			for _, again := range []Caller{light, heavy} {
				_ = p.TryAcquire(again, 1) // the caller need not get more
			}
		}
	}
	maxParts(p, heavy)
	if l, h := p.UsedBy(light), p.UsedBy(heavy); h < 3*l {
		t.Errorf("a customer with weight 4 uses %d units, a caller with weight 1 uses %d, want at least three times that number", h, l)
	}
}

// All anonymous callers together have half of a pool, and each of them has a share of that half.
func TestAnonymousCallers(t *testing.T) {
	p := pool(160)
	if n := maxParts(p, Caller{Key: "1.2.3.4", Anonymous: true}); n != 70 {
		t.Errorf("one anonymous caller can acquire %d units, want seven eighths of 80", n)
	}
	for i := range 100 {
		maxParts(p, Caller{Key: fmt.Sprint("2.2.2.", i), Anonymous: true})
	}
	if p.Used() > 80 {
		t.Errorf("anonymous callers use %d of 160 units, want at most half", p.Used())
	}
	if n := maxParts(p, Caller{Key: "known"}); n < 70 {
		t.Errorf("an authenticated caller can acquire only %d units next to anonymous callers, want at least 70", n)
	}
}

// A part that is larger than the pool fits into an unused pool. Small parts are not counted.
func TestPartSizes(t *testing.T) {
	p := newPool(PoolDeclaration{Size: 100, UncountedUpTo: 10})
	a, b := Caller{Key: "a"}, Caller{Key: "b"}
	if p.TryAcquire(a, 1000) != nil || p.TryAcquire(b, 11) == nil || p.TryAcquire(b, 10) != nil || p.Used() != 100 {
		t.Errorf("%d units are in use, want 100", p.Used())
	}
	p.Release(b, 10)
	p.Release(a, 1000)
	if p.Used() != 0 {
		t.Errorf("%d units are in use after all were released", p.Used())
	}
	if refused := p.TryAcquire(a, 20); refused != nil {
		t.Fatal(refused)
	}
	p.Transfer(a, b, 20)
	if p.UsedBy(a) != 0 || p.UsedBy(b) != 20 {
		t.Errorf("a has %d, b %d", p.UsedBy(a), p.UsedBy(b))
	}
}

// The waiting caller with the least capacity is served first. The number of its waiting requests
// does not matter.
func TestWaitingIsFair(t *testing.T) {
	p := pool(2)
	greedy, modest := Caller{Key: "greedy"}, Caller{Key: "modest"}
	for range 2 {
		if err := p.Acquire(t.Context(), greedy, 1); err != nil {
			t.Fatal(err)
		}
	}
	served := make(chan Caller, 100)
	var waiting sync.WaitGroup
	wait := func(c Caller) {
		before := p.waiterCount()
		waiting.Go(func() {
			if p.Acquire(t.Context(), c, 1) == nil {
				served <- c
			}
		})
		for p.waiterCount() == before {
			runtime.Gosched()
		}
	}
	for range 20 {
		wait(greedy)
	}
	wait(modest)
	p.Release(greedy, 1)
	if got := <-served; got != modest {
		t.Errorf("%s is served first", got.Key)
	}
	for range 20 {
		p.Release(greedy, 1)
		if got := <-served; got != greedy {
			t.Errorf("then %s is served", got.Key)
		}
	}
	waiting.Wait()
}

func (p *Pool) waiterCount() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.waiting {
		n += len(q.waiters)
	}
	return n
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	p := pool(1)
	a := Caller{Key: "a"}
	if err := p.Acquire(t.Context(), a, 1); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Acquire(ctx, Caller{Key: "b"}, 1); err == nil {
		t.Error("Acquire granted capacity that is already in use")
	}
	p.Release(a, 1)
	if p.Used() != 0 || len(p.queues) != 0 || len(p.waiting) != 0 {
		t.Errorf("%d units are in use and %d callers wait, want none", p.Used(), len(p.waiting))
	}
}

// After any sequence of Take, Await and Give the pool never exceeds its size. In the end it is
// unused.
func TestPoolsKeepTheirSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 100).Draw(t, "size")
		p := newPool(PoolDeclaration{Size: size, Minimum: rapid.IntRange(0, 3).Draw(t, "least")})
		type part struct {
			c Caller
			n int
		}
		var taken []part
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c := Caller{Key: rapid.SampledFrom([]string{"a", "b", "1.1.1.1", "2.2.2.2"}).Draw(t, "caller")}
			c.Anonymous = len(c.Key) > 1
			n := rapid.IntRange(1, 2*size).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if p.TryAcquire(c, n) == nil {
					taken = append(taken, part{c, n})
				}
			case 1:
				ended, stop := context.WithCancel(context.Background())
				stop()
				if p.Acquire(ended, c, n) == nil {
					taken = append(taken, part{c, n})
				}
			default:
				if len(taken) > 0 {
					i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
					p.Release(taken[i].c, taken[i].n)
					taken = append(taken[:i], taken[i+1:]...)
				}
			}
			sum := 0
			for _, has := range p.usedByKey {
				if has <= 0 {
					t.Fatalf("a caller has %d", has)
				}
				sum += int(has)
			}
			if p.Used() != sum || sum > size {
				t.Fatalf("%d of %d units are in use, but the callers use %d together", p.Used(), size, sum)
			}
			if p.usedByAnonymous > int64(max(1, size/2)) && len(p.usedByKey) > 1 && p.used != p.usedByAnonymous {
				t.Fatalf("anonymous callers use %d of %d units, want at most half", p.usedByAnonymous, size)
			}
		}
		for _, was := range taken {
			p.Release(was.c, was.n)
		}
		if p.used != 0 || p.usedByAnonymous != 0 || len(p.usedByKey) != 0 || len(p.queues) != 0 {
			t.Fatalf("after all were released, %d units are in use, %d of them by anonymous callers", p.used, p.usedByAnonymous)
		}
	})
}

func BenchmarkTake(b *testing.B) {
	p := pool(256)
	c := Caller{Key: "customer/cust_01"}
	for b.Loop() {
		if p.TryAcquire(c, 1) == nil {
			p.Release(c, 1)
		}
	}
}

func BenchmarkAwait(b *testing.B) {
	p := pool(2)
	c := Caller{Key: "customer/cust_01"}
	ctx := b.Context()
	for b.Loop() {
		if p.Acquire(ctx, c, 1) == nil {
			p.Release(c, 1)
		}
	}
}
