package document

import (
	"sync"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// Held counts the memory that documents and variables take for as long as subscriptions hold them.
// Those of queries are gone with their answers; ten thousand subscriptions, each with the longest
// document that there can be, would hold gigabytes for as long as they like. One document that many
// send is held once, and counts to one of them. It is safe for concurrent use.
type Held struct {
	pool *admission.Pool
	mu   sync.Mutex
	by   map[*Document]*holders
}

// holders are those who hold a document.
type holders struct {
	// payer is the caller whom the document counts to.
	payer admission.Caller
	// subscriptions are the numbers of subscriptions with the document, by caller.
	subscriptions map[admission.Caller]int
}

// NewHeld returns a Held that takes of a pool of bytes.
func NewHeld(pool *admission.Pool) *Held { return &Held{pool: pool, by: map[*Document]*holders{}} }

// Take counts a subscription of a caller. It returns nil, or why there is no room for it.
func (h *Held) Take(caller admission.Caller, d *Document, variables map[string]any) *admission.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if refused := h.pool.Take(caller, variableBytes(variables)); refused != nil {
		return refused
	}
	if h.by[d] == nil {
		if refused := h.pool.Take(caller, d.Bytes()); refused != nil {
			h.pool.Give(caller, variableBytes(variables))
			return refused
		}
		h.by[d] = &holders{payer: caller, subscriptions: map[admission.Caller]int{}}
	}
	h.by[d].subscriptions[caller]++
	return nil
}

// Give takes back what Take has counted.
func (h *Held) Give(caller admission.Caller, d *Document, variables map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pool.Give(caller, variableBytes(variables))
	by := h.by[d]
	if by.subscriptions[caller]--; by.subscriptions[caller] > 0 {
		return
	}
	delete(by.subscriptions, caller)
	if by.payer != caller {
		return
	}
	for other := range by.subscriptions {
		h.pool.Move(caller, other, d.Bytes())
		by.payer = other
		return
	}
	h.pool.Give(caller, d.Bytes())
	delete(h.by, d)
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
