package loaders

// smallMap finds what belongs to a key. Most tables of a request have a handful of keys, which are
// found faster without a map, and cost less.
type smallMap[K comparable, T any] struct {
	entries []entry[K, T]
	// index is where a key's entry stands; nil as long as there are few.
	index map[K]int
}

type entry[K comparable, T any] struct {
	key K
	of  T
}

// few is up to how many entries are looked through.
const few = 8

func (t *smallMap[K, T]) find(key K) (of T, ok bool) {
	if t.index != nil {
		at, ok := t.index[key]
		if ok {
			of = t.entries[at].of
		}
		return of, ok
	}
	for i := range t.entries {
		if t.entries[i].key == key {
			return t.entries[i].of, true
		}
	}
	return of, false
}

// add adds a key that find has not found.
func (t *smallMap[K, T]) add(key K, of T) {
	t.entries = append(t.entries, entry[K, T]{key, of})
	switch {
	case t.index != nil:
		t.index[key] = len(t.entries) - 1
	case len(t.entries) > few:
		t.index = make(map[K]int, cap(t.entries))
		for i := range t.entries {
			t.index[t.entries[i].key] = i
		}
	}
}

// grow makes room for so many keys more.
func (t *smallMap[K, T]) grow(more int) {
	if need := len(t.entries) + more; t.entries == nil {
		t.entries = make([]entry[K, T], 0, need)
	}
}
