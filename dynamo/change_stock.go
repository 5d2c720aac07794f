package dynamo

import (
	"cmp"
	"context"

	"github.com/ordergraph/ordergraph/commerce"
)

func productForm(t *Table) form[*commerce.Product] {
	return form[*commerce.Product]{
		encode: func(p *commerce.Product) record { return productAttributes(*p) },
		decode: t.decodeProduct,
	}
}

// CreateProduct adds a product without stock (WP12).
//
// Errors: commerce.AlreadyExists; and those of mutate.
func (m Mutations) CreateProduct(ctx context.Context, caller Caller, cmd commerce.NewProduct) (*commerce.Product, error) {
	return mutate(ctx, m.table, &writeCreateProduct, caller, cmd, productForm(m.table), func(_ context.Context, c *change) (*commerce.Product, error) {
		product := commerce.Product{SKU: cmd.SKU, Name: cmd.Name, Category: cmd.Category, UnitPrice: cmd.UnitPrice, Version: 1}
		r := productRecord(&c.keyBuilder, product)
		if _, stands := c.stands(keyOf(r)); stands {
			return nil, commerce.Exists("product", cmd.SKU, "sku")
		}
		c.create(r)
		return &product, nil
	})
}

// UpdateProduct changes a product's name, category or price (WP13).
//
// Errors: commerce.NotFound, VersionConflict (with the product as it is); and those of mutate.
func (m Mutations) UpdateProduct(ctx context.Context, caller Caller, cmd commerce.ProductChange) (*commerce.Product, error) {
	return mutate(ctx, m.table, &writeUpdateProduct, caller, cmd, productForm(m.table), func(ctx context.Context, c *change) (*commerce.Product, error) {
		records, err := c.read(ctx, productKey(&c.keyBuilder, cmd.SKU))
		if err != nil {
			return nil, err
		}
		if records[0] == nil {
			return nil, commerce.Unknown("product", cmd.SKU, "sku")
		}
		before, err := m.table.decodeProduct(reader{record: records[0]})
		if err != nil {
			return nil, err
		}
		if err := expect("product", cmd.ExpectedVersion, before.Version); err != nil {
			return before, err
		}
		after := *before
		set(&after.Name, cmd.Name)
		set(&after.Category, cmd.Category)
		if cmd.UnitPrice != nil {
			price, err := commerce.ParsePrice(cmd.UnitPrice.Amount, cmp.Or(cmd.UnitPrice.Currency, before.UnitPrice.Currency))
			if err != nil {
				return nil, commerce.Refuse(commerce.Path("unitPrice", "amount"), "%s", err)
			}
			after.UnitPrice = price
		}
		if sameRecord(productAttributes(*before), productAttributes(after)) {
			return before, nil
		}
		after.Version++
		b := &c.keyBuilder
		if after.Category == "" {
			b = c.former() // other software may know no categories: the product stays in no list
		}
		c.update(productRecord(c.former(), *before), productRecord(b, after), still(records[0], c.exactly([]string{attrVersion}, attrTotalInventory, attrAvailable)...))
		return &after, nil
	})
}

// CreateWarehouse adds a warehouse (WP14).
//
// Errors: commerce.AlreadyExists; and those of mutate.
func (m Mutations) CreateWarehouse(ctx context.Context, caller Caller, cmd commerce.NewWarehouse) (*commerce.Warehouse, error) {
	id, err := idOr(m.table, cmd.ID, "wh_")
	if err != nil {
		return nil, err
	}
	f := form[*commerce.Warehouse]{
		encode: func(w *commerce.Warehouse) record { return warehouseAttributes(*w) },
		decode: decodeWarehouse,
	}
	return mutate(ctx, m.table, &writeCreateWarehouse, caller, cmd, f, func(_ context.Context, c *change) (*commerce.Warehouse, error) {
		warehouse := commerce.Warehouse{ID: id, Name: cmd.Name, Version: 1}
		r := warehouseRecord(&c.keyBuilder, warehouse)
		if _, stands := c.stands(keyOf(r)); stands {
			return nil, commerce.Exists("warehouse", id, "id")
		}
		c.create(r)
		return &warehouse, nil
	})
}

func levelForm() form[*commerce.InventoryLevel] {
	return form[*commerce.InventoryLevel]{
		encode: func(l *commerce.InventoryLevel) record { return inventoryLevelAttributes(*l) },
		decode: decodeInventoryLevel,
	}
}

// SetInventoryLevel says how many pieces of a product lie in a warehouse (WP15).
//
// Errors: commerce.Refusals of NotFound, VersionConflict (with the level as it is, nil where there
// is none), InsufficientStock; and those of mutate.
func (m Mutations) SetInventoryLevel(ctx context.Context, caller Caller, cmd commerce.InventoryCount) (*commerce.InventoryLevel, error) {
	return mutate(ctx, m.table, &writeSetInventoryLevel, caller, cmd, levelForm(), func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
		before, err := c.level(ctx, cmd.SKU, cmd.WarehouseID)
		if err != nil {
			return nil, err
		}
		if err := expect("inventory level", cmd.ExpectedVersion, before.Version); err != nil {
			if before.record == nil {
				return nil, err
			}
			return &before.InventoryLevel, err
		}
		return c.relevel(before, cmd.Quantity, "quantity")
	})
}

