package check

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// productUnit is a product with its inventory levels, and what orders hold of it.
type productUnit struct {
	sku    commerce.SKU
	main   model.Record
	levels []model.Record
	// scanned tells that the unit was read by the scan.
	scanned bool
	// recount, where it is set, sums what orders hold. readings is how often the product was read
	// with it, and sum what it came to, nil if the product changed meanwhile.
	recount  *recount
	readings int
	sum      *stockSum
	// uncertain is an order that may hold some of the product, and cannot be read; empty where
	// there is none.
	uncertain commerce.OrderID

	// truth is the product, nil where there is none or it cannot be read; inventory is the levels'
	// sum where they can be read.
	truth      *commerce.Product
	inventory  *int
	warehouses []commerce.WarehouseID
}

func (u *productUnit) add(e *model.Entity, rec model.Record) {
	switch e.Name {
	case model.EntityProduct.Name:
		u.main = rec
	case model.EntityInventoryLevel.Name:
		u.levels = append(u.levels, rec)
	}
}

func (u *productUnit) key(t *table.Table) model.Keys {
	return model.ProductBySKU.Key(t.KeyBuilder(), u.sku)
}

// read reads the product and its levels after what orders hold was summed. The sum counts only if
// the product has not changed since before the first of its passes.
//
// The same holds for the sum over the levels. A mutation that changes a level raises the product's
// stock revision in the same transaction, and the wait of the pass leaves time for all of a
// transaction's records to become visible.
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
	if err := u.readCollection(ctx, c); err != nil {
		return err
	}
	if model.SameRecord(sum.product, u.main) {
		u.sum = &sum
	}
	return nil
}

func (u *productUnit) readCollection(ctx context.Context, c *check) error {
	u.main, u.levels = nil, nil
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
	case u.recount == nil || u.main == nil:
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
func (u *productUnit) rooted() bool { return u.main != nil }

func (u *productUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	u.truth, u.inventory, u.warehouses = nil, nil, nil
	b := c.table.KeyBuilder()
	v.Basis, v.Believed = model.ProductBySKU.Key(b, u.sku), u.main
	if u.main == nil {
		for _, level := range u.levels {
			v.Orphan(repair.DriftOrphanLevel, level, "the product does not exist")
		}
		return v
	}
	u.judgeLevels(v, b)
	product, err := c.table.DecodeProduct(model.Reader{Record: repair.WithKey(v.Legible(&model.EntityProduct, u.main), map[string]string{"sku": string(u.sku)})})
	if err != nil {
		v.Unreadable(model.KeyOf(u.main), err)
		return v
	}
	revision := model.Reader{Record: u.main}
	next := revision.Number(model.AttrStockRevision) + 1
	if err := revision.Err(); err != nil {
		v.Unreadable(model.KeyOf(u.main), err)
		return v
	}
	u.truth = product
	want := *product
	// A difference in the scan is a suspicion. Only a recount makes it certain.
	if u.inventory != nil && (u.scanned || u.sum != nil) {
		want.TotalInventory = *u.inventory
	}
	if u.inventory != nil && u.sum != nil {
		want.Available = *u.inventory - u.sum.held
	}
	if want.Category == "" {
		// Other software may know no categories: such a product is in no list.
		record := model.ProductRecord(&model.KeyBuilder{Shards: b.Shards}, want)
		delete(record, model.AttrIndexPK)
		delete(record, model.AttrIndexSK)
		v.Compare(&model.EntityProduct, u.main, record, repair.DriftKeyAttribute)
	} else {
		record := model.ProductRecord(b, want)
		if b.Err != nil {
			v.Unreadable(model.KeyOf(u.main), b.Err)
			return v
		}
		v.Compare(&model.EntityProduct, u.main, record, repair.DriftIndexKeys)
	}
	// A repair of the stock is a change of it, and depends on the revision that was read, also on
	// its absence.
	if v.Has(repair.DriftStockTotal) || v.Has(repair.DriftStockAvailable) {
		v.Fixes[len(v.Fixes)-1].Set[model.AttrStockRevision] = model.Num(next)
	}
	return v
}

func (u *productUnit) judgeLevels(v *repair.Verdict, b *model.KeyBuilder) {
	sum, whole := 0, true
	for _, rec := range u.levels {
		warehouse := model.KeyValue(model.EntityInventoryLevel.SK, model.TextOf(rec, model.AttrSK))
		level, err := model.DecodeInventoryLevel(model.Reader{Record: repair.WithKey(v.Legible(&model.EntityInventoryLevel, rec), map[string]string{"sku": string(u.sku), "warehouseId": warehouse})})
		if err != nil {
			v.Unreadable(model.KeyOf(rec), err)
			whole = false
			continue
		}
		sum += level.Quantity
		u.warehouses = append(u.warehouses, level.WarehouseID)
		v.Compare(&model.EntityInventoryLevel, rec, model.InventoryLevelRecord(b, *level), repair.DriftKeyAttribute)
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
	id   commerce.WarehouseID
	main model.Record
	// needed tells that a level or an employee refers to it.
	needed bool
}

func (u *warehouseUnit) key(t *table.Table) model.Keys {
	return model.WarehouseByID.Key(t.KeyBuilder(), u.id)
}

func (u *warehouseUnit) add(_ *model.Entity, rec model.Record) { u.main = rec }

func (u *warehouseUnit) read(ctx context.Context, c *check) error {
	b := c.table.KeyBuilder()
	k := model.WarehouseByID.Key(b, u.id)
	if b.Err != nil {
		return b.Err
	}
	found, err := c.client.Get(ctx, repair.Consistent, k)
	u.main = found[k]
	return err
}

func (u *warehouseUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	b := c.table.KeyBuilder()
	v.Basis, v.Believed = model.WarehouseByID.Key(b, u.id), u.main
	if u.main == nil {
		if u.needed {
			v.Unknown(repair.DriftWarehouseMissing, model.WarehouseRecord(b, commerce.Warehouse{ID: u.id, Name: string(u.id), Version: 1}), "levels or employees refer to it")
		}
		return v
	}
	warehouse, err := model.DecodeWarehouse(model.Reader{Record: repair.WithKey(v.Legible(&model.EntityWarehouse, u.main), map[string]string{"warehouseId": string(u.id)})})
	if err != nil {
		v.Unreadable(model.KeyOf(u.main), err)
		return v
	}
	v.Compare(&model.EntityWarehouse, u.main, model.WarehouseRecord(b, *warehouse), repair.DriftKeyAttribute)
	return v
}

func (u *warehouseUnit) settled(*check, *repair.Verdict, *repair.Verdict) {}
