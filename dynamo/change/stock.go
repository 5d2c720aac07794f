package change

import (
	"cmp"
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// CreateProduct adds a product without stock (WP12).
//
// Errors: commerce.AlreadyExists; and those of mutate.
func (m Mutations) CreateProduct(ctx context.Context, caller Caller, cmd commerce.Product) (*commerce.Product, error) {
	return mutate(ctx, m.table, &model.WriteCreateProduct, caller, cmd, m.table.DecodeProduct, func(_ context.Context, c *change) (*commerce.Product, error) {
		product := cmd
		product.TotalInventory, product.Available, product.OrderCount, product.Version = 0, 0, new(int), 1
		if _, stands := c.stands(model.ProductBySKU.Key(&c.KeyBuilder, cmd.SKU)); stands {
			return nil, commerce.Exists("product", cmd.SKU, "sku")
		}
		createAll(c, &product)
		c.enterCategory(product.Category)
		return &product, nil
	})
}

// UpdateProduct changes a product's name, category or price (WP13).
//
// Errors: commerce.NotFound, VersionConflict (with the product as it is); and those of mutate.
func (m Mutations) UpdateProduct(ctx context.Context, caller Caller, cmd commerce.ProductChange) (*commerce.Product, error) {
	return mutate(ctx, m.table, &model.WriteUpdateProduct, caller, cmd, m.table.DecodeProduct, func(ctx context.Context, c *change) (*commerce.Product, error) {
		before, stands, err := existing(ctx, c, m.table.DecodeProduct, "product", cmd.SKU, "sku", model.ProductBySKU.Key(&c.KeyBuilder, cmd.SKU))
		if err != nil {
			return nil, err
		}
		if err := expect("product", cmd.ExpectedVersion, before.Version); err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if cmd.UnitPrice != nil {
			price, err := commerce.ParsePrice(cmd.UnitPrice.Amount, cmp.Or(cmd.UnitPrice.Currency, before.UnitPrice.Currency))
			if err != nil {
				return nil, commerce.Refuse(commerce.Path("unitPrice", "amount"), "%s", err)
			}
			after.UnitPrice = price
		}
		if model.SameRecord(model.Attributes(before), model.Attributes(&after)) {
			return before, nil
		}
		after.Version++
		b := &c.KeyBuilder
		if after.Category == "" {
			b = c.former() // other software may know no categories: the product stays in no list
		}
		rewrite(c, b, stands, before, &after, table.Still(stands, c.exactly([]string{model.AttrVersion}, model.AttrTotalInventory, model.AttrAvailable, model.AttrOrderCount)...))
		if after.Category != before.Category {
			c.enterCategory(after.Category)
			c.leaveCategory(before.Category)
		}
		return &after, nil
	})
}

// CreateWarehouse adds a warehouse (WP14).
//
// Errors: commerce.AlreadyExists; and those of mutate.
func (m Mutations) CreateWarehouse(ctx context.Context, caller Caller, cmd commerce.Warehouse) (*commerce.Warehouse, error) {
	id, err := idOr(m.table, cmd.ID, "wh_")
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteCreateWarehouse, caller, cmd, model.DecodeWarehouse, func(_ context.Context, c *change) (*commerce.Warehouse, error) {
		warehouse := cmd
		warehouse.ID, warehouse.Version = id, 1
		if _, stands := c.stands(model.WarehouseByID.Key(&c.KeyBuilder, id)); stands {
			return nil, commerce.Exists("warehouse", id, "id")
		}
		createAll(c, &warehouse)
		return &warehouse, nil
	})
}

// SetInventoryLevel says how many pieces of a product lie in a warehouse (WP15).
//
// Errors: commerce.Refusals of NotFound, VersionConflict (with the level as it is, nil where there
// is none), InsufficientStock; and those of mutate.
func (m Mutations) SetInventoryLevel(ctx context.Context, caller Caller, cmd commerce.InventoryCount) (*commerce.InventoryLevel, error) {
	return mutate(ctx, m.table, &model.WriteSetInventoryLevel, caller, cmd, model.DecodeInventoryLevel, func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
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
		return c.relevel(ctx, before, cmd.Quantity, "quantity")
	})
}

