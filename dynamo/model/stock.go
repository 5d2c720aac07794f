package model

import (
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
)

// StockBucketStock is the derivation that a table must have before a product can have several buckets.
const StockBucketStock = "stockBucket." + AttrAvailable

func productAttributes(a *attributeVisitor, p *commerce.Product) {
	idAttribute(a, "sku", &p.SKU, commerce.MaxIDLength)
	textAttribute(a, "name", &p.Name, commerce.MaxName)
	indexedTextAttribute(a, AttrCategory, &p.Category, commerce.MaxName, categoryKey, presenceLenient)
	normalizedAttribute(a, &p.Category)
	a.currencyAttribute(&p.UnitPrice)
	a.amount("unitPrice", &p.UnitPrice, commerce.MaxPriceDigits)
	if a.onInvalid != nil {
		a.reportInvalid("unitPrice", p.UnitPrice.CheckPrice())
	}
	a.number(AttrTotalInventory, &p.TotalInventory)
	a.number(AttrAvailable, &p.Available)
	if a.mode == modeMaximizing {
		p.Available = -p.Available // a negative number takes one more byte
	}
	a.optionalCounter(AttrOrderCount, &p.OrderCount, nil)
	a.stockBuckets(&p.StockBuckets)
	a.customFields("Product", &p.CustomFields)
	a.version(&p.Version)
	// Edges omit the stock numbers, so a product decoded from an edge is partial. A product's own
	// record is never partial, even if other software omitted these numbers.
	if a.mode == modeReading {
		p.Partial = !a.Has(AttrTotalInventory) && a.Text(AttrSK) != string(metadataSK)
		p.Malformed = a.Problem != ""
	}
}

// DecodeProduct decodes a product's record or one of its edges.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeProduct(r Reader) (*commerce.Product, error) {
	a, p := attributeVisitor{Reader: r, currency: codec.Currency}, &commerce.Product{}
	productAttributes(&a, p)
	return p, a.Err()
}

// stockBuckets declares the number of records that store a product's stock. If it is 1, the product's
// record omits the attribute.
func (a *attributeVisitor) stockBuckets(v *int) {
	switch a.mode {
	case modeReading:
		*v = min(max(1, a.Number(AttrStockBuckets)), commerce.MaxStockBuckets)
	case modeWriting:
		if *v > 1 {
			a.encoded[AttrStockBuckets] = Num(*v)
		}
	case modeMaximizing:
		*v = commerce.MaxStockBuckets
	case modeDescribing:
		a.describe(AttrStockBuckets, "N", 0, presenceOptional)
	}
}

func stockBucketAttributes(a *attributeVisitor, s *commerce.StockBucket) {
	textAttribute(a, "sku", &s.SKU, commerce.MaxIDLength)
	textAttribute(a, "bucket", &s.Number, len("15"))
	a.number(AttrAvailable, &s.Available)
	a.number(AttrOrderCount, &s.OrderCount)
	a.number(AttrProductVersion, &s.ProductVersion)
}

// StockBucketRecord encodes one of the records over which the stock of a product is spread.
func StockBucketRecord(b *KeyBuilder, s commerce.StockBucket) Record {
	return b.record(&EntityStockBucket, encode(stockBucketAttributes, s))
}

// StockBucketKey identifies one of the records over which the stock of a product is spread. Number is
// from 1.
type StockBucketKey struct {
	SKU    commerce.SKU
	Number int
}

// KeysOfStockBucket returns the primary key of a record.
func KeysOfStockBucket(b *KeyBuilder, k StockBucketKey) Keys {
	return b.IdentifyingKey(&EntityStockBucket, string(k.SKU), strconv.Itoa(k.Number))
}

// DecodeStockBucket decodes one of the records over which the stock of a product is spread.
//
// Errors: ErrCorrupt.
func DecodeStockBucket(r Reader) (*commerce.StockBucket, error) {
	a, s := attributeVisitor{Reader: r}, &commerce.StockBucket{}
	stockBucketAttributes(&a, s)
	return s, a.Err()
}

