// Package read reads items: one item by its key, or the items of a Query or a Scan.
package read

import (
	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
	"github.com/ordergraph/ordergraph/internal/embedded/schema"
	"github.com/ordergraph/ordergraph/internal/embedded/storage"
	"github.com/ordergraph/ordergraph/internal/embedded/wire"
)

// Get is a read of one item by its key.
type Get struct {
	projection expr.Projection
	Table      *schema.Table
	Key        []byte

	Size int    // Size is the item's size, 0 if there is no item
	JSON []byte // JSON is the projected item, nil if there is no item
}

// NewGet parses a projection expression, which may be nil, and returns a read with this projection.
func NewGet(projection *string, p *expr.Placeholders) (*Get, error) {
	g := &Get{}
	err := p.Check(projection != nil)
	if err == nil && projection != nil {
		g.projection, err = expr.ParseProjection(*projection, p)
	}
	if err == nil {
		err = p.CheckAllUsed()
	}
	return g, wire.AsInvalid(err)
}

// SetTable sets the table and the key of the read, and validates the projection. It returns
// schema.ErrKeySchema, or an error about a value of the key.
func (g *Get) SetTable(t *schema.Table, key attr.Item) (err error) {
	g.Table = t
	if err := t.CheckKeyPaths(g.projection); err != nil {
		return err
	}
	g.Key, err = t.EncodeRequestKey(key)
	return err
}

// Read reads the item. g.JSON is valid until the transaction ends.
func (g *Get) Read(tx *bbolt.Tx) error {
	b := tx.Bucket(g.Table.BucketName)
	if b == nil {
		return wire.NotFound()
	}
	stored := storage.ItemBucket(b).Get(g.Key)
	if stored == nil {
		return nil
	}
	g.Size, g.JSON = storage.SplitItem(stored)
	if len(g.projection) == 0 {
		return nil
	}
	item, err := attr.ParseItem(g.JSON)
	g.JSON = g.projection.Apply(item).AppendJSON(nil)
	return err
}
