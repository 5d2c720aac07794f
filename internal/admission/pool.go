package admission

import (
	"container/heap"
	"context"
	"sync"
)

// A caller can have up to borrow times what is still free of a pool. A single caller can so have
// seven eighths of it, two can have seven fifteenths each, and something is always left for the
// next one. This is the dynamic threshold by which switches share their buffers (A. Choudhury and
// E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM
// Transactions on Networking 6, 1998): a caller that has more than the threshold gets nothing more
// until it has given enough back, so nothing has to be taken from anybody.
const borrow = 7

// strangersPart is the part of a pool that all strangers have together: a half.
const strangersPart = 2

// Pool is an amount of something that callers share: they take parts of it and give them back. It
// is safe for concurrent use.
type Pool struct {
	Declaration
	size int64
	// full and exceeded are the refusals of the pool.
	full, exceeded Refusal

	mu sync.Mutex
	// used is what all callers have, strangers what strangers have, and by what each caller has.
	used, strangers int64
	by              map[string]int64
	// waiting are the callers that wait, the next one first, and queues has them by their keys.
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

// Take takes a part of n for a caller. It returns nil, or why the caller cannot have it now. A part
// that is larger than the pool takes all of it; it fits if nobody else has anything.
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

// Give gives back a part that was taken.
func (p *Pool) Give(c Caller, n int) {
	if n <= p.Uncounted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(c, -p.part(c, n))
	p.serve()
}

// part is what is taken for n: at most all that the caller can have.
func (p *Pool) part(c Caller, n int) int64 {
	most := p.size
	if c.Stranger {
		most = max(1, p.size/strangersPart)
	}
	return min(int64(max(n, p.Least)), most)
}

// Move makes a part that one caller has taken another's, even if it exceeds the other's share.
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

// Await takes a part as soon as the caller can have it. Of those who wait, the caller that has
// least is served first.
//
// Errors: that of the context.
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
	case <-t.served: // at the same moment
		p.add(c, -part)
	default:
		q.leave(t)
	}
	p.serve()
	return ctx.Err()
}

// Used returns how much of the pool is taken.
func (p *Pool) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.used)
}

// UsedBy returns how much of the pool a caller has.
func (p *Pool) UsedBy(c Caller) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.by[c.Key])
}

// Waiting returns how many callers wait for a part.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// OverShare reports whether a caller has more than its share.
func (p *Pool) OverShare(c Caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusal(c, 0) != nil
}

// refusal returns nil if a caller can have a part now.
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

// add counts a part, which is negative if it is given back.
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

// serve gives parts to waiting callers. A caller that has its share is passed over; a part that is
// larger than what is free is waited for, so that small parts do not keep it out for ever.
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

// ticket is a part that a caller waits for.
type ticket struct {
	part   int64
	served chan struct{}
}

// queue has the tickets of one caller, the oldest first.
type queue struct {
	pool    *Pool
	caller  Caller
	tickets []*ticket
	// turn is when the caller last got a part, and index is its place in Pool.waiting.
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

// waiting is a heap of those who wait: who has least for its weight comes first, and of these who
// got a part longest ago.
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

// Push adds a queue; heap calls it.
func (w *waiting) Push(q any) {
	q.(*queue).index = len(*w)
	*w = append(*w, q.(*queue))
}

// Pop removes the last queue; heap calls it.
func (w *waiting) Pop() any {
	last := len(*w) - 1
	q := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return q
}
