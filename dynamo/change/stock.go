package change

import (
	"cmp"
	"context"
	"math"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// CreateProduct creates a product without stock.
//
// Errors: commerce.AlreadyExists, and errors from mutate.
func (m Mutations) CreateProduct(ctx context.Context, caller Caller, cmd commerce.Product) (*commerce.Product, error) {
	return mutate(ctx, m.table, &model.WriteCreateProduct, caller, cmd, m.table.DecodeProduct, func(ctx context.Context, c *change) (*commerce.Product, error) {
		product := cmd
		product.TotalInventory, product.Available, product.OrderCount, product.StockBuckets, product.Version = 0, 0, new(int), 1, 1
		if c.exists(model.ProductBySKU.Key(&c.KeyBuilder, cmd.SKU)) {
			return nil, commerce.NewAlreadyExists("product", cmd.SKU, "sku")
		}
		c.createWithCopies(&product)
		return &product, c.addDerivedFrom(ctx, nil, &product)
	})
}

// UpdateProduct changes the name, category, price or stock buckets of a product.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current product), and errors from
// mutate.
func (m Mutations) UpdateProduct(ctx context.Context, caller Caller, cmd commerce.ProductChange) (*commerce.Product, error) {
	return mutate(ctx, m.table, &model.WriteUpdateProduct, caller, cmd, m.table.DecodeProduct, func(ctx context.Context, c *change) (*commerce.Product, error) {
		before, current, err := readRecordToChange(ctx, c, m.table.DecodeProduct, "product", cmd.SKU, "sku", cmd.ExpectedVersion, model.ProductBySKU.Key(&c.KeyBuilder, cmd.SKU))
		if err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if cmd.UnitPrice != nil {
			price, err := commerce.ParsePrice(cmd.UnitPrice.Amount, cmp.Or(cmd.UnitPrice.Currency, before.UnitPrice.Currency))
			if err != nil {
				return nil, commerce.NewInvalidInput(commerce.FieldPath("unitPrice", "amount"), "%s", err)
			}
			after.UnitPrice = price
		}
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
			return before, nil
		}
		after.Version++
		b := &c.KeyBuilder
		if after.Category == "" {
			b = c.oldKeyBuilder() // other software may write products without a category, so ignore the error of this key
		}
		if err := c.updateBuckets(ctx, before, &after); err != nil {
			return nil, err
		}
		c.updateWithEdges(b, current, before, &after, model.AttrVersion)
		if add, ok := c.increments[model.KeyOf(current).Primary()]; ok {
			after.Available += add.deltas[model.AttrAvailable]
			after.OrderCount = new(*after.OrderCount + add.deltas[model.AttrOrderCount])
		}
		return &after, c.addDerivedFrom(ctx, before, &after)
	})
}

// CreateWarehouse creates a warehouse.
//
// Errors: commerce.AlreadyExists, and errors from mutate.
func (m Mutations) CreateWarehouse(ctx context.Context, caller Caller, cmd commerce.Warehouse) (*commerce.Warehouse, error) {
	id, err := newIDUnlessSet(m.table, cmd.ID, "wh_")
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteCreateWarehouse, caller, cmd, model.DecodeWarehouse, func(_ context.Context, c *change) (*commerce.Warehouse, error) {
		warehouse := cmd
		warehouse.ID, warehouse.ProductCount, warehouse.Version = id, new(int), 1
		if c.exists(model.WarehouseByID.Key(&c.KeyBuilder, id)) {
			return nil, commerce.NewAlreadyExists("warehouse", id, "id")
		}
		c.createWithCopies(&warehouse)
		return &warehouse, nil
	})
}

// UpdateWarehouse changes the name of a warehouse.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current warehouse), and errors from
// mutate.
func (m Mutations) UpdateWarehouse(ctx context.Context, caller Caller, cmd commerce.WarehouseChange) (*commerce.Warehouse, error) {
	return mutate(ctx, m.table, &model.WriteUpdateWarehouse, caller, cmd, model.DecodeWarehouse, func(ctx context.Context, c *change) (*commerce.Warehouse, error) {
		before, current, err := readRecordToChange(ctx, c, model.DecodeWarehouse, "warehouse", cmd.ID, "id", cmd.ExpectedVersion, model.WarehouseByID.Key(&c.KeyBuilder, cmd.ID))
		if err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
			return before, nil
		}
		after.Version++
		c.updateWithEdges(&c.KeyBuilder, current, before, &after, model.AttrVersion)
		return &after, nil
	})
}

