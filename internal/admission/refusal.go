package admission

import (
	"fmt"
	"strconv"
)

// Refusal is the reason why a pool does not grant capacity to a caller.
type Refusal struct {
	// Pool is the declaration of the pool that refused the caller.
	Pool *PoolDeclaration
	// ShareExceeded is true if the caller has reached its share, although the pool has free capacity.
	ShareExceeded bool
}

// Error describes the refusal and what the client can do about it.
func (r *Refusal) Error() string {
	d := r.Pool
	if r.ShareExceeded {
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
		return "`" + d.Code + "` (" + strconv.Itoa(d.Status) + ")"
	}
}
