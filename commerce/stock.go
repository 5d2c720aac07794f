package commerce

import (
	"errors"
	"strings"
)

// Product is a product in the catalog.
type Product struct {
	SKU          SKU
	Name         string
	Category     string
	UnitPrice    Money
	CustomFields CustomValues `json:",omitzero"`
	// TotalInventory is the number of units in all warehouses.
	TotalInventory int `json:"-"`
	// Available is TotalInventory minus the number of units that pending and confirmed orders reserve.
	Available int `json:"-"`
	// OrderCount is the number of orders that contain the product. It is nil if the stored record has
	// no count.
	OrderCount *int `json:"-"`
	// StockBuckets is the number of records that store Available and OrderCount. With more than one,
	// these fields contain only the share in the product's own record, until AddBuckets adds the rest.
	StockBuckets int `json:"-"`
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int `json:"-"`
	// Partial is true if the product was read from a list that omits the stock and the order count.
	// TotalInventory, Available and OrderCount are then unknown.
	Partial bool `json:"-"`
	// Malformed is true if a required attribute of the stored record cannot be read.
	Malformed bool `json:"-"`
}

// CheckSellable returns InvalidInput if the product cannot be ordered, because its stored record is
// malformed or ParsePrice would reject its price. path is the path of the product in the request.
func (p *Product) CheckSellable(path []string) error {
	const advice = "set a valid price with updateProduct, or run `ordergraph check` and repair the record that it names"
	if p.Malformed {
		return NewInvalidInput(path, "refers to product %s, which cannot be ordered, because its stored record is malformed: %s", p.SKU, advice)
	}
	if invalid, ok := errors.AsType[*InvalidError](p.UnitPrice.CheckPrice()); ok {
		return NewInvalidInput(path, "refers to product %s, which cannot be ordered, because its price %s: %s", p.SKU, strings.Replace(invalid.Reason, ": ", "; ", 1), advice)
	}
	return nil
}

// StockBucket is one of the records over which the stock of a product is spread. The product's own
// record is the first, and has no StockBucket.
type StockBucket struct {
	SKU SKU
	// Number is from 1 to one less than the product's StockBuckets.
	Number string
	// Available and OrderCount are shares of the product's numbers. OrderCount can be negative.
	Available, OrderCount int
	// ProductVersion repeats the version of the product.
	ProductVersion int
}

// AddBuckets returns a copy of a product with the complete stock. stock is the sum of its buckets.
func (p *Product) AddBuckets(stock StockBucket) *Product {
	all := *p
	all.Available += stock.Available
	if p.OrderCount != nil {
		all.OrderCount = new(*p.OrderCount + stock.OrderCount)
	}
	return &all
}

// SpreadStock divides available units evenly among the given number of records. If the number of units
// is negative, the first record contains it, so that no record has more units than all together.
func SpreadStock(available, records int) []int {
	shares := make([]int, records)
	if available < 0 {
		shares[0] = available
		return shares
	}
	for i := range shares {
		shares[i] = available / (records - i)
		available -= shares[i]
	}
	return shares
}

// Category is a group of products. A category exists while it has at least one product.
type Category struct {
	Name string
	// ProductCount is the number of products in the category.
	ProductCount int
	// Version increases with every change.
	Version int
}

// InventoryLevel is the quantity of a product in a warehouse.
type InventoryLevel struct {
	SKU         SKU
	WarehouseID WarehouseID
	Quantity    int
	// ReorderPoint is the quantity below which the stock is low. 0 means that it never is.
	ReorderPoint int
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int
}

// WithQuantity returns the level with another quantity.
func (l InventoryLevel) WithQuantity(n int) InventoryLevel {
	l.Quantity = n
	return l
}

// Warehouse is a location that stores products and ships orders.
type Warehouse struct {
	// ID is the warehouse's ID. If the ID of a new warehouse is empty, the server generates an ID.
	ID           WarehouseID `json:",omitempty"`
	Name         string
	CustomFields CustomValues `json:",omitzero"`
	// ProductCount is the number of products with an inventory level in the warehouse. It is nil if the
	// record lacks it.
	ProductCount *int `json:"-"`
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int `json:"-"`
}

// Employee is a member of staff.
type Employee struct {
	// ID is the employee's ID. If the ID of a new employee is empty, the server generates an ID.
	ID       EmployeeID `json:",omitempty"`
	Name     string
	JobTitle string
	HireDate Date
	// WarehouseID is the ID of the warehouse where the employee works. It may be empty.
	WarehouseID  WarehouseID  `json:",omitempty"`
	PhoneNumbers []string     `json:",omitempty"`
	CustomFields CustomValues `json:",omitzero"`
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int `json:"-"`
}
