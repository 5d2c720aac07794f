package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// productUnit is a product with its inventory levels, and what orders hold of it.
type productUnit struct {
	sku commerce.SKU
	edged
	// levels are the product's inventory levels, by their keys.
	levels map[model.Keys]*edged
	// scanned reports whether the unit was read by the scan.
	scanned bool
	// recount, where it is set, sums what orders hold. readings is how often the product was read
	// with it, and sum what it came to, nil if the product changed meanwhile.
	recount  *recount
	readings int
	// orders reports whether the recount counts the orders that have the product.
	orders bool
	sum    *stockSum
	// uncertain is an order that may hold some of the product, and cannot be read; empty where
	// there is none.
	uncertain commerce.OrderID

	// truth is the product, nil where there is none or it cannot be read; inventory is the levels'
	// sum where they can be read.
	truth      *commerce.Product
	inventory  *int
	warehouses []commerce.WarehouseID
}

func newProductUnit(sku string) *productUnit {
	u := &productUnit{sku: commerce.SKU(sku)}
	u.clear()
	return u
}

// clear forgets what was read.
func (u *productUnit) clear() {
	u.edged = newEdged(&model.EntityProduct, map[string]string{"sku": string(u.sku)})
	u.levels = map[model.Keys]*edged{}
}

func (u *productUnit) add(e *model.Entity, rec model.Record) {
	switch e.Root().Name {
	case model.EntityProduct.Name:
		u.keep(rec)
	case model.EntityInventoryLevel.Name:
		level := newEdged(e.Root(), e.KeyValues(model.KeyOf(rec)))
		if u.levels[level.primary] == nil {
			u.levels[level.primary] = &level
		}
		u.levels[level.primary].keep(rec)
	}
}

func (u *productUnit) key(*table.Table) model.Keys { return u.primary }

// read reads the product and its levels after what orders hold was summed. The sum counts only if
// the product has not changed since before the first of its passes.
//
// The same holds for the sum over the levels. A mutation that changes a level raises the product's
// stock revision in the same transaction, and the wait of the pass leaves time for all of a
// transaction's records to become visible. The same holds for the length of the list of orders that
// have the product.
func (u *productUnit) read(ctx context.Context, c *check) error {
	u.sum = nil
	if u.recount == nil {
		return u.readCollection(ctx, c)
	}
	if u.uncertain = c.uncertainOrder(u.sku); u.uncertain != "" {
		return u.readCollection(ctx, c)
	}
	sum, err := u.recount.sum(ctx, c, u.sku, u.readings)
	if err != nil {
		return err
	}
	u.readings++
	// An order that could be read when it was verified may be unreadable now.
	u.uncertain = c.uncertainOrder(u.sku)
	if u.orders {
		n, err := counting.Length(ctx, c.client, &model.ProductOrderItems.AccessPattern, string(u.sku))
		if err != nil {
			return err
		}
		sum.orders = &n
	}
	if err := u.readCollection(ctx, c); err != nil {
		return err
	}
	if model.SameRecord(sum.product, u.main()) {
		u.sum = &sum
	}
	return nil
}

func (u *productUnit) readCollection(ctx context.Context, c *check) error {
	u.clear()
	b := c.table.KeyBuilder()
	partition := model.ProductBySKU.Key(b, u.sku).PK
	if b.Err != nil {
		return b.Err
	}
	return c.client.Collection(ctx, &model.ProductInventory.AccessPattern, partition, u.add)
}

// doubt requires of a recount that the product stood still, and of one that finds something that it
// took two passes.
func (u *productUnit) doubt(v *repair.Verdict) string {
	switch {
	case u.recount == nil || u.main() == nil:
		return ""
	case u.uncertain != "":
		return fmt.Sprintf("%s may hold some of it, and cannot be read", model.OrderByID.Key(v.Table.KeyBuilder(), u.uncertain).PK)
	case u.sum == nil || !v.Clean() && u.sum.passes < 2:
		return "the product changed each time that its orders were summed"
	}
	return ""
}

// repaired ends the recount: the numbers were set on condition that the product was the one that
// was counted.
func (u *productUnit) repaired() { u.recount = nil }

// rooted reports whether the product's record was read.
func (u *productUnit) rooted() bool { return u.main() != nil }

