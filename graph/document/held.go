package document

import "sync"

// Held counts the memory that documents and variables take for as long as subscriptions hold them.
// Those of queries are gone with their answers; ten thousand subscriptions, each with the longest
// document that there can be, would hold gigabytes for as long as they like. One document that many
// send is held once. It is safe for concurrent use.
type Held struct {
	mu   sync.Mutex
	left int
	// by is the number of subscriptions of each document.
	by map[*Document]int
}

// NewHeld returns a Held with room for so many bytes.
func NewHeld(bytes int) *Held { return &Held{left: bytes, by: map[*Document]int{}} }

// Take counts a subscription, and reports whether there is room for it.
func (h *Held) Take(d *Document, variables map[string]any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes := variableBytes(variables)
	if h.by[d] == 0 {
		bytes += d.Bytes()
	}
	if bytes > h.left {
		return false
	}
	h.left -= bytes
	h.by[d]++
	return true
}

// Give takes back what Take has counted.
func (h *Held) Give(d *Document, variables map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left += variableBytes(variables)
	if h.by[d]--; h.by[d] == 0 {
		h.left += d.Bytes()
		delete(h.by, d)
	}
}

// Left returns how many bytes there is still room for.
func (h *Held) Left() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.left
}

// variableBytes is what a value of the variables takes, about: each value has a place of some words
// in a list or a map.
func variableBytes(value any) int {
	const place = 64
	switch value := value.(type) {
	case string:
		return place + len(value)
	case []any:
		bytes := place
		for _, v := range value {
			bytes += variableBytes(v)
		}
		return bytes
	case map[string]any:
		bytes := place
		for name, v := range value {
			bytes += len(name) + variableBytes(v)
		}
		return bytes
	default:
		return place
	}
}
