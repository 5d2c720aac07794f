package admission

import (
	"container/heap"
	"context"
	"sync"
)

// A caller can use up to borrow times the free part of a pool. So a single caller can use seven
// eighths of a pool, and two callers seven fifteenths each. Some capacity always remains for the
// next caller.
//
// This is the dynamic threshold of switches with shared buffers (A. Choudhury and E. Hahne,
// "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions on
// Networking 6, 1998). A caller above the threshold gets no more until it has released enough, so
// the pool never revokes capacity.
const borrow = 7

// strangersPart is the divisor of a pool's size that gives the capacity of all strangers together.
const strangersPart = 2

// Pool is a capacity that callers share. Callers acquire parts of it and release them. It is safe
// for concurrent use.
type Pool struct {
	Declaration
	size int64
	// full is the refusal if the capacity is exhausted, and exceeded if only the caller's share is.
	full, exceeded Refusal

	mu sync.Mutex
	// used is the capacity that all callers have, strangers the capacity of all strangers, and by the
	// capacity of each caller by its key.
	used, strangers int64
	by              map[string]int64
	// waiting is a heap of the callers that wait, the next one first. queues has the same callers by
	// their keys.
	waiting waiting
	queues  map[string]*queue
	// turns counts the parts that waiting callers have got.
	turns uint64
}

func newPool(d Declaration) *Pool {
	p := &Pool{Declaration: d, size: int64(max(1, d.Size)), by: map[string]int64{}, queues: map[string]*queue{}}
	p.full, p.exceeded = Refusal{pool: p}, Refusal{pool: p, ofCaller: true}
	return p
}

// Take acquires n for a caller without waiting. It returns nil, or the reason why the caller cannot
// have n now. If n exceeds the pool, Take acquires the whole pool, which must be unused.
func (p *Pool) Take(c Caller, n int) *Refusal {
	if n <= p.Uncounted {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.part(c, n)
	if refused := p.refusal(c, part); refused != nil {
		return refused
	}
	p.add(c, part)
	return nil
}

// Give releases n that the caller has acquired.
func (p *Pool) Give(c Caller, n int) {
	if n <= p.Uncounted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(c, -p.part(c, n))
	p.serve()
}

// part returns the capacity that a request for n acquires: at most all that the caller can have.
func (p *Pool) part(c Caller, n int) int64 {
	most := p.size
	if c.Stranger {
		most = max(1, p.size/strangersPart)
	}
	return min(int64(max(n, p.Least)), most)
}

// Move transfers n from one caller to another, even if n exceeds the other caller's share.
func (p *Pool) Move(from, to Caller, n int) {
	if n <= p.Uncounted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(from, -p.part(from, n))
	p.add(to, p.part(to, n))
	p.serve()
}

// Await acquires n as soon as the caller can have it. Of the waiting callers, the one with the
// least capacity is next. It returns the context's error if the context ends first.
func (p *Pool) Await(ctx context.Context, c Caller, n int) error {
	part := p.part(c, n)
	p.mu.Lock()
	if len(p.waiting) == 0 && p.refusal(c, part) == nil {
		p.add(c, part)
		p.mu.Unlock()
		return nil
	}
	t := &ticket{part: part, served: make(chan struct{})}
	q := p.queues[c.Key]
	if q == nil {
		q = &queue{pool: p, caller: c, turn: p.turns}
		p.queues[c.Key] = q
		heap.Push(&p.waiting, q)
	}
	q.tickets = append(q.tickets, t)
	p.serve()
	p.mu.Unlock()
	select {
	case <-t.served:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-t.served: // granted at the same moment
		p.add(c, -part)
	default:
		q.leave(t)
	}
	p.serve()
	return ctx.Err()
}

// Used returns how much of the pool is in use.
func (p *Pool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.used)
}

// UsedBy returns how much of the pool a caller uses.
func (p *Pool) UsedBy(c Caller) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.by[c.Key])
}

// Waiting returns how many callers wait.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// OverShare reports whether a caller exceeds its share.
func (p *Pool) OverShare(c Caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusal(c, 0) != nil
}

// refusal returns nil if a caller can have a part now, and otherwise the reason.
func (p *Pool) refusal(c Caller, part int64) *Refusal {
	free := p.size - p.used
	switch {
	case p.used == 0:
		return nil
	case part > free:
		return &p.full
	case c.Stranger:
		if free = min(free, p.size/strangersPart-p.strangers); part > free {
			return &p.full
		}
	}
	if p.by[c.Key]+part > borrow*c.weight()*free {
		return &p.exceeded
	}
	return nil
}

// add adds a part to the capacity in use. A negative part releases capacity.
func (p *Pool) add(c Caller, part int64) {
	p.used += part
	if c.Stranger {
		p.strangers += part
	}
	if has := p.by[c.Key] + part; has == 0 {
		delete(p.by, c.Key)
	} else {
		p.by[c.Key] = has
	}
	if q := p.queues[c.Key]; q != nil {
		heap.Fix(&p.waiting, q.index)
	}
}

// serve grants capacity to waiting callers. It skips a caller that has its share. If a part exceeds
// the free capacity, serve stops there: otherwise small parts could keep a large one out forever.
func (p *Pool) serve() {
	var passed []*queue
	for len(p.waiting) > 0 {
		q := p.waiting[0]
		t := q.tickets[0]
		if refused := p.refusal(q.caller, t.part); refused == &p.full && !q.caller.Stranger {
			break
		} else if refused != nil {
			heap.Pop(&p.waiting)
			delete(p.queues, q.caller.Key)
			passed = append(passed, q)
			continue
		}
		p.turns++
		q.turn = p.turns
		close(t.served)
		q.tickets = q.tickets[1:]
		p.add(q.caller, t.part)
		if len(q.tickets) == 0 {
			heap.Remove(&p.waiting, q.index)
			delete(p.queues, q.caller.Key)
		}
	}
	for _, q := range passed {
		p.queues[q.caller.Key] = q
		heap.Push(&p.waiting, q)
	}
}

// ticket is one waiting request for capacity.
type ticket struct {
	part   int64
	served chan struct{}
}

// queue has the tickets of one caller, the oldest first.
type queue struct {
	pool    *Pool
	caller  Caller
	tickets []*ticket
	// turn orders callers by when they last got a part. index is the position in Pool.waiting.
	turn  uint64
	index int
}

// leave removes a ticket.
func (q *queue) leave(t *ticket) {
	for i := range q.tickets {
		if q.tickets[i] == t {
			q.tickets = append(q.tickets[:i:i], q.tickets[i+1:]...)
			break
		}
	}
	if len(q.tickets) == 0 {
		heap.Remove(&q.pool.waiting, q.index)
		delete(q.pool.queues, q.caller.Key)
	}
}

// waiting is a heap of the callers that wait. The first is the caller that has the least in
// relation to its weight. Of equal callers, the first is the one that has waited longest since its
// last part.
type waiting []*queue

func (w waiting) Len() int { return len(w) }

func (w waiting) Less(i, j int) bool {
	a, b := w[i], w[j]
	has, other := a.pool.by[a.caller.Key]*b.caller.weight(), b.pool.by[b.caller.Key]*a.caller.weight()
	return has < other || has == other && a.turn < b.turn
}

func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

// Push adds a queue. It implements heap.Interface.
func (w *waiting) Push(q any) {
	q.(*queue).index = len(*w)
	*w = append(*w, q.(*queue))
}

// Pop removes the last queue. It implements heap.Interface.
func (w *waiting) Pop() any {
	last := len(*w) - 1
	q := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return q
}
