package commerce

import "time"

// The types in this file are commands. A command contains the validated values of a change that a
// client requested. If a client uses an idempotency key again, the server compares the hashes of
// the commands' JSON forms.

// Customer, Product, Warehouse and Employee are also commands. Their JSON forms omit the fields
// that the server sets.

// CustomerChange is the command to change a customer. A nil field keeps its current value.
type CustomerChange struct {
	ID           CustomerID
	Name         *string
	Email        *string
	PhoneNumbers *[]string
	CustomFields CustomValues `json:",omitzero"`
	// If ExpectedVersion is not nil, the change is rejected unless the customer has this version.
	ExpectedVersion *int
}

// AccountRepChange is the command to assign or remove the account rep of a customer. The account
// rep is the employee responsible for the customer.
type AccountRepChange struct {
	CustomerID CustomerID
	// EmployeeID is the ID of the new account rep. An empty ID removes the account rep.
	EmployeeID EmployeeID
	// If ExpectedVersion is not nil, the change is rejected unless the customer has this version.
	ExpectedVersion *int
}

// OrderRequest is the command to place an order.
type OrderRequest struct {
	CustomerID      CustomerID
	Lines           []OrderLine
	ShippingAddress *Address          `json:",omitempty"`
	BillingAddress  *Address          `json:",omitempty"`
	Contact         *OrderContact     `json:",omitempty"`
	Adjustments     []OrderAdjustment `json:",omitempty"`
	CustomFields    CustomValues      `json:",omitzero"`
	// ExpiresAt is nil if the order does not expire, or expires after the default time.
	ExpiresAt *time.Time `json:",omitempty"`
	// If ExpectedTotal is not nil, the request is rejected unless the order has this total.
	ExpectedTotal *Money `json:",omitempty"`
}

// OrderLine is one line of an OrderRequest: a product and its quantity.
type OrderLine struct {
	SKU          SKU
	Quantity     int
	CustomFields CustomValues `json:",omitzero"`
}

// OrderStatusChange is the command to change the status of an order.
type OrderStatusChange struct {
	OrderID OrderID
	To      Status
	// WarehouseID is the ID of the warehouse that ships the order. It is set only if To is Shipped.
	WarehouseID WarehouseID `json:",omitempty"`
	// TrackingNumber and Carrier describe the shipment. They are set only if To is Shipped.
	TrackingNumber, Carrier string `json:",omitempty"`
	// If WithoutAddress is true, the order can be shipped even if it has no shipping address.
	WithoutAddress bool   `json:",omitempty"`
	Note           string `json:",omitempty"`
	// If Expired is true, To is Cancelled, and the change is rejected unless the order has expired.
	Expired bool `json:",omitempty"`
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int `json:",omitempty"`
}