// CategoryRecord returns the record of a category, which contains the product count.
func CategoryRecord(b *KeyBuilder, c commerce.Category) Record {
	return b.record(&EntityCategory, encode(categoryAttributes, c))
}

func categoryAttributes(a *attributeVisitor, c *commerce.Category) {
	textAttribute(a, AttrCategory, &c.Name, commerce.MaxName)
	a.number(AttrProductCount, &c.ProductCount)
	a.version(&c.Version)
}

// DecodeCategory decodes the record of a category.
//
// Errors: ErrCorrupt.
func DecodeCategory(r Reader) (*commerce.Category, error) {
	a, c := attributeVisitor{Reader: r}, &commerce.Category{}
	categoryAttributes(&a, c)
	return c, a.Err()
}

// InventoryLevelKey identifies an inventory level (the stock of a product in a warehouse).
type InventoryLevelKey struct {
	SKU       commerce.SKU
	Warehouse commerce.WarehouseID
}

// KeysOfInventoryLevel returns the primary key of an inventory level.
func KeysOfInventoryLevel(b *KeyBuilder, k InventoryLevelKey) Keys {
	return Keys{PK: b.Build(EntityInventoryLevel.PK, string(k.SKU)), SK: b.Build(EntityInventoryLevel.SK, string(k.Warehouse))}
}

func inventoryLevelAttributes(a *attributeVisitor, l *commerce.InventoryLevel) {
	textAttribute(a, "sku", &l.SKU, commerce.MaxIDLength)
	textAttribute(a, "warehouseId", &l.WarehouseID, commerce.MaxIDLength)
	a.requiredNumber(AttrQuantity, &l.Quantity)
	if _, err := commerce.ParseInventoryLevel(l.Quantity); a.onInvalid != nil {
		a.reportInvalid(AttrQuantity, err)
	}
	if a.optionalNumber(attrReorderPoint, &l.ReorderPoint); a.mode == modeMaximizing {
		l.Quantity = -l.Quantity // below the reorder point, with the longest number
	}
	a.version(&l.Version)
}

// attrReorderPoint is the quantity of an inventory level below which its stock is low.
const attrReorderPoint = "reorderPoint"

// lowQuantity returns the quantity of an inventory level as part of a key. If the stock is not low, it
// returns "".
func lowQuantity(level Reader) string {
	if quantity := level.Number(AttrQuantity); quantity < level.Number(attrReorderPoint) {
		return SortableNumber(strconv.Itoa(quantity))
	}
	return ""
}

// DecodeInventoryLevel decodes the record of an inventory level.
//
// Errors: ErrCorrupt.
func DecodeInventoryLevel(r Reader) (*commerce.InventoryLevel, error) {
	a, l := attributeVisitor{Reader: r}, &commerce.InventoryLevel{}
	inventoryLevelAttributes(&a, l)
	return l, a.Err()
}

func warehouseAttributes(a *attributeVisitor, w *commerce.Warehouse) {
	idAttribute(a, "warehouseId", &w.ID, commerce.MaxIDLength)
	textAttribute(a, "name", &w.Name, commerce.MaxName)
	if w.Name == "" {
		a.reportInvalid("name", commerce.NewInvalidError("is empty"))
	}
	a.optionalCounter(AttrProductCount, &w.ProductCount, nil)
	a.customFields("Warehouse", &w.CustomFields)
	a.version(&w.Version)
}

// DecodeWarehouse decodes the record of a warehouse.
//
// Errors: ErrCorrupt.
func DecodeWarehouse(r Reader) (*commerce.Warehouse, error) {
	a, w := attributeVisitor{Reader: r}, &commerce.Warehouse{}
	warehouseAttributes(&a, w)
	return w, a.Err()
}
