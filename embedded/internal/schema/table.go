package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
)

// Table is the definition of a table, with its key and its indexes in decoded form. Do not modify a
// Table that the store already uses, because requests read it without a lock.
type Table struct {
	Definition
	BucketName []byte
	Key        []expr.KeyAttribute
	Indexes    []*Index // Indexes are sorted by name
}

// Index is a global or local secondary index. An index entry contains only keys. A read of the
// index takes the projected attributes from the item in the table.
type Index struct {
	Name       string
	Local      bool // Local reports whether the index is a local secondary index
	BucketName []byte
	Key        []expr.KeyAttribute
	// Projected contains the names of the projected attributes. If the index projects all
	// attributes, Projected is nil.
	Projected map[string]bool
}

// Parse decodes a table definition from the store's file.
func Parse(encoded []byte) (*Table, error) {
	d := Definition{}
	if err := json.Unmarshal(encoded, &d); err != nil {
		return nil, fmt.Errorf("the definition of a table is damaged: %w", err)
	}
	return NewTable(d), nil
}

// NewTable returns the Table for a definition.
func NewTable(definition Definition) *Table {
	t := &Table{Definition: definition}
	t.BucketName = fmt.Appendf(nil, "table-%d", t.Bucket)
	t.Key = t.keyAttributes(t.KeySchema)
	for i, d := range slices.Concat(t.GlobalSecondaryIndexes, t.LocalSecondaryIndexes) {
		x := &Index{Name: d.IndexName, Local: i >= len(t.GlobalSecondaryIndexes), BucketName: []byte("index-" + d.IndexName), Key: t.keyAttributes(d.KeySchema)}
		if d.Projection != nil && d.Projection.ProjectionType != "ALL" {
			x.Projected = map[string]bool{}
			for _, k := range slices.Concat(t.Key, x.Key) {
				x.Projected[k.Name] = true
			}
			for _, name := range d.Projection.NonKeyAttributes {
				x.Projected[name] = true
			}
		}
		t.Indexes = append(t.Indexes, x)
	}
	slices.SortFunc(t.Indexes, func(a, b *Index) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// keyAttributes returns the attributes of a key schema, together with their types.
func (t *Table) keyAttributes(schema []KeyElement) []expr.KeyAttribute {
	var key []expr.KeyAttribute
	for _, e := range schema {
		for _, d := range t.AttributeDefinitions {
			if d.AttributeName == e.AttributeName {
				key = append(key, expr.KeyAttribute{Name: d.AttributeName, Kind: attr.KindOf(d.AttributeType), Sort: e.KeyType == "RANGE"})
			}
		}
	}
	return key
}

// Index returns the index with the given name, or nil if the table has no such index.
func (t *Table) Index(name string) *Index {
	for _, x := range t.Indexes {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// ProjectedSize returns the size of an item's projected attributes in bytes. full is the size of
// the complete item.
func (x *Index) ProjectedSize(item attr.Item, full int) int64 {
	if x.Projected == nil {
		return int64(full)
	}
	return int64(x.ProjectedItem(item).Size())
}

// ProjectedItem returns the projected attributes of an item.
func (x *Index) ProjectedItem(item attr.Item) attr.Item {
	if x.Projected == nil {
		return item
	}
	content := attr.Item{}
	for name := range x.Projected {
		if v, ok := item[name]; ok {
			content[name] = v
		}
	}
	return content
}
