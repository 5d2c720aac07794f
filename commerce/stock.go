package commerce

// Product is something the shop sells.
type Product struct {
	SKU       SKU
	Name      string
	Category  string
	UnitPrice Money
	// TotalInventory is the sum of the product's inventory levels, in pieces.
	TotalInventory int `json:"-"`
	// Available is TotalInventory less what pending and confirmed orders reserve.
	Available int `json:"-"`
	// OrderCount is how many orders have a line item of the product; nil where the record that was
	// read keeps no count.
	OrderCount *int `json:"-"`
	// Version goes up with every change; 0 where other software wrote the record.
	Version int `json:"-"`
	// Partial reports that TotalInventory, Available and OrderCount are unknown, as the product was
	// read from a list that does not have them.
	Partial bool `json:"-"`
}

// Category is what products of one kind have in common. There is no category without products.
type Category struct {
	Name string
	// ProductCount is how many products the category has.
	ProductCount int
	// Version goes up with every change.
	Version int
}

// InventoryLevel is how many pieces of a product lie in a warehouse.
type InventoryLevel struct {
	SKU         SKU
	WarehouseID WarehouseID
	Quantity    int
	// Version goes up with every change; 0 where other software wrote the record.
	Version int
}

// Warehouse is a place where goods lie and people work.
type Warehouse struct {
	// ID is made where a new warehouse has none.
	ID   WarehouseID `json:",omitempty"`
	Name string
	// Version goes up with every change; 0 where other software wrote the record.
	Version int `json:"-"`
}

// Employee is someone who works for the shop.
type Employee struct {
	// ID is made where a new employee has none.
	ID       EmployeeID `json:",omitempty"`
	Name     string
	JobTitle string
	HireDate Date
	// WarehouseID is where the employee works.
	WarehouseID  WarehouseID `json:",omitempty"`
	PhoneNumbers []string    `json:",omitempty"`
	// Version goes up with every change; 0 where other software wrote the record.
	Version int `json:"-"`
}
