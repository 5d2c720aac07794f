package commerce

import "time"

// MaxEmbeddedItems is the maximum number of line items that an order's record can contain. Larger
// orders store their line items only as separate records.
const MaxEmbeddedItems = 25

// Order is a purchase of a customer.
type Order struct {
	ID         OrderID
	CustomerID CustomerID
	Status     Status
	// Total is the sum of the items' subtotals.
	Total Money
	// ItemCount is the number of line items. It is nil if the stored record has no count.
	ItemCount *int
	// Items contains the line items, sorted by SKU, if EmbedsItems is true. If EmbedsItems is false,
	// the table stores the line items only as separate records. The order then has more than
	// MaxEmbeddedItems, or other software wrote it.
	Items       []LineItem
	EmbedsItems bool
	// ShippingAddress is nil if the order has no shipping address.
	ShippingAddress *Address
	// TrackingNumber and Carrier describe the shipment. Both can be empty.
	TrackingNumber, Carrier string
	// AccountRepID is the customer's account rep at the time of the order.
	AccountRepID EmployeeID
	PlacedAt     time.Time
	UpdatedAt    time.Time
	// Version is incremented by every change. It is 0 in records written by other software.
	Version int
}

// LineItem is one line of an order: a product, its quantity and its unit price.
type LineItem struct {
	OrderID OrderID
	// CustomerID is the customer of the order. It is empty if the stored record lacks this attribute.
	CustomerID CustomerID
	SKU        SKU
	// Name and UnitPrice are copied from the product when the line item is added.
	Name      string
	Quantity  int
	UnitPrice Money
}

// Subtotal returns the unit price times the quantity.
//
// It returns an error if the result has more than 19 digits.
func (i LineItem) Subtotal() (Money, error) { return i.UnitPrice.Times(i.Quantity) }

// Address is a shipping address. Line2, Region and PostalCode may be empty.
type Address struct {
	Recipient, Line1, Line2, City, Region, PostalCode string
	// CountryCode is a two-letter code of ISO 3166-1.
	CountryCode string
}

// EventType is the stored type of an order event, in lower case, such as "placed".
type EventType string

// Event types.
const (
	EventPlaced                 EventType = "placed"
	EventConfirmed              EventType = "confirmed"
	EventShipped                EventType = "shipped"
	EventDelivered              EventType = "delivered"
	EventCancelled              EventType = "cancelled"
	EventItemSet                EventType = "item_set"
	EventItemRemoved            EventType = "item_removed"
	EventShippingAddressChanged EventType = "shipping_address_changed"
	EventImported               EventType = "imported"
)

// ParseEventType validates and returns a stored event type.
//
// It returns an InvalidError if s is not an event type.
func ParseEventType(s string) (EventType, error) {
	switch t := EventType(s); t {
	case EventPlaced, EventConfirmed, EventShipped, EventDelivered, EventCancelled, EventItemSet, EventItemRemoved,
		EventShippingAddressChanged, EventImported:
		return t, nil
	}
	return "", NewInvalidError("is %q, which is not an event type", s)
}

// Event is an entry in the timeline of an order.
type Event struct {
	ID      EventID
	OrderID OrderID
	Type    EventType
	// From and To are the order's statuses before and after the event. Both are zero if the event does
	// not change the status.
	From, To Status
	At       time.Time
	// Actor is the name of the principal that caused the event.
	Actor string
	// Note is the actor's note. It may be empty.
	Note string
	// WarehouseID is the warehouse that shipped the order. It is set only in events of the type
	// EventShipped.
	WarehouseID WarehouseID
}

// AvailableTransitions returns the statuses to which the order can change next.
func (o Order) AvailableTransitions() []Status { return o.Status.Transitions() }
