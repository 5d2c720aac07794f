package commerce

// A command says what a caller wants to be changed, with every value in its right form. Its JSON
// form identifies the request: the same command of the same caller is the same request. The command
// that adds a customer, a product, a warehouse or an employee is the record itself; fields that the
// server sets are not in its JSON form.

// CustomerChange changes a customer; what is nil stays.
type CustomerChange struct {
	ID           CustomerID
	Name         *string
	Email        *string
	PhoneNumbers *[]string
	// ExpectedVersion is the version that the record must have; nil for any.
	ExpectedVersion *int
}

// AccountRepChange names who looks after a customer.
type AccountRepChange struct {
	CustomerID CustomerID
	// EmployeeID is empty for nobody.
	EmployeeID EmployeeID
	// ExpectedVersion is the version that the customer must have; nil for any.
	ExpectedVersion *int
}

// NewOrder places an order.
type NewOrder struct {
	CustomerID      CustomerID
	Lines           []OrderLine
	ShippingAddress *Address `json:",omitempty"`
	// ExpectedTotal is the total that the order must have; nil for any.
	ExpectedTotal *Money `json:",omitempty"`
}

// OrderLine is a product and how many pieces of it.
type OrderLine struct {
	SKU      SKU
	Quantity int
}

// OrderMove moves an order to another status.
type OrderMove struct {
	OrderID OrderID
	To      Status
	// WarehouseID is where the goods leave from, for Shipped only.
	WarehouseID WarehouseID `json:",omitempty"`
	// TrackingNumber and Carrier are those of the shipment, for Shipped only.
	TrackingNumber, Carrier string `json:",omitempty"`
	// WithoutAddress ships an order that has no shipping address.
	WithoutAddress bool   `json:",omitempty"`
	Note           string `json:",omitempty"`
	// ExpectedVersion is the version that the order must have; nil for any.
	ExpectedVersion *int `json:",omitempty"`
}

// OrderItemChange sets how many pieces of a product an order has.
type OrderItemChange struct {
	OrderID OrderID
	SKU     SKU
	// Quantity is 0 to take the product off the order.
	Quantity int
	// ExpectedVersion is the version that the order must have; nil for any.
	ExpectedVersion *int
}

// ShippingAddressChange changes where an order goes.
type ShippingAddressChange struct {
	OrderID         OrderID
	ShippingAddress Address
	// ExpectedVersion is the version that the order must have; nil for any.
	ExpectedVersion *int
}

// ProductChange changes a product; what is nil stays.
type ProductChange struct {
	SKU            SKU
	Name, Category *string
	UnitPrice      *Price `apply:"-"`
	// ExpectedVersion is the version that the record must have; nil for any.
	ExpectedVersion *int
}

// Price is what a piece is to cost, in the product's currency where it names none: only then is
// known how many digits it can have.
type Price struct {
	Amount   string
	Currency Currency
}

// InventoryCount says how many pieces of a product lie in a warehouse.
type InventoryCount struct {
	SKU         SKU
	WarehouseID WarehouseID
	Quantity    int
	// ExpectedVersion is the version that the level must have, 0 where there must be none; nil for
	// any.
	ExpectedVersion *int
}

// InventoryAdjustment says by how many pieces the stock of a product in a warehouse changes.
type InventoryAdjustment struct {
	SKU         SKU
	WarehouseID WarehouseID
	Delta       int
}

// EmployeeChange changes an employee; what is nil stays.
type EmployeeChange struct {
	ID             EmployeeID
	Name, JobTitle *string
	// WarehouseID is empty for no warehouse.
	WarehouseID  *WarehouseID
	PhoneNumbers *[]string
	// ExpectedVersion is the version that the record must have; nil for any.
	ExpectedVersion *int
}
