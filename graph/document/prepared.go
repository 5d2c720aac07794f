package document

import (
	"maps"

	"github.com/vektah/gqlparser/v2/ast"
)

// Prepared is an operation in the form that the server executes. Package operation implements this
// interface.
type Prepared interface {
	// Bytes returns the estimated memory of the prepared operation in bytes.
	Bytes() int
}

// PreparedKey identifies a prepared operation of a document. It consists of the operation, and of
// the values of the variables in @skip and @include. Each value is one bit.
type PreparedKey struct {
	operation  *ast.OperationDefinition
	conditions uint64
}

// PreparedKey returns the key of an operation with the given variables. If the document uses more
// than 64 variables in @skip and @include, it returns false, because the key has only 64 bits.
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

// Prepared returns the prepared operation with the given key, or nil if the document has not cached
// it.
func (d *Document) Prepared(key PreparedKey) Prepared {
	if cached := d.prepared.Load(); cached != nil {
		return (*cached)[key]
	}
	return nil
}

// PreparedCapacity returns the maximum memory of the document's prepared operations in bytes.
func (d *Document) PreparedCapacity() int {
	return preparedReserveBytes + d.nodes*nodePreparedReserveBytes
}

// PreparedBytes returns the estimated memory of the document's prepared operations in bytes.
func (d *Document) PreparedBytes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.preparedBytes
}

// CachePrepared caches prepared if PreparedCapacity allows it, and returns prepared. If the key is
// already cached, CachePrepared returns the cached operation.
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
