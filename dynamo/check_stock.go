package dynamo

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
)

// productUnit is a product with its inventory levels, and what orders hold of it.
type productUnit struct {
	sku    commerce.SKU
	main   record
	levels []record
	// weighing, where it is set, tells what orders hold. readings is how often the product was read with it, and held what orders
	// hold where that is known.
	weighing *weighing
	readings int
	held     *int

	// truth is the product, nil where there is none or it cannot be read; inventory is the levels' sum where they can be
	// read.
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

func (u *productUnit) key(s *Store) keys { return productKey(&keyBuilder{shards: s.shards}, u.sku) }

// read reads the product after what is held of it was summed: the index lags behind the table, so the sum counts only if
// the product has not changed since long enough before.
func (u *productUnit) read(ctx context.Context, c *check) error {
	u.held = nil
	if u.weighing == nil {
		return u.readCollection(ctx, c)
	}
	weights, err := u.weighing.weights(ctx, c, u.readings)
	if err != nil {
		return err
	}
	u.readings++
	if err := u.readCollection(ctx, c); err != nil {
		return err
	}
	if sameRecord(weights.before[u.sku], u.main) {
		held := weights.held[u.sku]
		u.held = &held
	}
	return nil
}

func (u *productUnit) readCollection(ctx context.Context, c *check) error {
	u.main, u.levels = nil, nil
	b := &keyBuilder{shards: c.s.shards}
	partition := productKey(b, u.sku).PK
	if b.err != nil {
		return b.err
	}
	return c.reads.collection(ctx, &patternProductInventory, partition, u.add)
}

func (u *productUnit) doubt() string {
	if u.weighing != nil && u.held == nil && u.main != nil {
		return "the product changed each time that its orders were summed"
	}
	return ""
}

// repaired ends the weighing: the number was set on condition that the product was the one that was weighed.
func (u *productUnit) repaired() { u.weighing = nil }

func (u *productUnit) judge(c *check) *verdict {
	v := &verdict{s: c.s}
	u.truth, u.inventory, u.warehouses = nil, nil, nil
	b := &keyBuilder{shards: c.s.shards}
	v.basis, v.believed = productKey(b, u.sku), u.main
	if u.main == nil {
		for _, level := range u.levels {
			v.orphan(driftOrphanLevel, level, "the product does not exist")
		}
		return v
	}
	u.judgeLevels(v, b)
	product, err := c.s.decodeProduct(reader{record: withKey(v.legible(&entityProduct, u.main), map[string]string{"sku": string(u.sku)})})
	if err != nil {
		v.unreadable(keyOf(u.main), err)
		return v
	}
	u.truth = product
	want := *product
	if u.inventory != nil {
		want.TotalInventory = *u.inventory
		if u.held != nil {
			want.Available = *u.inventory - *u.held
		}
	}
	if want.Category == "" {
		// The list by category is the only other place that knows it.
		want.Category = keyValue(entityProduct.IndexPK, textOf(u.main, attrIndexPK))
	}
	if want.Category == "" {
		// Other software may know no categories: such a product is in no list.
		record := productRecord(&keyBuilder{shards: b.shards}, want)
		delete(record, attrIndexPK)
		delete(record, attrIndexSK)
		v.compare(&entityProduct, u.main, record, driftKeyAttribute)
		return v
	}
	record := productRecord(b, want)
	if b.err != nil {
		v.unreadable(keyOf(u.main), b.err)
		return v
	}
	v.compare(&entityProduct, u.main, record, driftIndexKeys)
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

func (u *warehouseUnit) key(s *Store) keys { return warehouseKey(&keyBuilder{shards: s.shards}, u.id) }

func (u *warehouseUnit) add(_ *Entity, rec record) { u.main = rec }

func (u *warehouseUnit) read(ctx context.Context, c *check) error {
	b := &keyBuilder{shards: c.s.shards}
	k := warehouseKey(b, u.id)
	if b.err != nil {
		return b.err
	}
	found, err := c.reads.get(ctx, consistent, k)
	u.main = found[k]
	return err
}

func (u *warehouseUnit) judge(c *check) *verdict {
	v := &verdict{s: c.s}
	b := &keyBuilder{shards: c.s.shards}
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
