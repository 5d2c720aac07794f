package document

import (
	"maps"

	"github.com/vektah/gqlparser/v2/ast"
)

// Prepared is an operation of a document in the form in which it is executed.
type Prepared interface {
	// Bytes estimates the memory that the prepared operation takes.
	Bytes() int
}

// PreparedKey identifies a prepared operation among those of a document: the operation, and one bit
// for each variable that decides what is selected.
type PreparedKey struct {
	operation  *ast.OperationDefinition
	conditions uint64
}

// PreparedKey returns the key of an operation's prepared form; false where more variables decide
// than the key has bits.
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

// Prepared returns the prepared operation of a key; nil where none is kept.
func (d *Document) Prepared(key PreparedKey) Prepared {
	if kept := d.prepared.Load(); kept != nil {
		return (*kept)[key]
	}
	return nil
}

// Room is the number of bytes that the document's prepared operations may take.
func (d *Document) Room() int { return roomBytes + d.nodes*nodeRoomBytes }

// PreparedBytes is the number of bytes that the document's prepared operations take.
func (d *Document) PreparedBytes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.preparedBytes
}

// KeepPrepared adds a prepared operation if there is room for it, and returns it; or the one that
// another request added first.
func (d *Document) KeepPrepared(key PreparedKey, prepared Prepared) Prepared {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[PreparedKey]Prepared{}
	if kept := d.prepared.Load(); kept != nil {
		all = maps.Clone(*kept)
	}
	if all[key] != nil {
		return all[key]
	}
	if bytes := prepared.Bytes(); d.preparedBytes+bytes <= d.Room() {
		d.preparedBytes += bytes
		all[key] = prepared
		d.prepared.Store(&all)
	}
	return prepared
}
