// Package read reads one item by its key, and executes Query and Scan requests.
package read

import (
	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// Get is a read of one item by its key.
type Get struct {
	projection expr.Projection
	Table      *schema.Table
	Key        []byte

	Size int    // Size is the item's size, or 0 if the item does not exist
	JSON []byte // JSON is the item after the projection, or nil if the item does not exist
}

// NewGet returns a read with a projection expression. If projection is nil, the read returns the
// complete item.
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

// SetTable sets the table and the key of the read. If the key does not match the table's key
// schema, SetTable returns schema.ErrKeySchema. Other errors describe an invalid value or
// projection.
func (g *Get) SetTable(t *schema.Table, key attr.Item) (err error) {
	g.Table = t
	if err := t.CheckKeyPaths(g.projection); err != nil {
		return err
	}
	g.Key, err = t.EncodeRequestKey(key)
	return err
}

// Read reads the item and sets g.Size and g.JSON. g.JSON is valid only until the transaction ends.
func (g *Get) Read(tx *file.Tx) error {
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
