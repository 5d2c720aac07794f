package embedded

import (
	"bytes"
	"maps"
	"slices"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

// usage is the consumed capacity of a request.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
type usage struct {
	mode string // mode is the request's ReturnConsumedCapacity
	kind string // kind is the name of the units of a transaction, or ""
	of   map[string]*tableUsage
}

// tableUsage is the consumed capacity of one table. global and local have the units of the indexes
// by their names.
type tableUsage struct {
	table         float64
	global, local map[string]float64
}

func newUsage(mode string) *usage { return &usage{mode: mode, of: map[string]*tableUsage{}} }

// reported reports whether the response has the usage.
func (u *usage) reported() bool { return u.mode == "TOTAL" || u.mode == "INDEXES" }

// add adds units of a table and its indexes.
func (u *usage) add(t *table, units float64, indexes map[string]float64) {
	if !u.reported() {
		return
	}
	of := u.of[t.TableName]
	if of == nil {
		of = &tableUsage{global: map[string]float64{}, local: map[string]float64{}}
		u.of[t.TableName] = of
	}
	of.table += units
	for name, units := range indexes {
		if t.index(name).local {
			of.local[name] += units
		} else {
			of.global[name] += units
		}
	}
}

// addWrite adds the units of a write. A transaction has a factor of 2.
func (u *usage) addWrite(a *action, factor float64) {
	if !u.reported() {
		return
	}
	indexes := map[string]float64{}
	for _, x := range a.table.indexes {
		if units := x.writeUnits(a); units > 0 {
			indexes[x.name] = units * factor
		}
	}
	u.add(a.table, factor*writeUnits(max(a.oldSize, a.newSize)), indexes)
}

// writeUnits returns the units that a write consumes for an index: one write for an entry that is
// added, deleted or changed, and two if its key changes.
func (x *index) writeUnits(a *action) float64 {
	from, to := x.entry(a.old, a.key), x.entry(a.new, a.key)
	before, after := x.content(a.old), x.content(a.new)
	switch {
	case a.verb == check || from == nil && to == nil:
		return 0
	case from == nil:
		return writeUnits(after.Size())
	case to == nil:
		return writeUnits(before.Size())
	case !bytes.Equal(from, to):
		return writeUnits(before.Size()) + writeUnits(after.Size())
	case maps.EqualFunc(before, after, attr.Value.Equal):
		return 0
	}
	return writeUnits(max(before.Size(), after.Size()))
}

// size returns the size of the part of an item that the index contains. full is the item's size.
func (x *index) size(item attr.Item, full int) int64 {
	if x.projected == nil {
		return int64(full)
	}
	return int64(x.content(item).Size())
}

// content returns the attributes of an item that the index contains.
func (x *index) content(item attr.Item) attr.Item {
	if x.projected == nil {
		return item
	}
	content := attr.Item{}
	for name := range x.projected {
		if v, ok := item[name]; ok {
			content[name] = v
		}
	}
	return content
}

// writeUnits returns the write units of an item: one for each KB.
func writeUnits(size int) float64 { return float64(max(1, (size+1023)/1024)) }

// readUnits returns the read units of items that were read together: one for each 4 KB, and half of
// it if the read is not consistent.
func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// single adds the usage to the response of a request on one table.
func (u *usage) single(o *object) {
	for name := range u.of {
		o.name("ConsumedCapacity")
		u.describe(o, name)
	}
}

// list adds the usage to the response of a request on several tables.
func (u *usage) list(o *object) {
	if !u.reported() {
		return
	}
	names := slices.Sorted(maps.Keys(u.of))
	o.list("ConsumedCapacity", len(names), func(i int) { u.describe(o, names[i]) })
}

// describe adds the usage of one table.
func (u *usage) describe(o *object, name string) {
	of := u.of[name]
	total := of.table
	for _, indexes := range []map[string]float64{of.global, of.local} {
		for _, units := range indexes {
			total += units
		}
	}
	units := func(n float64) {
		o.float("CapacityUnits", n)
		if u.kind != "" {
			o.float(u.kind, n)
		}
	}
	o.open()
	o.text("TableName", name)
	units(total)
	if u.mode == "INDEXES" {
		o.nested("Table", func() { units(of.table) })
		list := func(member string, indexes map[string]float64) {
			if len(indexes) == 0 {
				return
			}
			o.nested(member, func() {
				for _, x := range slices.Sorted(maps.Keys(indexes)) {
					o.nested(x, func() { units(indexes[x]) })
				}
			})
		}
		list("GlobalSecondaryIndexes", of.global)
		list("LocalSecondaryIndexes", of.local)
	}
	o.close()
}
