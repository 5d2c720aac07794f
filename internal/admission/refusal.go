package admission

import (
	"fmt"
	"strconv"
)

// Refusal is the reason why a caller cannot have a part of a pool now.
type Refusal struct {
	pool *Pool
	// shareExceeded reports that the pool has free capacity, but not for this caller.
	shareExceeded bool
}

// Pool returns the declaration of the pool.
func (r *Refusal) Pool() *Declaration { return &r.pool.Declaration }

// ShareExceeded reports whether the caller has its share. If ShareExceeded is false, the pool is
// exhausted.
func (r *Refusal) ShareExceeded() bool { return r.shareExceeded }

// Error names the pool and the client's options.
func (r *Refusal) Error() string {
	d := r.Pool()
	if r.shareExceeded {
		return fmt.Sprintf("you have reached your share of the server's %s (pool %s): try again when some of yours have ended, or %s", d.Counts, d.Name, d.Advice)
	}
	return fmt.Sprintf("the server has reached its maximum of %s (pool %s): try again in a moment, or %s", d.Counts, d.Name, d.Advice)
}

// RefusalMarkdown describes in Markdown the response to a caller that cannot have a part.
func (d *Declaration) RefusalMarkdown() string {
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
