package admission

import (
	"fmt"
	"strconv"
)

// Refusal is the reason why a pool does not grant capacity to a caller.
type Refusal struct {
	pool *Pool
	// shareExceeded is true if the caller has reached its share, although the pool has free
	// capacity.
	shareExceeded bool
}

// Pool returns the declaration of the pool that refused the caller.
func (r *Refusal) Pool() *PoolDeclaration { return &r.pool.PoolDeclaration }

// ShareExceeded reports whether the refusal is due to the caller's share. If it returns false, the
// pool is exhausted.
func (r *Refusal) ShareExceeded() bool { return r.shareExceeded }

// Error describes the refusal and what the client can do about it.
func (r *Refusal) Error() string {
	d := r.Pool()
	if r.shareExceeded {
		return fmt.Sprintf("you have reached your share of the server's %s (pool %s): try again when some of your requests have ended, or %s", d.Counts, d.Name, d.Advice)
	}
	return fmt.Sprintf("the server has reached its maximum of %s (pool %s): try again in a moment, or %s", d.Counts, d.Name, d.Advice)
}

// RefusalMarkdown describes in Markdown what happens if the pool has no capacity for a caller.
func (d *PoolDeclaration) RefusalMarkdown() string {
	switch {
	case d.Code == "":
		return d.Consequence
	case d.Status == 0:
		return "`" + d.Code + "`"
	default:
		return "`" + d.Code + "` (" + itoa(d.Status) + ")"
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