// SetInventoryLevel sets the quantity or the reorder point of a product in a warehouse, or both.
//
// Errors: commerce.UserErrors (NotFound), commerce.VersionConflict (with the current inventory
// level, if it exists), commerce.InsufficientStock, commerce.InvalidInput,
// model.DerivationUnavailable, and errors from mutate.
func (m Mutations) SetInventoryLevel(ctx context.Context, caller Caller, cmd commerce.InventoryLevelChange) (*commerce.InventoryLevel, error) {
	return mutate(ctx, m.table, &model.WriteSetInventoryLevel, caller, cmd, model.DecodeInventoryLevel, func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
		before, err := c.readInventoryLevel(ctx, cmd.SKU, cmd.WarehouseID, "warehouseId")
		if err != nil {
			return nil, err
		}
		if err := checkVersion("inventory level", cmd.ExpectedVersion, before.Version); err != nil {
			if before.record == nil {
				return nil, err
			}
			return &before.InventoryLevel, err
		}
		if before.record == nil && cmd.Quantity == nil {
			return nil, commerce.NewInvalidInput(commerce.FieldPath("quantity"), "is missing, but product %s has no inventory level in warehouse %s yet: set a quantity", cmd.SKU, cmd.WarehouseID)
		}
		after := before.InventoryLevel
		if cmd.Apply(&after); after.ReorderPoint > before.ReorderPoint {
			if err := c.Derivations.CheckReadable(model.EntityLowStock.Name); err != nil {
				return nil, err
			}
		}
		return c.setInventoryLevel(ctx, before, after, "quantity")
	})
}

// AdjustInventory adds a positive or negative number to the quantity of a product in a warehouse.
//
// Errors: commerce.UserErrors (NotFound), commerce.InsufficientStock, commerce.InvalidInput, and
// errors from mutate.
func (m Mutations) AdjustInventory(ctx context.Context, caller Caller, cmd commerce.InventoryAdjustment) (*commerce.InventoryLevel, error) {
	return mutate(ctx, m.table, &model.WriteAdjustInventory, caller, cmd, model.DecodeInventoryLevel, func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
		before, err := c.readInventoryLevel(ctx, cmd.SKU, cmd.WarehouseID, "warehouseId")
		if err != nil {
			return nil, err
		}
		quantity := before.Quantity + cmd.Delta
		if before.Quantity < 0 {
			return nil, commerce.NewInvalidInput(commerce.FieldPath("delta"), "the current quantity of %d pieces is invalid; set the correct quantity with setInventoryLevel", before.Quantity)
		}
		if quantity < 0 {
			return nil, commerce.NewInsufficientStock(commerce.FieldPath("delta"), cmd.SKU, -cmd.Delta, before.Quantity, " in warehouse "+string(cmd.WarehouseID))
		}
		if _, err := commerce.ParseInventoryLevel(quantity); err != nil {
			return nil, commerce.NewInvalidInput(commerce.FieldPath("delta"), "results in an invalid quantity: it %s", err)
		}
		return c.setInventoryLevel(ctx, before, before.WithQuantity(quantity), "delta")
	})
}

// TransferInventory moves units of a product from one warehouse to another. It returns the
// inventory level of the second one.
//
// Errors: commerce.UserErrors (NotFound), commerce.InsufficientStock, commerce.InvalidInput, and
// errors from mutate.
func (m Mutations) TransferInventory(ctx context.Context, caller Caller, cmd commerce.InventoryTransfer) (*commerce.InventoryLevel, error) {
	if cmd.FromWarehouseID == cmd.ToWarehouseID {
		return nil, commerce.NewInvalidInput(commerce.FieldPath("toWarehouseId"), "is the same as fromWarehouseId: use another warehouse")
	}
	return mutate(ctx, m.table, &model.WriteTransferInventory, caller, cmd, model.DecodeInventoryLevel, func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
		b := &c.KeyBuilder
		product := model.ProductBySKU.Key(b, cmd.SKU)
		ks := []model.Keys{product}
		for _, warehouse := range []commerce.WarehouseID{cmd.FromWarehouseID, cmd.ToWarehouseID} {
			ks = append(ks, model.KeysOfInventoryLevel(b, model.InventoryLevelKey{SKU: cmd.SKU, Warehouse: warehouse}), model.WarehouseByID.Key(b, warehouse))
		}
		if _, err := c.read(ctx, ks...); err != nil {
			return nil, err
		}
		from, err := c.readInventoryLevel(ctx, cmd.SKU, cmd.FromWarehouseID, "fromWarehouseId")
		if err != nil {
			return nil, err
		}
		to, err := c.readInventoryLevel(ctx, cmd.SKU, cmd.ToWarehouseID, "toWarehouseId")
		if err != nil {
			return nil, err
		}
		if from.Quantity < cmd.Quantity {
			return nil, commerce.NewInsufficientStock(commerce.FieldPath("quantity"), cmd.SKU, cmd.Quantity, max(0, from.Quantity), " in warehouse "+string(cmd.FromWarehouseID))
		}
		if _, err := commerce.ParseInventoryLevel(to.Quantity + cmd.Quantity); err != nil || to.Quantity < 0 {
			return nil, commerce.NewInvalidInput(commerce.FieldPath("quantity"), "results in an invalid quantity of %d pieces in warehouse %s", to.Quantity+cmd.Quantity, cmd.ToWarehouseID)
		}
		changes := []derive.Change{c.writeInventoryLevel(from, from.WithQuantity(from.Quantity-cmd.Quantity)), c.writeInventoryLevel(to, to.WithQuantity(to.Quantity+cmd.Quantity))}
		deltas, err := derive.Deltas(c.Layout, changes...)
		if err != nil {
			return nil, err
		}
		// The product's totals stay the same, so no delta raises its revision.
		if err := c.adjustCounters(ctx, counterAdjustment{product, map[string]int{model.AttrStockRevision: 1}, table.RecordExists}); err != nil {
			return nil, err
		}
		return changes[1].After.(*commerce.InventoryLevel), c.addDerived(ctx, deltas)
	})
}

