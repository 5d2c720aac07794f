package loaders

// smallMap is a map that searches its entries linearly while it has few of them. A linear search of
// few entries is faster than a Go map and allocates less memory.
type smallMap[K comparable, T any] struct {
	entries []entry[K, T]
	// index maps each key to its index in entries. It is nil while the map has at most maxLinear
	// entries.
	index map[K]int
}

type entry[K comparable, T any] struct {
	key   K
	value T
}

// maxLinear is the maximum number of entries that the map searches linearly.
const maxLinear = 8

func (t *smallMap[K, T]) find(key K) (value T, ok bool) {
	if t.index != nil {
		at, ok := t.index[key]
		if ok {
			value = t.entries[at].value
		}
		return value, ok
	}
	for i := range t.entries {
		if t.entries[i].key == key {
			return t.entries[i].value, true
		}
	}
	return value, false
}

// add adds a key, which must not be in the map.
func (t *smallMap[K, T]) add(key K, value T) {
	t.entries = append(t.entries, entry[K, T]{key, value})
	switch {
	case t.index != nil:
		t.index[key] = len(t.entries) - 1
	case len(t.entries) > maxLinear:
		t.index = make(map[K]int, cap(t.entries))
		for i := range t.entries {
			t.index[t.entries[i].key] = i
		}
	}
}

// grow reserves capacity for the given number of keys if the map is empty.
func (t *smallMap[K, T]) grow(more int) {
	if need := len(t.entries) + more; t.entries == nil {
		t.entries = make([]entry[K, T], 0, need)
	}
}
