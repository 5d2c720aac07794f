package model

import "github.com/ordergraph/ordergraph/commerce"

// ProductKeys returns the keys of a product.
func ProductKeys(b *KeyBuilder, sku commerce.SKU) Keys {
	return Keys{PK: b.Key(EntityProduct.PK, string(sku)), SK: b.Key(EntityProduct.SK)}
}

// ProductRecord returns the record of a product.
func ProductRecord(b *KeyBuilder, p commerce.Product) Record {
	k := ProductKeys(b, p.SKU)
	k.IndexPK = b.Key(EntityProduct.IndexPK, p.Category)
	k.IndexSK = b.Key(EntityProduct.IndexSK, string(p.SKU))
	return k.Attributes().With(ProductAttributes(p)).With(Record{"entity": Str(EntityProduct.Name)})
}

// ProductAttributes returns the attributes of a product.
func ProductAttributes(p commerce.Product) Record {
	return Record{
		"sku": Str(string(p.SKU)), "name": Str(p.Name), "category": Str(p.Category),
		"unitPrice": Amount(p.UnitPrice), "currency": Str(string(p.UnitPrice.Currency)),
		AttrTotalInventory: Num(p.TotalInventory), AttrAvailable: Num(p.Available), AttrVersion: Num(p.Version),
	}
}

// DecodeProduct reads a product.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeProduct(r Reader) (*commerce.Product, error) {
	p := &commerce.Product{
		SKU:            commerce.SKU(r.MustText("sku")),
		Name:           r.MustText("name"),
		Category:       r.textOrKey("category", &EntityProduct),
		UnitPrice:      r.mustMoney("unitPrice", r.Currency(codec.Currency)),
		TotalInventory: r.Number(AttrTotalInventory),
		Available:      r.Number(AttrAvailable),
		Version:        r.Number(AttrVersion),
	}
	return p, r.Err()
}

// InventoryLevelKey names the stock of a product in a warehouse.
type InventoryLevelKey struct {
	SKU       commerce.SKU
	Warehouse commerce.WarehouseID
}

// InventoryLevelKeys returns the keys of an inventory level.
func InventoryLevelKeys(b *KeyBuilder, k InventoryLevelKey) Keys {
	return Keys{PK: b.Key(EntityInventoryLevel.PK, string(k.SKU)), SK: b.Key(EntityInventoryLevel.SK, string(k.Warehouse))}
}

// InventoryLevelRecord returns the record of an inventory level.
func InventoryLevelRecord(b *KeyBuilder, l commerce.InventoryLevel) Record {
	k := InventoryLevelKeys(b, InventoryLevelKey{SKU: l.SKU, Warehouse: l.WarehouseID})
	k.IndexPK = b.Key(EntityInventoryLevel.IndexPK, string(l.WarehouseID))
	k.IndexSK = b.Key(EntityInventoryLevel.IndexSK, string(l.SKU))
	return k.Attributes().With(InventoryLevelAttributes(l)).With(Record{"entity": Str(EntityInventoryLevel.Name)})
}

// InventoryLevelAttributes returns the attributes of an inventory level.
func InventoryLevelAttributes(l commerce.InventoryLevel) Record {
	return Record{
		"sku": Str(string(l.SKU)), "warehouseId": Str(string(l.WarehouseID)), AttrQuantity: Num(l.Quantity), AttrVersion: Num(l.Version),
	}
}

// DecodeInventoryLevel reads an inventory level.
//
// Errors: ErrCorrupt.
func DecodeInventoryLevel(r Reader) (*commerce.InventoryLevel, error) {
	l := &commerce.InventoryLevel{
		SKU:         commerce.SKU(r.MustText("sku")),
		WarehouseID: commerce.WarehouseID(r.MustText("warehouseId")),
		Quantity:    r.MustNumber(AttrQuantity),
		Version:     r.Number(AttrVersion),
	}
	return l, r.Err()
}

// WarehouseKeys returns the keys of a warehouse.
func WarehouseKeys(b *KeyBuilder, id commerce.WarehouseID) Keys {
	return Keys{PK: b.Key(EntityWarehouse.PK, string(id)), SK: b.Key(EntityWarehouse.SK)}
}

// WarehouseRecord returns the record of a warehouse.
func WarehouseRecord(b *KeyBuilder, w commerce.Warehouse) Record {
	k := WarehouseKeys(b, w.ID)
	k.IndexPK = b.Key(EntityWarehouse.IndexPK)
	k.IndexSK = b.Key(EntityWarehouse.IndexSK, string(w.ID))
	return k.Attributes().With(WarehouseAttributes(w)).With(Record{"entity": Str(EntityWarehouse.Name)})
}

// WarehouseAttributes returns the attributes of a warehouse.
func WarehouseAttributes(w commerce.Warehouse) Record {
	return Record{"warehouseId": Str(string(w.ID)), "name": Str(w.Name), AttrVersion: Num(w.Version)}
}

// DecodeWarehouse reads a warehouse.
//
// Errors: ErrCorrupt.
func DecodeWarehouse(r Reader) (*commerce.Warehouse, error) {
	w := &commerce.Warehouse{
		ID:      commerce.WarehouseID(r.MustText("warehouseId")),
		Name:    r.MustText("name"),
		Version: r.Number(AttrVersion),
	}
	return w, r.Err()
}
