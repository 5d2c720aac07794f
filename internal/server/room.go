package server

import "sync/atomic"

// room is memory that requests can hold while they wait for their clients to send or to read, in bytes. Such a wait takes no place from
// requests that are worked on, so that slow clients do not stop fast ones; but without a bound, thousands of them would each hold
// the largest body or answer that there can be.
type room struct {
	most  int64
	taken atomic.Int64
}

func newRoom(bytes int) *room { return &room{most: int64(bytes)} }

// free is how many bytes need no room: who asks for little is served even when others have taken it all.
const free = 16 << 10

// take tells whether there is room for so many bytes, and takes it. What alone is more than there is takes all.
func (r *room) take(bytes int) bool {
	if bytes <= free {
		return true
	}
	added := min(int64(bytes), r.most)
	for {
		before := r.taken.Load()
		if before+added > r.most {
			return false
		}
		if r.taken.CompareAndSwap(before, before+added) {
			return true
		}
	}
}

// give gives back what take has taken.
func (r *room) give(bytes int) {
	if bytes > free {
		r.taken.Add(-min(int64(bytes), r.most))
	}
}
