package admission

import (
	"container/heap"
	"context"
	"sync"
)

// shareFactor limits the capacity of each caller. A caller with weight 1 can use at most
// shareFactor times the capacity that is still free. Without other callers, this is seven eighths
// of a pool.
//
// Source: A. Choudhury and E. Hahne, "Dynamic queue length thresholds for shared-memory packet
// switches", IEEE/ACM Transactions on Networking 6, 1998.
const shareFactor = 7

// anonymousDivisor limits the capacity of anonymous callers. All of them together can use at most
// the size of the pool divided by anonymousDivisor.
const anonymousDivisor = 2

// Pool is a limited amount of capacity that callers share. Callers acquire capacity and later
// release it. A Pool is safe for concurrent use.
type Pool struct {
	PoolDeclaration
	size int64
	// full is the refusal if the pool is exhausted. exceeded is the refusal if only the caller's
	// share is exhausted.
	full, exceeded Refusal

	mu sync.Mutex
	// used is the capacity that all callers use together. usedByAnonymous is the capacity that all
	// anonymous callers use together. usedByKey maps each Caller.Key to the capacity that the
	// caller uses.
	used, usedByAnonymous int64
	usedByKey             map[string]int64
	// waiting is a heap with one queue for each caller that waits for capacity. queues maps the Key of
	// each of these callers to the caller's queue.
	waiting queueHeap
	queues  map[string]*callerQueue
	// grants counts how often the pool has granted capacity to a waiting caller.
	grants uint64
	// fullRefusals is the number of calls of TryAcquire that failed because the pool was exhausted.
	// shareRefusals is the number of calls that failed because only the caller's share was exhausted.
	fullRefusals, shareRefusals uint64
}

func newPool(d PoolDeclaration) *Pool {
	p := &Pool{PoolDeclaration: d, size: int64(max(1, d.Size)), usedByKey: map[string]int64{}, queues: map[string]*callerQueue{}}
	p.full, p.exceeded = Refusal{Pool: &p.PoolDeclaration}, Refusal{Pool: &p.PoolDeclaration, ShareExceeded: true}
	return p
}

// TryAcquire acquires n units of capacity for a caller without waiting. If the pool refuses,
// TryAcquire returns the reason.
func (p *Pool) TryAcquire(c Caller, n int) *Refusal {
	if n <= p.UncountedUpTo {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.countedUnits(c, n)
	switch refused := p.refusal(c, part); refused {
	case nil:
		p.addUsage(c, part)
		return nil
	case &p.full:
		p.fullRefusals++
		return refused
	default:
		p.shareRefusals++
		return refused
	}
}

// Release releases n units of capacity that the caller has acquired.
func (p *Pool) Release(c Caller, n int) {
	if n <= p.UncountedUpTo {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addUsage(c, -p.countedUnits(c, n))
	p.grantWaiting()
}

// countedUnits returns the number of units that the pool counts for a request of n units. The
// number is at least Minimum, but at most the size of the pool. For an anonymous caller, the
// maximum is half the size, or 1 if the size is 1.
func (p *Pool) countedUnits(c Caller, n int) int64 {
	maximum := p.size
	if c.Anonymous {
		maximum = max(1, p.size/anonymousDivisor)
	}
	return min(int64(max(n, p.Minimum)), maximum)
}

// Transfer transfers n units of capacity from one caller to another. It always succeeds, even if
// the new owner then exceeds its share.
func (p *Pool) Transfer(from, to Caller, n int) {
	if n <= p.UncountedUpTo {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addUsage(from, -p.countedUnits(from, n))
	p.addUsage(to, p.countedUnits(to, n))
	p.grantWaiting()
}

// Acquire waits until the caller can use n more units of capacity, and acquires them. If ctx ends
// first, Acquire returns the error of ctx.
func (p *Pool) Acquire(ctx context.Context, c Caller, n int) error {
	part := p.countedUnits(c, n)
	p.mu.Lock()
	if len(p.waiting) == 0 && p.refusal(c, part) == nil {
		p.addUsage(c, part)
		p.mu.Unlock()
		return nil
	}
	w := &waiter{amount: part, granted: make(chan struct{})}
	q := p.queues[c.Key]
	if q == nil {
		q = &callerQueue{pool: p, caller: c, lastGrant: p.grants}
		p.queues[c.Key] = q
		heap.Push(&p.waiting, q)
	}
	q.waiters = append(q.waiters, w)
	p.grantWaiting()
	p.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.granted: // the pool granted the capacity while ctx ended
		p.addUsage(c, -part)
	default:
		q.remove(w)
	}
	p.grantWaiting()
	return ctx.Err()
}

// FreePart returns how much of the capacity that callers like c can use together is free, from 0 to
// 1.
func (p *Pool) FreePart(c Caller) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	size, free := p.size, p.size-p.used
	if c.Anonymous {
		size = max(1, p.size/anonymousDivisor)
		free = min(free, size-p.usedByAnonymous)
	}
	return max(0, float64(free)/float64(size))
}

// Used returns the capacity that all callers use together.
func (p *Pool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.used)
}