// AdjustInventory adds to the stock of a product in a warehouse, or takes from it (WP16).
//
// Errors: commerce.Refusals of NotFound, InsufficientStock, InvalidInput; and those of mutate.
func (m Mutations) AdjustInventory(ctx context.Context, caller Caller, cmd commerce.InventoryAdjustment) (*commerce.InventoryLevel, error) {
	return mutate(ctx, m.table, &model.WriteAdjustInventory, caller, cmd, model.DecodeInventoryLevel, func(ctx context.Context, c *change) (*commerce.InventoryLevel, error) {
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
		return c.relevel(ctx, before, quantity, "delta")
	})
}

// leveled is an inventory level with the records that belong to it, and what its product counts.
type leveled struct {
	commerce.InventoryLevel
	// record is nil where there is no such level yet.
	record        model.Record
	productRecord model.Record
	// total and available are the product's counters, 0 where it has no number there.
	total, available int
}

// level reads a product's stock in a warehouse, 0 where there is none.
//
// Errors: commerce.Refusals of NotFound, ErrCorrupt, those of failed.
func (c *change) level(ctx context.Context, sku commerce.SKU, warehouse commerce.WarehouseID) (leveled, error) {
	b := &c.KeyBuilder
	records, err := c.read(ctx, model.InventoryLevelKeys(b, model.InventoryLevelKey{SKU: sku, Warehouse: warehouse}), model.ProductBySKU.Key(b, sku), model.WarehouseByID.Key(b, warehouse))
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
	product := model.Reader{Record: records[1]}
	for counter, place := range map[string]*int{model.AttrTotalInventory: &l.total, model.AttrAvailable: &l.available} {
		if table.IsCounted(product.Record, counter) {
			*place = product.Number(counter)
		}
	}
	if err := product.Err(); err != nil {
		return leveled{}, err
	}
	if l.record != nil {
		level, err := model.DecodeInventoryLevel(model.Reader{Record: l.record})
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
// Errors: commerce.InsufficientStock, commerce.InvalidInput where there would be too many, those of
// adjust.
func (c *change) relevel(ctx context.Context, before leveled, quantity int, field string) (*commerce.InventoryLevel, error) {
	by := quantity - before.Quantity
	if by == 0 && before.record != nil {
		return &before.InventoryLevel, nil
	}
	r := before.productRecord
	if by < 0 && table.IsCounted(r, model.AttrAvailable) && before.available < -by {
		return nil, commerce.TooFew(commerce.Path(field), before.SKU, -by, before.available, ", the rest is reserved")
	}
	if by > 0 && before.total > commerce.MaxInventory-by {
		return nil, commerce.Refuse(commerce.Path(field), "makes more than %d pieces of product %s in all warehouses", commerce.MaxInventory, before.SKU)
	}
	after := before.InventoryLevel
	after.Quantity, after.Version = quantity, before.Version+1
	b := &c.KeyBuilder
	if before.record != nil {
		rewrite(c, b, before.record, &before.InventoryLevel, &after, table.Still(before.record, model.AttrVersion, model.AttrQuantity))
	} else {
		createAll(c, &after)
		c.require(model.WarehouseByID.Key(b, before.WarehouseID), table.Present)
	}
	if by == 0 {
		return &after, nil
	}
	// What nobody has counted is not counted from nothing: a check's repair does, from all the
	// levels.
	k, counters := model.ProductBySKU.Key(b, before.SKU), map[string]int{}
	conditions := []table.Condition{table.Present}
	for _, counter := range []string{model.AttrTotalInventory, model.AttrAvailable} {
		switch {
		case !table.IsCounted(r, counter):
			conditions = append(conditions, table.Still(r, counter))
			continue
		case counter == model.AttrAvailable && by < 0:
			conditions = append(conditions, table.Is(counter, ">=", model.Num(-by)))
		case counter == model.AttrTotalInventory && by > 0:
			conditions = append(conditions, table.Is(counter, "<=", model.Num(commerce.MaxInventory-by)))
		default:
			conditions = append(conditions, table.Counted(counter))
		}
		counters[counter] = by
	}
	return &after, c.adjust(ctx, adjustment{k, counters, table.AllOf(conditions...)})
}
