package repair

// Recently remembers the last texts that were added, at least 100,000 of them.
type Recently struct{ now, before map[string]bool }

const maxRecently = 100_000

// Add reports whether the text is new.
func (r *Recently) Add(s string) bool {
	if r.Has(s) {
		return false
	}
	if r.now == nil || len(r.now) >= maxRecently {
		r.now, r.before = map[string]bool{}, r.now
	}
	r.now[s] = true
	return true
}

// Has reports whether the text was added lately.
func (r *Recently) Has(s string) bool { return r.now[s] || r.before[s] }
