package server

import "golang.org/x/sync/semaphore"

// room is memory that requests can hold while they wait for their clients to send or to read, in bytes. Such a wait takes no place from
// requests that are worked on, so that slow clients do not stop fast ones; but without a bound, thousands of them would each hold
// the largest body or answer that there can be.
type room struct {
	most int64
	left *semaphore.Weighted
}

func newRoom(bytes int) *room { return &room{int64(bytes), semaphore.NewWeighted(int64(bytes))} }

// free is how many bytes need no room: who asks for little is served even when others have taken it all.
const free = 16 << 10

// take tells whether there is room for so many bytes, and takes it. What alone is more than there is takes all.
func (r *room) take(bytes int) bool {
	return bytes <= free || r.left.TryAcquire(min(int64(bytes), r.most))
}

// give gives back what take has taken.
func (r *room) give(bytes int) {
	if bytes > free {
		r.left.Release(min(int64(bytes), r.most))
	}
}