// UsedBy returns the capacity that the caller uses.
func (p *Pool) UsedBy(c Caller) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.usedByKey[c.Key])
}

// Waiting returns the number of callers that wait for capacity.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// Refusals returns how many calls of TryAcquire have failed. full is the number of failures because
// the pool was exhausted. share is the number of failures because only the caller's share was
// exhausted.
func (p *Pool) Refusals() (full, share uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fullRefusals, p.shareRefusals
}

// ExceedsShare reports whether a caller exceeds its share.
func (p *Pool) ExceedsShare(c Caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusal(c, 0) != nil
}

// refusal returns nil if the caller can acquire capacity now. Otherwise, it returns the reason.
// part is the number of units to acquire.
func (p *Pool) refusal(c Caller, part int64) *Refusal {
	free := p.size - p.used
	switch {
	case p.used == 0:
		return nil
	case part > free:
		return &p.full
	case c.Anonymous:
		if free = min(free, p.size/anonymousDivisor-p.usedByAnonymous); part > free {
			return &p.full
		}
	}
	used := p.usedByKey[c.Key]
	if used+part > shareFactor*c.weight()*free {
		return &p.exceeded
	}
	if p.HeldDivisor > 0 && used > 0 && c.Customer && (used+part)*int64(p.HeldDivisor) > p.size*c.weight() {
		return &p.exceeded
	}
	return nil
}

// addUsage changes the number of units that the caller uses by part. If part is negative, addUsage
// releases capacity.
func (p *Pool) addUsage(c Caller, part int64) {
	p.used += part
	if c.Anonymous {
		p.usedByAnonymous += part
	}
	if used := p.usedByKey[c.Key] + part; used == 0 {
		delete(p.usedByKey, c.Key)
	} else {
		p.usedByKey[c.Key] = used
	}
	if q := p.queues[c.Key]; q != nil {
		heap.Fix(&p.waiting, q.index)
	}
}

// grantWaiting grants capacity to waiting callers. It skips callers whose share is exhausted, and
// anonymous callers that need more capacity than is available. If any other caller needs more than
// is available, grantWaiting stops.
func (p *Pool) grantWaiting() {
	var passed []*callerQueue
	for len(p.waiting) > 0 {
		q := p.waiting[0]
		w := q.waiters[0]
		// If a caller that is not anonymous needs more capacity than is available, grant nothing more. If
		// callers with smaller requests went first, this caller could wait forever.
		if refused := p.refusal(q.caller, w.amount); refused == &p.full && !q.caller.Anonymous {
			break
		} else if refused != nil {
			heap.Pop(&p.waiting)
			delete(p.queues, q.caller.Key)
			passed = append(passed, q)
			continue
		}
		p.grants++
		q.lastGrant = p.grants
		close(w.granted)
		q.waiters = q.waiters[1:]
		p.addUsage(q.caller, w.amount)
		if len(q.waiters) == 0 {
			heap.Remove(&p.waiting, q.index)
			delete(p.queues, q.caller.Key)
		}
	}
	for _, q := range passed {
		p.queues[q.caller.Key] = q
		heap.Push(&p.waiting, q)
	}
}

// waiter is one request that waits for capacity.
type waiter struct {
	amount  int64
	granted chan struct{}
}

// callerQueue contains the waiting requests of one caller, in the order of their arrival.
type callerQueue struct {
	pool    *Pool
	caller  Caller
	waiters []*waiter
	// lastGrant is the value of Pool.grants when a request in this queue last received capacity. Until
	// then, it is the value when the queue was created. index is the index of this queue in
	// Pool.waiting.
	lastGrant uint64
	index     int
}

// remove removes a waiting request from the queue.
func (q *callerQueue) remove(w *waiter) {
	for i := range q.waiters {
		if q.waiters[i] == w {
			q.waiters = append(q.waiters[:i:i], q.waiters[i+1:]...)
			break
		}
	}
	if len(q.waiters) == 0 {
		heap.Remove(&q.pool.waiting, q.index)
		delete(q.pool.queues, q.caller.Key)
	}
}

// queueHeap is a heap of the callers that wait for capacity. Its first element is the caller that
// uses the least capacity in relation to its weight.
type queueHeap []*callerQueue

func (h queueHeap) Len() int { return len(h) }

func (h queueHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	used, other := a.pool.usedByKey[a.caller.Key]*b.caller.weight(), b.pool.usedByKey[b.caller.Key]*a.caller.weight()
	// If the weighted usage is equal, the caller with the older last grant comes first.
	return used < other || used == other && a.lastGrant < b.lastGrant
}

func (h queueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds a queue. It implements heap.Interface.
func (h *queueHeap) Push(q any) {
	q.(*callerQueue).index = len(*h)
	*h = append(*h, q.(*callerQueue))
}

// Pop removes the last queue. It implements heap.Interface.
func (h *queueHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return q
}
