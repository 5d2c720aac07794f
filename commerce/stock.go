package commerce

import (
	"errors"
	"strings"
)

// Product is a product in the catalog.
type Product struct {
	SKU       SKU
	Name      string
	Category  string
	UnitPrice Money
	// TotalInventory is the number of units in all warehouses.
	TotalInventory int `json:"-"`
	// Available is TotalInventory minus the number of units that pending and confirmed orders reserve.
	Available int `json:"-"`
	// OrderCount is the number of orders that contain the product. It is nil if the stored record has
	// no count.
	OrderCount *int `json:"-"`
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
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int
}

// Warehouse is a location that stores products and ships orders.
type Warehouse struct {
	// ID is the warehouse's ID. If the ID of a new warehouse is empty, the server generates an ID.
	ID   WarehouseID `json:",omitempty"`
	Name string
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
	WarehouseID  WarehouseID `json:",omitempty"`
	PhoneNumbers []string    `json:",omitempty"`
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int `json:"-"`
}