// OrderItemChange is the command to set the quantity of a product in an order.
type OrderItemChange struct {
	OrderID OrderID
	SKU     SKU
	// Quantity is the new quantity. A quantity of 0 removes the product from the order.
	Quantity     int
	CustomFields CustomValues `json:",omitzero"`
	// If ExpectedTotal is not nil, the change is rejected unless the changed order has this total. It
	// is required if units are added to a line item whose product has another price now.
	ExpectedTotal *Money `json:",omitempty"`
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// ShippingAddressChange is the command to replace the shipping address of an order.
type ShippingAddressChange struct {
	OrderID         OrderID
	ShippingAddress Address
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// AdjustmentsChange is the command to replace the adjustments of an order.
type AdjustmentsChange struct {
	OrderID     OrderID
	Adjustments []OrderAdjustment
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// BillingChange is the command to change the billing address and the contact of an order. A nil
// field keeps its current value.
type BillingChange struct {
	OrderID        OrderID
	BillingAddress *Address
	Contact        *OrderContact
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// OrderNote is the command to add a note to the timeline of an order.
type OrderNote struct {
	OrderID OrderID
	Note    string
	// If Visibility is nil, the customer can read the note only if the customer wrote it.
	Visibility *NoteVisibility `json:",omitempty"`
}

// HoldRequest is the command to put an order on hold.
type HoldRequest struct {
	OrderID OrderID
	Reason  string
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// ReleaseRequest is the command to end the hold of an order.
type ReleaseRequest struct {
	OrderID OrderID
	Note    string `json:",omitempty"`
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// TagsChange is the command to remove and then add tags of an order.
type TagsChange struct {
	OrderID     OrderID
	Add, Remove []string `json:",omitempty"`
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// PaymentRecord is the command to record a payment of an order.
type PaymentRecord struct {
	OrderID OrderID
	Kind    PaymentKind
	Amount  Money
	// Provider is the name of the payment provider, and Reference is its ID of the payment.
	Provider, Reference string
	// ReturnID is the refunded return, or empty. Reason is why more is refunded for it
	// than was paid for its pieces.
	ReturnID ReturnID `json:",omitempty"`
	Reason   string   `json:",omitempty"`
}

// UnmatchedPaymentDismissal is the command to remove an unmatched payment that will never be
// recorded.
type UnmatchedPaymentDismissal struct{ Provider, Reference string }

// WebhookRequest is the command to create a webhook. Webhook has the same fields.
type WebhookRequest struct {
	URL        string
	Topics     []EventType
	Statuses   []Status
	DocumentID string
}

// WebhookCommand is a command about an existing webhook, such as to pause it.
type WebhookCommand struct {
	WebhookID WebhookID
	// If ExpectedVersion is not nil, the command is rejected unless the webhook has this version.
	ExpectedVersion *int
}

// WebhookReplay is the command to send events to a webhook again, from the given time on.
type WebhookReplay struct {
	WebhookID WebhookID
	From      time.Time
}

// ReturnRequest is the command to request a return of pieces of an order. Each line has another
// product.
type ReturnRequest struct {
	OrderID OrderID
	Lines   []ReturnLine
}

// ReturnDecision is the command to approve or reject a return.
type ReturnDecision struct {
	OrderID  OrderID
	ReturnID ReturnID
	To       ReturnStatus
	// Reason is set only if To is ReturnRejected.
	Reason string `json:",omitempty"`
}

// ReturnReceipt is the command to record that a warehouse has received a return.
type ReturnReceipt struct {
	OrderID     OrderID
	ReturnID    ReturnID
	WarehouseID WarehouseID
	Lines       []RestockedLine
}

// RestockedLine contains the number of pieces of a product that are put back into stock.
type RestockedLine struct {
	SKU       SKU
	Restocked int
}

// ItemsCancellation is the command to cancel pieces of a confirmed order that are not shipped yet.
type ItemsCancellation struct {
	OrderID OrderID
	Lines   []FulfillmentLine
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int `json:",omitempty"`
}

// FulfillmentRequest is the command to ship pieces of an order as a parcel.
type FulfillmentRequest struct {
	OrderID     OrderID
	WarehouseID WarehouseID
	// Lines are the pieces in the parcel. If Lines is nil, the parcel contains everything that is
	// open.
	Lines                                []FulfillmentLine `json:",omitempty"`
	Carrier, TrackingNumber, TrackingURL string            `json:",omitempty"`
	// If WithoutAddress is true, the order can lack a shipping address.
	WithoutAddress bool `json:",omitempty"`
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int `json:",omitempty"`
}

// FulfillmentChange is the command to change how a parcel is tracked. A nil field keeps its current
// value.
type FulfillmentChange struct {
	OrderID                              OrderID
	FulfillmentID                        FulfillmentID
	Carrier, TrackingNumber, TrackingURL *string
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// FulfillmentStatusChange is the command to change the status of a fulfillment.
type FulfillmentStatusChange struct {
	OrderID       OrderID
	FulfillmentID FulfillmentID
	To            FulfillmentStatus
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int `json:",omitempty"`
}

// CustomFieldsChange is the command to change the custom fields of an order and of its line items.
type CustomFieldsChange struct {
	OrderID      OrderID
	CustomFields CustomValues `json:",omitzero"`
	Items        []ItemFieldsChange
	// If ExpectedVersion is not nil, the change is rejected unless the order has this version.
	ExpectedVersion *int
}

// ItemFieldsChange contains the changed custom fields of one line item.
type ItemFieldsChange struct {
	SKU          SKU
	CustomFields CustomValues `json:",omitzero"`
}

// ProductChange is the command to change a product. A nil field keeps its current value.
type ProductChange struct {
	SKU            SKU
	Name, Category *string
	UnitPrice      *Price       `apply:"-"`
	StockBuckets   *int         `json:",omitempty"`
	CustomFields   CustomValues `json:",omitzero"`
	// If ExpectedVersion is not nil, the change is rejected unless the product has this version.
	ExpectedVersion *int
}

// Price is the new unit price of a product.
type Price struct {
	// Amount is text, because the allowed number of decimal places depends on the currency.
	Amount string
	// If Currency is empty, the price is in the product's current currency.
	Currency Currency
}

// InventoryLevelChange is the command to set the quantity or the reorder point of a product in a
// warehouse. A nil field stays unchanged.
type InventoryLevelChange struct {
	SKU          SKU
	WarehouseID  WarehouseID
	Quantity     *int
	ReorderPoint *int
	// If ExpectedVersion is not nil, the change is rejected unless the inventory level has this
	// version. Version 0 means that the inventory level must not exist yet.
	ExpectedVersion *int
}

// InventoryAdjustment is the command to add Delta to the quantity of a product in a warehouse. A
// negative Delta reduces the quantity.
type InventoryAdjustment struct {
	SKU         SKU
	WarehouseID WarehouseID
	Delta       int
}

// InventoryTransfer is the command to move units of a product from one warehouse to another.
type InventoryTransfer struct {
	SKU             SKU
	FromWarehouseID WarehouseID
	ToWarehouseID   WarehouseID
	Quantity        int
}

// WarehouseChange is the command to change a warehouse. A nil field keeps its current value.
type WarehouseChange struct {
	ID           WarehouseID
	Name         *string
	CustomFields CustomValues `json:",omitzero"`
	// If ExpectedVersion is not nil, the change is rejected unless the warehouse has this version.
	ExpectedVersion *int
}

// EmployeeChange is the command to change an employee. A nil field keeps its current value.
type EmployeeChange struct {
	ID             EmployeeID
	Name, JobTitle *string
	// WarehouseID is the ID of the employee's new warehouse. If WarehouseID points to an empty ID, the
	// employee no longer works in a warehouse.
	WarehouseID  *WarehouseID
	PhoneNumbers *[]string
	CustomFields CustomValues `json:",omitzero"`
	// If ExpectedVersion is not nil, the change is rejected unless the employee has this version.
	ExpectedVersion *int
}
