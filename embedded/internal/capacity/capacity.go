// Package capacity computes the capacity units that DynamoDB would consume for a request. It adds
// them to the response as ConsumedCapacity.
package capacity

import (
	"bytes"
	"maps"
	"slices"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// Usage contains the capacity units that a request consumes.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
type Usage struct {
	mode string // mode is the request's ReturnConsumedCapacity
	Kind string // Kind is ReadCapacityUnits or WriteCapacityUnits for a transaction, and otherwise ""
	of   map[string]*tableUsage
}

// tableUsage contains the capacity units that a request consumes in one table. The maps global and
// local contain the units of each index, by index name.
type tableUsage struct {
	table         float64
	global, local map[string]float64
}

// New returns a Usage without capacity units. mode is the request's ReturnConsumedCapacity.
func New(mode string) *Usage { return &Usage{mode: mode, of: map[string]*tableUsage{}} }

// shouldReport reports whether the response must contain the consumed capacity.
func (u *Usage) shouldReport() bool { return u.mode == "TOTAL" || u.mode == "INDEXES" }

// Add adds the capacity units that a request consumes in a table and in its indexes.
func (u *Usage) Add(t *schema.Table, units float64, indexes map[string]float64) {
	if !u.shouldReport() {
		return
	}
	of := u.of[t.TableName]
	if of == nil {
		of = &tableUsage{global: map[string]float64{}, local: map[string]float64{}}
		u.of[t.TableName] = of
	}
	of.table += units
	for name, units := range indexes {
		if t.Index(name).Local {
			of.local[name] += units
		} else {
			of.global[name] += units
		}
	}
}

// AddWrite adds the capacity units of a write. factor is 2 if the write belongs to a transaction,
// and otherwise 1.
func (u *Usage) AddWrite(w *storage.Change, factor float64) {
	if !u.shouldReport() {
		return
	}
	table, indexes := 0.0, map[string]float64{}
	EachWrite(w, func(x *schema.Index, _ []byte, units float64) {
		if x == nil {
			table = factor * units
		} else {
			indexes[x.Name] += factor * units
		}
	})
	u.Add(w.Table, table, indexes)
}

// EachWrite calls visit for the item and for each index entry that a write changes, with their
// encoded keys and the write capacity units outside a transaction. For the item, the index is nil.
func EachWrite(w *storage.Change, visit func(x *schema.Index, key []byte, units float64)) {
	visit(nil, w.Key, writeUnits(max(w.OldSize, w.NewSize)))
	for _, x := range w.Table.Indexes {
		from, to := x.EntryKey(w.Old, w.Key), x.EntryKey(w.New, w.Key)
		before, after := x.ProjectedItem(w.Old), x.ProjectedItem(w.New)
		if bytes.Equal(from, to) {
			if from != nil && !maps.EqualFunc(before, after, attr.Value.Equal) {
				visit(x, to, writeUnits(max(before.Size(), after.Size())))
			}
			continue
		}
		// DynamoDB deletes the old entry and adds a new one, because the key of an entry cannot change.
		if from != nil {
			visit(x, from, writeUnits(before.Size()))
		}
		if to != nil {
			visit(x, to, writeUnits(after.Size()))
		}
	}
}

// writeUnits returns the write capacity units for an item: one unit for each KB or part of a KB.
// size is the item's size in bytes.
func writeUnits(size int) float64 { return float64(max(1, (size+1023)/1024)) }

// ReadUnits returns the read capacity units for items of the given total size in bytes. A
// consistent read needs one unit for every 4 KB, rounded up. Any other read needs half of
// these units.
func ReadUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// AppendSingleTable adds the consumed capacity to the response of a request that uses one table.
func (u *Usage) AppendSingleTable(o *wire.ObjectWriter) {
	for name := range u.of {
		o.BeginMember("ConsumedCapacity")
		u.appendTable(o, name)
	}
}

// AppendTableList adds the consumed capacity of each table to the response of a request that can
// use several tables.
func (u *Usage) AppendTableList(o *wire.ObjectWriter) {
	if !u.shouldReport() {
		return
	}
	names := slices.Sorted(maps.Keys(u.of))
	o.List("ConsumedCapacity", len(names), func(i int) { u.appendTable(o, names[i]) })
}

// appendTable adds the consumed capacity of one table.
func (u *Usage) appendTable(o *wire.ObjectWriter, name string) {
	of := u.of[name]
	total := of.table
	for _, indexes := range []map[string]float64{of.global, of.local} {
		for _, units := range indexes {
			total += units
		}
	}
	units := func(n float64) {
		o.Float("CapacityUnits", n)
		if u.Kind != "" {
			o.Float(u.Kind, n)
		}
	}
	o.Open()
	o.Text("TableName", name)
	units(total)
	if u.mode == "INDEXES" {
		o.Nested("Table", func() { units(of.table) })
		list := func(member string, indexes map[string]float64) {
			if len(indexes) == 0 {
				return
			}
			o.Nested(member, func() {
				for _, x := range slices.Sorted(maps.Keys(indexes)) {
					o.Nested(x, func() { units(indexes[x]) })
				}
			})
		}
		list("GlobalSecondaryIndexes", of.global)
		list("LocalSecondaryIndexes", of.local)
	}
	o.Close()
}
