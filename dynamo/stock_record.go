package dynamo

import "github.com/ordergraph/ordergraph/commerce"

func productKey(b *keyBuilder, sku commerce.SKU) keys {
	return keys{PK: b.key(entityProduct.PK, string(sku)), SK: b.key(entityProduct.SK)}
}

func productRecord(b *keyBuilder, p commerce.Product) record {
	k := productKey(b, p.SKU)
	k.IndexPK = b.key(entityProduct.IndexPK, p.Category)
	k.IndexSK = b.key(entityProduct.IndexSK, string(p.SKU))
	return k.attributes().with(productAttributes(p)).with(record{"entity": str(entityProduct.Name)})
}

func productAttributes(p commerce.Product) record {
	return record{
		"sku": str(string(p.SKU)), "name": str(p.Name), "category": str(p.Category),
		"unitPrice": amount(p.UnitPrice), "currency": str(string(p.UnitPrice.Currency)),
		attrTotalInventory: num(p.TotalInventory), attrAvailable: num(p.Available), attrVersion: num(p.Version),
	}
}

// decodeProduct reads a product.
//
// Errors: ErrCorrupt.
func (codec *Codec) decodeProduct(r reader) (*commerce.Product, error) {
	p := &commerce.Product{
		SKU:            commerce.SKU(r.mustText("sku")),
		Name:           r.mustText("name"),
		Category:       r.textOrKey("category", &entityProduct),
		UnitPrice:      r.mustMoney("unitPrice", r.currency(codec.Currency)),
		TotalInventory: r.number(attrTotalInventory),
		Available:      r.number(attrAvailable),
		Version:        r.number(attrVersion),
	}
	return p, r.err()
}

// InventoryLevelKey names the stock of a product in a warehouse.
type InventoryLevelKey struct {
	SKU       commerce.SKU
	Warehouse commerce.WarehouseID
}

func inventoryLevelKey(b *keyBuilder, k InventoryLevelKey) keys {
	return keys{PK: b.key(entityInventoryLevel.PK, string(k.SKU)), SK: b.key(entityInventoryLevel.SK, string(k.Warehouse))}
}

func inventoryLevelRecord(b *keyBuilder, l commerce.InventoryLevel) record {
	k := inventoryLevelKey(b, InventoryLevelKey{SKU: l.SKU, Warehouse: l.WarehouseID})
	k.IndexPK = b.key(entityInventoryLevel.IndexPK, string(l.WarehouseID))
	k.IndexSK = b.key(entityInventoryLevel.IndexSK, string(l.SKU))
	return k.attributes().with(inventoryLevelAttributes(l)).with(record{"entity": str(entityInventoryLevel.Name)})
}

func inventoryLevelAttributes(l commerce.InventoryLevel) record {
	return record{
		"sku": str(string(l.SKU)), "warehouseId": str(string(l.WarehouseID)), attrQuantity: num(l.Quantity), attrVersion: num(l.Version),
	}
}

// decodeInventoryLevel reads an inventory level.
//
// Errors: ErrCorrupt.
func decodeInventoryLevel(r reader) (*commerce.InventoryLevel, error) {
	l := &commerce.InventoryLevel{
		SKU:         commerce.SKU(r.mustText("sku")),
		WarehouseID: commerce.WarehouseID(r.mustText("warehouseId")),
		Quantity:    r.mustNumber(attrQuantity),
		Version:     r.number(attrVersion),
	}
	return l, r.err()
}

func warehouseKey(b *keyBuilder, id commerce.WarehouseID) keys {
	return keys{PK: b.key(entityWarehouse.PK, string(id)), SK: b.key(entityWarehouse.SK)}
}

func warehouseRecord(b *keyBuilder, w commerce.Warehouse) record {
	k := warehouseKey(b, w.ID)
	k.IndexPK = b.key(entityWarehouse.IndexPK)
	k.IndexSK = b.key(entityWarehouse.IndexSK, string(w.ID))
	return k.attributes().with(warehouseAttributes(w)).with(record{"entity": str(entityWarehouse.Name)})
}

func warehouseAttributes(w commerce.Warehouse) record {
	return record{"warehouseId": str(string(w.ID)), "name": str(w.Name), attrVersion: num(w.Version)}
}

// decodeWarehouse reads a warehouse.
//
// Errors: ErrCorrupt.
func decodeWarehouse(r reader) (*commerce.Warehouse, error) {
	w := &commerce.Warehouse{
		ID:      commerce.WarehouseID(r.mustText("warehouseId")),
		Name:    r.mustText("name"),
		Version: r.number(attrVersion),
	}
	return w, r.err()
}
