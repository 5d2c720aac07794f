package document

import (
	"sync"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// SubscriptionMemory limits the memory of all subscriptions' documents and variables. If several
// subscriptions use the same document, the memory of the document counts only once.
// SubscriptionMemory is safe for concurrent use.
type SubscriptionMemory struct {
	pool    *admission.Pool
	mu      sync.Mutex
	holders map[*Document]*documentHolders
}

// documentHolders contains the callers whose subscriptions use the same document.
type documentHolders struct {
	// payer is the caller that the pool charges for the memory of the document.
	payer admission.Caller
	// subscriptions contains, for each caller, the number of its subscriptions that use the
	// document.
	subscriptions map[admission.Caller]int
}

// NewSubscriptionMemory returns a SubscriptionMemory that reserves its bytes in the given pool.
func NewSubscriptionMemory(pool *admission.Pool) *SubscriptionMemory {
	return &SubscriptionMemory{pool: pool, holders: map[*Document]*documentHolders{}}
}

// Reserve reserves memory for a new subscription of a caller. If too little memory is left for the
// caller, Reserve reserves nothing and returns a refusal.
func (h *SubscriptionMemory) Reserve(caller admission.Caller, d *Document, variables map[string]any) *admission.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if refused := h.pool.TryAcquire(caller, variableBytes(variables)); refused != nil {
		return refused
	}
	if h.holders[d] == nil {
		if refused := h.pool.TryAcquire(caller, d.Bytes()); refused != nil {
			h.pool.Release(caller, variableBytes(variables))
			return refused
		}
		h.holders[d] = &documentHolders{payer: caller, subscriptions: map[admission.Caller]int{}}
	}
	h.holders[d].subscriptions[caller]++
	return nil
}

// Release releases the memory that Reserve has reserved for a subscription.
func (h *SubscriptionMemory) Release(caller admission.Caller, d *Document, variables map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pool.Release(caller, variableBytes(variables))
	held := h.holders[d]
	if held.subscriptions[caller]--; held.subscriptions[caller] > 0 {
		return
	}
	delete(held.subscriptions, caller)
	if held.payer != caller {
		return
	}
	for other := range held.subscriptions {
		h.pool.Transfer(caller, other, d.Bytes())
		held.payer = other
		return
	}
	h.pool.Release(caller, d.Bytes())
	delete(h.holders, d)
}

// variableBytes returns the estimated memory of a variable's value in bytes. Each value needs
// memory for its content and for its slot in a list or map.
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