func (u *productUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	u.truth, u.inventory, u.warehouses = nil, nil, nil
	b := c.table.KeyBuilder()
	v.Basis, v.Believed = u.primary, u.main()
	if u.main() == nil {
		for _, level := range u.inOrder() {
			if level.main() != nil {
				v.Orphan(repair.DriftOrphanLevel, level.main(), "the product does not exist")
			}
			level.judgeEdges(v, nil)
		}
		u.judgeEdges(v, nil)
		return v
	}
	u.judgeLevels(v, b)
	product, err := decode(v, &u.edged, u.primary, c.table.DecodeProduct)
	if err != nil {
		v.Unreadable(model.KeyOf(u.main()), err)
		return v
	}
	revision := model.Reader{Record: u.main()}
	next := revision.Number(model.AttrStockRevision) + 1
	if err := revision.Err(); err != nil {
		v.Unreadable(model.KeyOf(u.main()), err)
		return v
	}
	u.truth = product
	want := *product
	// A difference in the scan is a suspicion. Only a recount makes it certain.
	if u.inventory != nil && (u.scanned || u.sum != nil) {
		want.TotalInventory = *u.inventory
	}
	if u.sum != nil && u.sum.orders != nil {
		want.OrderCount = u.sum.orders
	}
	if u.inventory != nil && u.sum != nil && u.recount.stock {
		want.Available = *u.inventory - u.sum.held
	}
	if want.Category == "" {
		// Other software may know no categories: such a product is in no list.
		b = &model.KeyBuilder{Shards: b.Shards}
	}
	wanted, class := model.Records(b, &want), repair.DriftIndexKeys
	switch {
	case want.Category == "":
		delete(wanted[0], model.AttrIndexPK)
		delete(wanted[0], model.AttrIndexSK)
		class = repair.DriftKeyAttribute
	case b.Err != nil:
		v.Unreadable(model.KeyOf(u.main()), b.Err)
		return v
	}
	v.Compare(&model.EntityProduct, u.main(), wanted[0], class)
	// A repair of the stock is a change of it, and depends on the revision that was read, also on
	// its absence.
	if v.Has(repair.DriftStockTotal) || v.Has(repair.DriftStockAvailable) {
		v.Fixes[len(v.Fixes)-1].Set[model.AttrStockRevision] = model.Num(next)
	}
	v.Source = u.primary
	u.judgeEdges(v, wanted)
	return v
}

// inOrder are the levels in the order of their keys.
func (u *productUnit) inOrder() []*edged {
	return slices.SortedFunc(maps.Values(u.levels), func(a, b *edged) int { return cmp.Compare(a.primary.SK, b.primary.SK) })
}

func (u *productUnit) judgeLevels(v *repair.Verdict, b *model.KeyBuilder) {
	sum, whole := 0, true
	for _, r := range u.inOrder() {
		if r.main() == nil {
			judgeUnread(v, r, model.DecodeInventoryLevel)
			continue
		}
		level, err := decode(v, r, r.primary, model.DecodeInventoryLevel)
		if err != nil {
			v.Unreadable(r.primary, err)
			whole = false
			continue
		}
		sum += level.Quantity
		u.warehouses = append(u.warehouses, level.WarehouseID)
		wanted := model.Records(b, level)
		v.Compare(&model.EntityInventoryLevel, r.main(), wanted[0], repair.DriftKeyAttribute)
		r.judgeEdges(v, wanted)
	}
	if whole {
		u.inventory = &sum
	}
}

func (u *productUnit) settled(c *check, _, _ *repair.Verdict) {
	for _, id := range u.warehouses {
		c.refer(id)
	}
}

// warehouseUnit is a warehouse.
type warehouseUnit struct {
	selfContained
	id commerce.WarehouseID
	edged
	// needed reports whether a level or an employee refers to it.
	needed bool
}

func newWarehouseUnit(id string) *warehouseUnit {
	return &warehouseUnit{id: commerce.WarehouseID(id), edged: newEdged(&model.EntityWarehouse, map[string]string{"warehouseId": id})}
}

func (u *warehouseUnit) key(*table.Table) model.Keys { return u.primary }

func (u *warehouseUnit) add(_ *model.Entity, rec model.Record) { u.keep(rec) }

func (u *warehouseUnit) read(ctx context.Context, c *check) (err error) {
	b := c.table.KeyBuilder()
	if model.WarehouseByID.Key(b, u.id); b.Err != nil {
		return b.Err
	}
	u.records, err = c.client.Get(ctx, repair.Consistent, u.keys()...)
	return err
}

func (u *warehouseUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	b := c.table.KeyBuilder()
	v.Basis, v.Believed = u.primary, u.main()
	if u.main() == nil {
		var standIn []model.Record
		if u.needed {
			standIn = model.Records(b, &commerce.Warehouse{ID: u.id, Name: string(u.id), Version: 1})
			v.Unknown(repair.DriftWarehouseMissing, standIn[0], "levels or employees refer to it")
		}
		u.judgeEdges(v, standIn)
		return v
	}
	warehouse, err := decode(v, &u.edged, u.primary, model.DecodeWarehouse)
	if err != nil {
		v.Unreadable(model.KeyOf(u.main()), err)
		return v
	}
	wanted := model.Records(b, warehouse)
	v.Compare(&model.EntityWarehouse, u.main(), wanted[0], repair.DriftKeyAttribute)
	u.judgeEdges(v, wanted)
	return v
}
