package repair

// RecentSet is a set of strings with limited memory. It contains at least the last 100,000 added
// strings, and forgets older ones.
type RecentSet struct{ current, previous map[string]bool }

const maxRecent = 100_000

// Add adds a string. It reports whether the set did not contain the string.
func (r *RecentSet) Add(s string) bool {
	if r.Has(s) {
		return false
	}
	if r.current == nil || len(r.current) >= maxRecent {
		r.current, r.previous = map[string]bool{}, r.current
	}
	r.current[s] = true
	return true
}

// Has reports whether a string was added recently.
func (r *RecentSet) Has(s string) bool { return r.current[s] || r.previous[s] }
