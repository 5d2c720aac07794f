package document

import (
	"sync"

	"github.com/ordergraph/ordergraph/internal/admission"
)

// SubscriptionMemory counts the memory of the documents and variables that subscriptions hold. It
// is safe for concurrent use.
//
// A query releases its document when the response is sent, but a subscription holds its document
// until it ends. Without a limit, ten thousand subscriptions with documents of the maximum size
// would hold gigabytes. Subscriptions with the same text share one document. The memory of a shared
// document counts only once, for one of the callers.
type SubscriptionMemory struct {
	pool    *admission.Pool
	mu      sync.Mutex
	holders map[*Document]*documentHolders
}

// documentHolders are the callers whose subscriptions hold a document.
type documentHolders struct {
	// payer is the caller charged for the memory of the document.
	payer admission.Caller
	// subscriptions is the number of each caller's subscriptions with the document.
	subscriptions map[admission.Caller]int
}

// NewSubscriptionMemory returns a SubscriptionMemory that reserves bytes in this pool.
func NewSubscriptionMemory(pool *admission.Pool) *SubscriptionMemory {
	return &SubscriptionMemory{pool: pool, holders: map[*Document]*documentHolders{}}
}

// Reserve reserves the memory of a caller's new subscription. It returns a refusal if the pool has
// no capacity for the subscription.
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

// Release releases the memory that Reserve reserved.
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

// variableBytes estimates the memory of a variable's value. In addition to its content, each value
// needs a slot in a list or a map.
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
