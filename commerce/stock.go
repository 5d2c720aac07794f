package commerce

// Product is a product in the catalog.
type Product struct {
	SKU       SKU
	Name      string
	Category  string
	UnitPrice Money
	// TotalInventory is the sum of the quantities in all warehouses.
	TotalInventory int `json:"-"`
	// Available is TotalInventory minus the quantity that pending and confirmed orders reserve.
	Available int `json:"-"`
	// OrderCount is the number of orders with a line item of the product. It is nil if the record has
	// no count.
	OrderCount *int `json:"-"`
	// Version is incremented by every change. It is 0 in external records.
	Version int `json:"-"`
	// Partial reports that TotalInventory, Available and OrderCount are unknown because the product
	// was read from a list without them.
	Partial bool `json:"-"`
}

// Category is a group of products. It exists as long as it has products.
type Category struct {
	Name string
	// ProductCount is the number of products in the category.
	ProductCount int
	// Version is incremented by every change.
	Version int
}

// InventoryLevel is the quantity of a product in a warehouse.
type InventoryLevel struct {
	SKU         SKU
	WarehouseID WarehouseID
	Quantity    int
	// Version is incremented by every change. It is 0 in external records.
	Version int
}

// Warehouse is a location that stores products and ships orders.
type Warehouse struct {
	// ID is generated for a new warehouse without an ID.
	ID   WarehouseID `json:",omitempty"`
	Name string
	// Version is incremented by every change. It is 0 in external records.
	Version int `json:"-"`
}

// Employee is a member of staff.
type Employee struct {
	// ID is generated for a new employee without an ID.
	ID       EmployeeID `json:",omitempty"`
	Name     string
	JobTitle string
	HireDate Date
	// WarehouseID is the warehouse where the employee works. It may be empty.
	WarehouseID  WarehouseID `json:",omitempty"`
	PhoneNumbers []string    `json:",omitempty"`
	// Version is incremented by every change. It is 0 in external records.
	Version int `json:"-"`
}
