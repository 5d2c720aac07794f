package document

import (
	"maps"

	"github.com/vektah/gqlparser/v2/ast"
)

// Prepared is an operation of a document, in the form that the server executes.
type Prepared interface {
	// Bytes estimates the memory that the prepared operation takes.
	Bytes() int
}

// PreparedKey identifies a prepared operation of a document: the operation, and the values of the
// variables that are conditions of @skip or @include. Each value is one bit.
type PreparedKey struct {
	operation  *ast.OperationDefinition
	conditions uint64
}

// PreparedKey returns the key of the operation that is prepared for these variables. It returns
// false if @skip and @include have more variables than the key has bits.
func (d *Document) PreparedKey(operation *ast.OperationDefinition, variables map[string]any) (PreparedKey, bool) {
	key := PreparedKey{operation: operation}
	if len(d.conditions) > 64 {
		return key, false
	}
	for i, name := range d.conditions {
		if value, _ := variables[name].(bool); value {
			key.conditions |= 1 << i
		}
	}
	return key, true
}

// Prepared returns the cached prepared operation of a key, or nil if the key is not cached.
func (d *Document) Prepared(key PreparedKey) Prepared {
	if cached := d.prepared.Load(); cached != nil {
		return (*cached)[key]
	}
	return nil
}

// PreparedCapacity returns the maximum number of bytes that the document's prepared operations may
// take.
func (d *Document) PreparedCapacity() int {
	return preparedReserveBytes + d.nodes*nodePreparedReserveBytes
}

// PreparedBytes returns the number of bytes that the document's prepared operations take.
func (d *Document) PreparedBytes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.preparedBytes
}

// CachePrepared caches a prepared operation if PreparedCapacity allows it, and returns the
// operation. If another request has already cached an operation for the same key, CachePrepared
// returns the cached operation.
func (d *Document) CachePrepared(key PreparedKey, prepared Prepared) Prepared {
	d.mu.Lock()
	defer d.mu.Unlock()
	updated := map[PreparedKey]Prepared{}
	if cached := d.prepared.Load(); cached != nil {
		updated = maps.Clone(*cached)
	}
	if updated[key] != nil {
		return updated[key]
	}
	if bytes := prepared.Bytes(); d.preparedBytes+bytes <= d.PreparedCapacity() {
		d.preparedBytes += bytes
		updated[key] = prepared
		d.prepared.Store(&updated)
	}
	return prepared
}
