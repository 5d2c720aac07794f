package check

// recentSet is a set of strings with limited memory. It contains at least the last 100,000 added
// strings, and forgets older ones.
type recentSet struct{ current, previous map[string]bool }

const maxRecent = 100_000

// add adds a string. It reports whether the set did not contain the string.
func (r *recentSet) add(s string) bool {
	if r.has(s) {
		return false
	}
	if r.current == nil || len(r.current) >= maxRecent {
		r.current, r.previous = map[string]bool{}, r.current
	}
	r.current[s] = true
	return true
}

// has reports whether a string was added recently.
func (r *recentSet) has(s string) bool { return r.current[s] || r.previous[s] }