// AdjustInventory adds to the stock of a product in a warehouse, or takes from it (WP16).
//
// Errors: commerce.Refusals of NotFound, InsufficientStock, InvalidInput; and those of mutate.
func (m Mutations) AdjustInventory(ctx context.Context, caller Caller, cmd commerce.InventoryAdjustment) (*commerce.InventoryLevel, error) {
	return mutate(ctx, m.table, &writeAdjustInventory, caller, cmd, levelForm(), func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
		before, err := c.level(ctx, cmd.SKU, cmd.WarehouseID)
		if err != nil {
			return nil, err
		}
		quantity := before.Quantity + cmd.Delta
		if before.Quantity < 0 {
			return nil, commerce.Refuse(commerce.Path("delta"), "meets a level of %d pieces, which no warehouse can have: set it with setInventoryLevel", before.Quantity)
		}
		if quantity < 0 {
			return nil, commerce.TooFew(commerce.Path("delta"), cmd.SKU, -cmd.Delta, before.Quantity, " in warehouse "+string(cmd.WarehouseID))
		}
		if _, err := commerce.ParseLevel(quantity); err != nil {
			return nil, commerce.Refuse(commerce.Path("delta"), "makes a level that %s", err)
		}
		return c.relevel(before, quantity, "delta")
	})
}

// leveled is an inventory level with the records that belong to it, and what its product counts.
type leveled struct {
	commerce.InventoryLevel
	// record is nil where there is no such level yet.
	record        record
	productRecord record
	// total and available are the product's counters, 0 where it has no number there.
	total, available int
}

// level reads a product's stock in a warehouse, 0 where there is none.
//
// Errors: commerce.Refusals of NotFound, ErrCorrupt, those of failed.
func (c *change) level(ctx context.Context, sku commerce.SKU, warehouse commerce.WarehouseID) (leveled, error) {
	b := &c.keyBuilder
	records, err := c.read(ctx, inventoryLevelKey(b, InventoryLevelKey{SKU: sku, Warehouse: warehouse}), productKey(b, sku), warehouseKey(b, warehouse))
	if err != nil {
		return leveled{}, err
	}
	var refusals commerce.Refusals
	if records[1] == nil {
		refusals = append(refusals, commerce.Unknown("product", sku, "sku"))
	}
	if records[2] == nil {
		refusals = append(refusals, commerce.Unknown("warehouse", warehouse, "warehouseId"))
	}
	if len(refusals) > 0 {
		return leveled{}, refusals
	}
	l := leveled{InventoryLevel: commerce.InventoryLevel{SKU: sku, WarehouseID: warehouse}, record: records[0], productRecord: records[1]}
	// What else stands in the product is none of its stock's: unreadable, it is no reason to count
	// nothing.
	product := reader{record: records[1]}
	for counter, place := range map[string]*int{attrTotalInventory: &l.total, attrAvailable: &l.available} {
		if isCounted(product.record, counter) {
			*place = product.number(counter)
		}
	}
	if err := product.err(); err != nil {
		return leveled{}, err
	}
	if l.record != nil {
		level, err := decodeInventoryLevel(reader{record: l.record})
		if err != nil {
			return leveled{}, err
		}
		l.InventoryLevel = *level
	}
	return l, nil
}

// relevel adds the records of a changed level to the transaction: the level, and the product's
// counters. field is the one that says how much.
//
// Errors: commerce.InsufficientStock, commerce.InvalidInput where there would be too many.
func (c *change) relevel(before leveled, quantity int, field string) (*commerce.InventoryLevel, error) {
	by := quantity - before.Quantity
	if by == 0 && before.record != nil {
		return &before.InventoryLevel, nil
	}
	r := before.productRecord
	if by < 0 && isCounted(r, attrAvailable) && before.available < -by {
		return nil, commerce.TooFew(commerce.Path(field), before.SKU, -by, before.available, ", the rest is reserved")
	}
	if by > 0 && before.total > commerce.MaxInventory-by {
		return nil, commerce.Refuse(commerce.Path(field), "makes more than %d pieces of product %s in all warehouses", commerce.MaxInventory, before.SKU)
	}
	after := before.InventoryLevel
	after.Quantity, after.Version = quantity, before.Version+1
	b := &c.keyBuilder
	if before.record != nil {
		c.update(inventoryLevelRecord(b, before.InventoryLevel), inventoryLevelRecord(b, after), still(before.record, attrVersion, attrQuantity))
	} else {
		c.create(inventoryLevelRecord(b, after))
		c.require(warehouseKey(b, before.WarehouseID), present)
	}
	if by == 0 {
		return &after, nil
	}
	// What nobody has counted is not counted from nothing: a check's repair does, from all the
	// levels.
	k, counters := productKey(b, before.SKU), map[string]int{}
	conditions := []condition{present}
	for _, counter := range []string{attrTotalInventory, attrAvailable} {
		switch {
		case !isCounted(r, counter):
			conditions = append(conditions, still(r, counter))
			continue
		case counter == attrAvailable && by < 0:
			conditions = append(conditions, is(counter, ">=", num(-by)))
		case counter == attrTotalInventory && by > 0:
			conditions = append(conditions, is(counter, "<=", num(commerce.MaxInventory-by)))
		default:
			conditions = append(conditions, counted(counter))
		}
		counters[counter] = by
	}
	c.adjust(k, counters, all(conditions...))
	return &after, nil
}
