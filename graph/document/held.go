package document

import (
	"sync"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// Held counts the memory of the documents and variables that subscriptions hold. It is safe for
// concurrent use.
//
// Queries release their documents when the response is sent. Without a limit, ten thousand
// subscriptions with documents of the maximum size would hold gigabytes. Subscriptions with the
// same text share one document, which counts only once, for one of their callers.
type Held struct {
	pool    *admission.Pool
	mu      sync.Mutex
	holders map[*Document]*holders
}

// holders are the callers that hold a document.
type holders struct {
	// payer is the caller whose quota the document is charged to.
	payer admission.Caller
	// subscriptions is the number of subscriptions with the document for each caller.
	subscriptions map[admission.Caller]int
}

// NewHeld returns a Held that reserves memory in this pool of bytes.
func NewHeld(pool *admission.Pool) *Held { return &Held{pool: pool, holders: map[*Document]*holders{}} }

// Take reserves the memory of a caller's new subscription. It returns a refusal if the pool has no
// capacity for the subscription.
func (h *Held) Take(caller admission.Caller, d *Document, variables map[string]any) *admission.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if refused := h.pool.Take(caller, variableBytes(variables)); refused != nil {
		return refused
	}
	if h.holders[d] == nil {
		if refused := h.pool.Take(caller, d.Bytes()); refused != nil {
			h.pool.Give(caller, variableBytes(variables))
			return refused
		}
		h.holders[d] = &holders{payer: caller, subscriptions: map[admission.Caller]int{}}
	}
	h.holders[d].subscriptions[caller]++
	return nil
}

// Give releases the memory that Take reserved.
func (h *Held) Give(caller admission.Caller, d *Document, variables map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pool.Give(caller, variableBytes(variables))
	held := h.holders[d]
	if held.subscriptions[caller]--; held.subscriptions[caller] > 0 {
		return
	}
	delete(held.subscriptions, caller)
	if held.payer != caller {
		return
	}
	for other := range held.subscriptions {
		h.pool.Move(caller, other, d.Bytes())
		held.payer = other
		return
	}
	h.pool.Give(caller, d.Bytes())
	delete(h.holders, d)
}

// variableBytes estimates the memory of a variable's value. Each value is stored in a list or a
// map, which needs some words for it.
func variableBytes(value any) int {
	const slotBytes = 64
	switch value := value.(type) {
	case string:
		return slotBytes + len(value)
	case []any:
		bytes := slotBytes
		for _, v := range value {
			bytes += variableBytes(v)
		}
		return bytes
	case map[string]any:
		bytes := slotBytes
		for name, v := range value {
			bytes += len(name) + variableBytes(v)
		}
		return bytes
	default:
		return slotBytes
	}
}
