package dynamo

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// productUnit is a product with its inventory levels, and what orders hold of it.
type productUnit struct {
	sku    commerce.SKU
	main   record
	levels []record
	// weigh tells that what orders hold is to be summed, too; held is that sum where it is known. before is the product as it was
	// read longer ago than the index lags behind; it is good for one reading.
	weigh  bool
	before record
	held   *int

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

// read reads the product last and first where it is weighed: the index lags behind the table, so a sum over it counts only
// if the product has not changed since long enough before.
func (u *productUnit) read(ctx context.Context, c *check) error {
	if !u.weigh {
		return u.readCollection(ctx, c)
	}
	before := u.before
	u.before = nil
	if before == nil {
		if err := u.readCollection(ctx, c); err != nil {
			return err
		}
		before = u.main
		if err := waitFor(ctx, c.opts.IndexLag); err != nil {
			return err
		}
	}
	held, err := c.heldNow(ctx, u.sku)
	if err != nil {
		return err
	}
	if err := u.readCollection(ctx, c); err != nil {
		return err
	}
	u.held = nil
	if reflect.DeepEqual(before, u.main) {
		u.held = &held
	}
	return nil
}

// readBefore reads products that are going to be weighed, and waits for the index once for all of them.
func (c *check) readBefore(ctx context.Context, ks []unitKey) (map[unitKey]record, error) {
	b := &keyBuilder{shards: c.s.shards}
	wanted := make([]keys, len(ks))
	for i, k := range ks {
		wanted[i] = productKey(b, commerce.SKU(k.id))
	}
	found, err := c.reads.get(ctx, consistent, wanted...)
	if err != nil {
		return nil, err
	}
	before := make(map[unitKey]record, len(ks))
	for i, k := range ks {
		before[k] = found[wanted[i]]
	}
	return before, waitFor(ctx, c.opts.IndexLag)
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

// unsettled tells that the stock changed while it was weighed.
func (u *productUnit) unsettled() bool { return u.weigh && u.held == nil && u.main != nil }

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
	product, err := u.decode(c.s)
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

// decode reads the product without its numbers, which follow from others and may be anything.
func (u *productUnit) decode(s *Store) (*commerce.Product, error) {
	plain := withKey(u.main, map[string]string{"sku": string(u.sku)})
	for _, name := range []string{"totalInventory", "available"} {
		at := reader{record: plain}
		if at.number(name); at.err() != nil {
			delete(plain, name)
		}
	}
	return s.decodeProduct(plain)
}

func (u *productUnit) judgeLevels(v *verdict, b *keyBuilder) {
	sum, whole := 0, true
	for _, rec := range u.levels {
		warehouse := keyValue(entityInventoryLevel.SK, textOf(rec, attrSK))
		level, err := decodeInventoryLevel(withKey(rec, map[string]string{"sku": string(u.sku), "warehouseId": warehouse}))
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

func (u *productUnit) settled(c *check, _ *verdict, _ bool) {
	for _, id := range u.warehouses {
		c.refer(id)
	}
}

// heldNow sums what pending and confirmed orders hold of a product. The index tells which orders; the orders and items
// themselves are read consistently.
//
// Errors: those of failed.
func (c *check) heldNow(ctx context.Context, sku commerce.SKU) (int, error) {
	sum := c.heldByDamaged(sku)
	b := &keyBuilder{shards: c.s.shards}
	partition := b.key(patternProductOrderItems.PK, string(sku))
	if b.err != nil {
		return 0, b.err
	}
	err := c.reads.query(ctx, &patternProductOrderItems, partition, string(patternProductOrderItems.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		var mains, items []keys
		for _, rec := range out.Items {
			id := commerce.OrderID(keyValue(entityOrderItem.PK, textOf(rec, attrPK)))
			main, item := orderKey(b, id), orderItemKey(b, OrderItemKey{Order: id, SKU: sku})
			if b.err != nil {
				b.err = nil // a record of other software
				continue
			}
			if c.isDamaged(id) || item != keyOf(rec) {
				continue
			}
			mains, items = append(mains, main), append(items, item)
		}
		found, err := c.reads.get(ctx, consistent, append(mains, items...)...)
		if err != nil {
			return err
		}
		for i, k := range items {
			status, err := commerce.ParseStatus(textOf(found[mains[i]], "status"))
			if err != nil || !status.Reserves() || found[k] == nil {
				continue
			}
			at := reader{record: found[k]}
			sum += at.number("qty")
		}
		return nil
	})
	return sum, err
}

// warehouseUnit is a warehouse.
type warehouseUnit struct {
	id   commerce.WarehouseID
	main record
	// needed tells that a level or an employee refers to it.
	needed bool
}

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
			v.absent(driftWarehouseMissing, warehouseRecord(b, commerce.Warehouse{ID: u.id, Name: string(u.id), Version: 1}), nil, "levels or employees refer to it")
		}
		return v
	}
	warehouse, err := decodeWarehouse(withKey(u.main, map[string]string{"warehouseId": string(u.id)}))
	if err != nil {
		v.unreadable(keyOf(u.main), err)
		return v
	}
	v.compare(&entityWarehouse, u.main, warehouseRecord(b, *warehouse), driftKeyAttribute)
	return v
}

func (u *warehouseUnit) settled(*check, *verdict, bool) {}
