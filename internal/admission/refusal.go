package admission

import (
	"fmt"
	"strconv"
)

// Refusal is why a caller cannot have a part of a pool now.
type Refusal struct {
	pool *Pool
	// ofCaller reports that there is something left, but not for this caller.
	ofCaller bool
}

// Pool returns the declaration of the pool.
func (r *Refusal) Pool() *Declaration { return &r.pool.Declaration }

// OfCaller reports whether the caller has its share. Otherwise the pool has nothing left.
func (r *Refusal) OfCaller() bool { return r.ofCaller }

// Error says which pool it is and what the client can do.
func (r *Refusal) Error() string {
	d := r.Pool()
	if r.ofCaller {
		return fmt.Sprintf("you have your share of the server's %s (pool %s): try again when some of yours have ended, or %s", d.Holds, d.Name, d.Advice)
	}
	return fmt.Sprintf("the server has as many %s as it takes on (pool %s): try again in a moment, or %s", d.Holds, d.Name, d.Advice)
}

// Exceeded says in Markdown what happens to a caller that cannot have a part.
func (d *Declaration) Exceeded() string {
	switch {
	case d.Code == "":
		return d.Otherwise
	case d.Status == 0:
		return "`" + d.Code + "`"
	default:
		return "`" + d.Code + "` (" + itoa(d.Status) + ")"
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
