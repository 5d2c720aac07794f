package commerce

// A command describes a change that a caller requests. Its values are validated.
//
// The JSON form of a command identifies the request: equal commands of one caller are the same
// request. Customers, products, warehouses and employees are themselves the commands that create
// them. Their JSON form omits the fields that the server sets.

// CustomerChange changes the fields of a customer that are not nil.
type CustomerChange struct {
	ID           CustomerID
	Name         *string
	Email        *string
	PhoneNumbers *[]string
	// ExpectedVersion is the version that the record must have; nil means any.
	ExpectedVersion *int
}

// AccountRepChange assigns or removes the account rep of a customer.
type AccountRepChange struct {
	CustomerID CustomerID
	// EmployeeID is empty to remove the account rep.
	EmployeeID EmployeeID
	// ExpectedVersion is the version that the customer must have; nil means any.
	ExpectedVersion *int
}

// OrderRequest places an order.
type OrderRequest struct {
	CustomerID      CustomerID
	Lines           []OrderLine
	ShippingAddress *Address `json:",omitempty"`
	// ExpectedTotal is the total that the order must have; nil means any.
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
	// ExpectedVersion is the version that the order must have; nil means any.
	ExpectedVersion *int `json:",omitempty"`
}

// OrderItemChange sets the quantity of a product in an order.
type OrderItemChange struct {
	OrderID OrderID
	SKU     SKU
	// Quantity is 0 to take the product off the order.
	Quantity int
	// ExpectedVersion is the version that the order must have; nil means any.
	ExpectedVersion *int
}

// ShippingAddressChange replaces the shipping address of an order.
type ShippingAddressChange struct {
	OrderID         OrderID
	ShippingAddress Address
	// ExpectedVersion is the version that the order must have; nil means any.
	ExpectedVersion *int
}

// ProductChange changes the fields of a product that are not nil.
type ProductChange struct {
	SKU            SKU
	Name, Category *string
	UnitPrice      *Price `apply:"-"`
	// ExpectedVersion is the version that the record must have; nil means any.
	ExpectedVersion *int
}

// Price is a new unit price. If Currency is empty, the price is in the product's currency. Amount
// is text because the currency determines how many digits are allowed.
type Price struct {
	Amount   string
	Currency Currency
}

// InventoryCount sets the quantity of a product in a warehouse.
type InventoryCount struct {
	SKU         SKU
	WarehouseID WarehouseID
	Quantity    int
	// ExpectedVersion is the version that the inventory level must have, or 0 if it must not exist;
	// nil means any.
	ExpectedVersion *int
}

// InventoryAdjustment adds Delta to the quantity of a product in a warehouse.
type InventoryAdjustment struct {
	SKU         SKU
	WarehouseID WarehouseID
	Delta       int
}

// EmployeeChange changes the fields of an employee that are not nil.
type EmployeeChange struct {
	ID             EmployeeID
	Name, JobTitle *string
	// WarehouseID points to an empty ID to remove the warehouse.
	WarehouseID  *WarehouseID
	PhoneNumbers *[]string
	// ExpectedVersion is the version that the record must have; nil means any.
	ExpectedVersion *int
}
