package repair

// RecentSet remembers the last texts that were added, at least 100,000 of them.
type RecentSet struct{ current, previous map[string]bool }

const maxRecent = 100_000

// Add reports whether the text is new.
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

// Has reports whether the text was added lately.
func (r *RecentSet) Has(s string) bool { return r.current[s] || r.previous[s] }