// levelWithProduct is an inventory level (the quantity of a product in a warehouse), together with
// the record of its product.
type levelWithProduct struct {
	commerce.InventoryLevel
	// record is the record of the inventory level. It is nil if the level does not exist.
	record        model.Record
	productRecord model.Record
}

// readInventoryLevel reads a product's inventory level in a warehouse, and the product. If the level
// does not exist, its quantity is 0. field names the argument with the warehouse.
//
// Errors: commerce.UserErrors (NotFound), model.ErrCorrupt, and errors from table.WrapError.
func (c *change) readInventoryLevel(ctx context.Context, sku commerce.SKU, warehouse commerce.WarehouseID, field string) (levelWithProduct, error) {
	b := &c.KeyBuilder
	records, err := c.read(ctx, model.KeysOfInventoryLevel(b, model.InventoryLevelKey{SKU: sku, Warehouse: warehouse}), model.ProductBySKU.Key(b, sku), model.WarehouseByID.Key(b, warehouse))
	if err != nil {
		return levelWithProduct{}, err
	}
	var refusals commerce.UserErrors
	if records[1] == nil {
		refusals = append(refusals, commerce.NewNotFound("product", sku, "sku"))
	}
	if records[2] == nil {
		refusals = append(refusals, commerce.NewNotFound("warehouse", warehouse, field))
	}
	if len(refusals) > 0 {
		return levelWithProduct{}, refusals
	}
	l := levelWithProduct{InventoryLevel: commerce.InventoryLevel{SKU: sku, WarehouseID: warehouse}, record: records[0], productRecord: records[1]}
	if l.record != nil {
		level, err := model.DecodeInventoryLevel(model.Reader{Record: l.record})
		if err != nil {
			return levelWithProduct{}, err
		}
		l.InventoryLevel = *level
	}
	return l, nil
}

// setInventoryLevel adds the writes for a changed inventory level: the level's record and the
// product's stock counters. field names the argument in user errors.
//
// Errors: commerce.InsufficientStock, commerce.InvalidInput, errors from addDerived.
func (c *change) setInventoryLevel(ctx context.Context, before levelWithProduct, after commerce.InventoryLevel, field string) (*commerce.InventoryLevel, error) {
	delta := after.Quantity - before.Quantity
	if after == before.InventoryLevel && before.record != nil {
		return &before.InventoryLevel, nil
	}
	// Decode only the product's stock counters. If other attributes cannot be decoded, this must not
	// block a change of the stock. If a counter is missing, it has no limit.
	product, counters := model.Reader{Record: before.productRecord}, map[string]int{model.AttrAvailable: math.MaxInt}
	for _, counter := range []string{model.AttrTotalInventory, model.AttrAvailable} {
		if table.RecordHasNumber(product.Record, counter) {
			counters[counter] = product.Number(counter)
		}
	}
	if err := product.Err(); err != nil {
		return nil, err
	}
	if buckets, _ := c.table.DecodeProduct(product); buckets != nil && buckets.StockBuckets > 1 {
		shares, sum, err := c.readStock(ctx, before.SKU, buckets.StockBuckets, -delta)
		if err != nil {
			return nil, err
		}
		counters[model.AttrAvailable] = sum
		c.spread[shares[0].key] = changesTo(shares, sum+delta)
	}
	if available := counters[model.AttrAvailable]; delta < 0 && available < -delta {
		return nil, commerce.NewInsufficientStock(commerce.FieldPath(field), before.SKU, -delta, available, ", the rest is reserved")
	}
	if delta > 0 && counters[model.AttrTotalInventory] > commerce.MaxTotalInventory-delta {
		return nil, commerce.NewInvalidInput(commerce.FieldPath(field), "results in more than %d pieces of product %s in all warehouses", commerce.MaxTotalInventory, before.SKU)
	}
	change := c.writeInventoryLevel(before, after)
	return change.After.(*commerce.InventoryLevel), c.addDerivedFrom(ctx, change.Before, change.After)
}

// writeInventoryLevel adds the write of the record of a changed inventory level, and returns the
// change.
func (c *change) writeInventoryLevel(before levelWithProduct, after commerce.InventoryLevel) derive.Change {
	after.Version = before.Version + 1
	if before.record == nil {
		c.createWithCopies(&after)
		c.require(model.WarehouseByID.Key(&c.KeyBuilder, before.WarehouseID), table.RecordExists)
		return derive.Change{After: &after}
	}
	c.updateWithEdges(&c.KeyBuilder, before.record, &before.InventoryLevel, &after, model.AttrVersion, model.AttrQuantity)
	return derive.Change{Before: &before.InventoryLevel, After: &after}
}
