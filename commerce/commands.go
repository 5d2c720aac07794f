package commerce

// The types below are commands. A command contains the validated values of a change that a caller
// requests.
//
// The JSON form of a command identifies a repeated request: two requests of a caller are the same
// request if their commands have the same JSON form. Customer, Product, Warehouse and Employee are
// also commands: they create these records. Their JSON form omits the fields that the server sets.

// CustomerChange changes a customer. If a field is nil, the customer keeps the current value.
type CustomerChange struct {
	ID           CustomerID
	Name         *string
	Email        *string
	PhoneNumbers *[]string
	// ExpectedVersion is the version that the record must have. Nil accepts every version.
	ExpectedVersion *int
}

// AccountRepChange assigns or removes the account rep of a customer.
type AccountRepChange struct {
	CustomerID CustomerID
	// EmployeeID is empty to remove the account rep.
	EmployeeID EmployeeID
	// ExpectedVersion is the version that the customer must have. Nil accepts every version.
	ExpectedVersion *int
}

// OrderRequest places an order.
type OrderRequest struct {
	CustomerID      CustomerID
	Lines           []OrderLine
	ShippingAddress *Address `json:",omitempty"`
	// ExpectedTotal is the total that the order must have. Nil accepts every total.
	ExpectedTotal *Money `json:",omitempty"`
}

// OrderLine is a product and its quantity in an order request.
type OrderLine struct {
	SKU      SKU
	Quantity int
}

// OrderStatusChange changes the status of an order.
type OrderStatusChange struct {
	OrderID OrderID
	To      Status
	// WarehouseID is the warehouse that ships the order. It is set only if To is Shipped.
	WarehouseID WarehouseID `json:",omitempty"`
	// TrackingNumber and Carrier describe the shipment. They are set only if To is Shipped.
	TrackingNumber, Carrier string `json:",omitempty"`
	// WithoutAddress allows an order without a shipping address to be shipped.
	WithoutAddress bool   `json:",omitempty"`
	Note           string `json:",omitempty"`
	// ExpectedVersion is the version that the order must have. Nil accepts every version.
	ExpectedVersion *int `json:",omitempty"`
}

// OrderItemChange sets the quantity of a product in an order.
type OrderItemChange struct {
	OrderID OrderID
	SKU     SKU
	// Quantity is the new quantity. The quantity 0 removes the product from the order.
	Quantity int
	// ExpectedVersion is the version that the order must have. Nil accepts every version.
	ExpectedVersion *int
}

// ShippingAddressChange replaces the shipping address of an order.
type ShippingAddressChange struct {
	OrderID         OrderID
	ShippingAddress Address
	// ExpectedVersion is the version that the order must have. Nil accepts every version.
	ExpectedVersion *int
}

// ProductChange changes a product. If a field is nil, the product keeps the current value.
type ProductChange struct {
	SKU            SKU
	Name, Category *string
	UnitPrice      *Price `apply:"-"`
	// ExpectedVersion is the version that the record must have. Nil accepts every version.
	ExpectedVersion *int
}

// Price is the new unit price of a product. If Currency is empty, the price is in the product's
// current currency. Amount is text, because the currency determines how many decimal places are
// allowed.
type Price struct {
	Amount   string
	Currency Currency
}

// InventoryCount sets the quantity of a product in a warehouse.
type InventoryCount struct {
	SKU         SKU
	WarehouseID WarehouseID
	Quantity    int
	// ExpectedVersion is the version that the inventory level must have, or 0 if the level must not
	// exist. Nil accepts every version.
	ExpectedVersion *int
}

// InventoryAdjustment adds Delta to the quantity of a product in a warehouse.
type InventoryAdjustment struct {
	SKU         SKU
	WarehouseID WarehouseID
	Delta       int
}

// EmployeeChange changes an employee. If a field is nil, the employee keeps the current value.
type EmployeeChange struct {
	ID             EmployeeID
	Name, JobTitle *string
	// WarehouseID is the ID of the new warehouse. A pointer to an empty ID removes the warehouse.
	WarehouseID  *WarehouseID
	PhoneNumbers *[]string
	// ExpectedVersion is the version that the record must have. Nil accepts every version.
	ExpectedVersion *int
}
