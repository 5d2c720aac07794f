package dynamo

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
)

// productUnit is a product with its inventory levels, and what orders hold of it.
type productUnit struct {
	sku    commerce.SKU
	main   record
	levels []record
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

func (u *productUnit) add(e *Entity, rec record) {
	switch e.Name {
	case entityProduct.Name:
		u.main = rec
	case entityInventoryLevel.Name:
		u.levels = append(u.levels, rec)
	}
}

func (u *productUnit) key(t *Table) keys { return productKey(t.keyBuilder(), u.sku) }

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
	if sameRecord(sum.product, u.main) {
		u.sum = &sum
	}
	return nil
}

func (u *productUnit) readCollection(ctx context.Context, c *check) error {
	u.main, u.levels = nil, nil
	b := c.table.keyBuilder()
	partition := productKey(b, u.sku).PK
	if b.err != nil {
		return b.err
	}
	return c.client.collection(ctx, &ProductInventory.AccessPattern, partition, u.add)
}

// doubt requires of a recount that the product stood still, and of one that finds something that it
// took two passes.
func (u *productUnit) doubt(v *verdict) string {
	switch {
	case u.recount == nil || u.main == nil:
		return ""
	case u.uncertain != "":
		return fmt.Sprintf("%s may hold some of it, and cannot be read", orderKey(v.table.keyBuilder(), u.uncertain).PK)
	case u.sum == nil || !v.clean() && u.sum.passes < 2:
		return "the product changed each time that its orders were summed"
	}
	return ""
}

// repaired ends the recount: the numbers were set on condition that the product was the one that
// was counted.
func (u *productUnit) repaired() { u.recount = nil }

// rooted reports whether the product's record was read.
func (u *productUnit) rooted() bool { return u.main != nil }

func (u *productUnit) judge(c *check) *verdict {
	v := &verdict{table: c.table}
	u.truth, u.inventory, u.warehouses = nil, nil, nil
	b := c.table.keyBuilder()
	v.basis, v.believed = productKey(b, u.sku), u.main
	if u.main == nil {
		for _, level := range u.levels {
			v.orphan(driftOrphanLevel, level, "the product does not exist")
		}
		return v
	}
	u.judgeLevels(v, b)
	product, err := c.table.decodeProduct(reader{record: withKey(v.legible(&entityProduct, u.main), map[string]string{"sku": string(u.sku)})})
	if err != nil {
		v.unreadable(keyOf(u.main), err)
		return v
	}
	revision := reader{record: u.main}
	next := revision.number(attrStockRevision) + 1
	if err := revision.err(); err != nil {
		v.unreadable(keyOf(u.main), err)
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
		record := productRecord(&keyBuilder{shards: b.shards}, want)
		delete(record, attrIndexPK)
		delete(record, attrIndexSK)
		v.compare(&entityProduct, u.main, record, driftKeyAttribute)
	} else {
		record := productRecord(b, want)
		if b.err != nil {
			v.unreadable(keyOf(u.main), b.err)
			return v
		}
		v.compare(&entityProduct, u.main, record, driftIndexKeys)
	}
	// A repair of the stock is a change of it, and depends on the revision that was read, also on
	// its absence.
	if v.has(driftStockTotal) || v.has(driftStockAvailable) {
		v.fixes[len(v.fixes)-1].set[attrStockRevision] = num(next)
	}
	return v
}

func (u *productUnit) judgeLevels(v *verdict, b *keyBuilder) {
	sum, whole := 0, true
	for _, rec := range u.levels {
		warehouse := keyValue(entityInventoryLevel.SK, textOf(rec, attrSK))
		level, err := decodeInventoryLevel(reader{record: withKey(v.legible(&entityInventoryLevel, rec), map[string]string{"sku": string(u.sku), "warehouseId": warehouse})})
		if err != nil {
			v.unreadable(keyOf(rec), err)
			whole = false
			continue
		}
		sum += level.Quantity
		u.warehouses = append(u.warehouses, level.WarehouseID)
		v.compare(&entityInventoryLevel, rec, inventoryLevelRecord(b, *level), driftKeyAttribute)
	}
	if whole {
		u.inventory = &sum
	}
}

func (u *productUnit) settled(c *check, _, _ *verdict) {
	for _, id := range u.warehouses {
		c.refer(id)
	}
}

// warehouseUnit is a warehouse.
type warehouseUnit struct {
	selfContained
	id   commerce.WarehouseID
	main record
	// needed tells that a level or an employee refers to it.
	needed bool
}

func (u *warehouseUnit) key(t *Table) keys { return warehouseKey(t.keyBuilder(), u.id) }

func (u *warehouseUnit) add(_ *Entity, rec record) { u.main = rec }

func (u *warehouseUnit) read(ctx context.Context, c *check) error {
	b := c.table.keyBuilder()
	k := warehouseKey(b, u.id)
	if b.err != nil {
		return b.err
	}
	found, err := c.client.get(ctx, consistent, k)
	u.main = found[k]
	return err
}

func (u *warehouseUnit) judge(c *check) *verdict {
	v := &verdict{table: c.table}
	b := c.table.keyBuilder()
	v.basis, v.believed = warehouseKey(b, u.id), u.main
	if u.main == nil {
		if u.needed {
			v.unknown(driftWarehouseMissing, warehouseRecord(b, commerce.Warehouse{ID: u.id, Name: string(u.id), Version: 1}), "levels or employees refer to it")
		}
		return v
	}
	warehouse, err := decodeWarehouse(reader{record: withKey(v.legible(&entityWarehouse, u.main), map[string]string{"warehouseId": string(u.id)})})
	if err != nil {
		v.unreadable(keyOf(u.main), err)
		return v
	}
	v.compare(&entityWarehouse, u.main, warehouseRecord(b, *warehouse), driftKeyAttribute)
	return v
}

func (u *warehouseUnit) settled(*check, *verdict, *verdict) {}
