package commerce

// Product is something the shop sells.
type Product struct {
	SKU       SKU
	Name      string
	Category  string
	UnitPrice Money
	// TotalInventory is the sum of the product's inventory levels, in pieces.
	TotalInventory int
	// Available is TotalInventory less what pending and confirmed orders reserve.
	Available int
	// Version goes up with every change; 0 where other software wrote the record.
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
	ID   WarehouseID
	Name string
	// Version goes up with every change; 0 where other software wrote the record.
	Version int
}

// Employee is someone who works for the shop.
type Employee struct {
	ID           EmployeeID
	Name         string
	PhoneNumbers []string
	JobTitle     string
	HireDate     Date
	// WarehouseID is where the employee works.
	WarehouseID WarehouseID
	// Version goes up with every change; 0 where other software wrote the record.
	Version int
}
