package commerce

import "time"

// MaxEmbeddedItems is up to how many items an order carries on its own records.
const MaxEmbeddedItems = 25

// Order is what a customer bought at one time.
type Order struct {
	ID         OrderID
	CustomerID CustomerID
	Status     Status
	// Total is the sum of the items' subtotals.
	Total Money
	// ItemCount is how many items (lines) the order has; nil where the record that was read does
	// not tell.
	ItemCount *int
	// Items are the order's items by SKU, where EmbedsItems; an order of more than
	// MaxEmbeddedItems, and one that other software wrote, has them only as records of their own.
	Items       []LineItem
	EmbedsItems bool
	// ShippingAddress is nil where none was given.
	ShippingAddress *Address
	// TrackingNumber and Carrier are those of the shipment; empty if they are unknown.
	TrackingNumber, Carrier string
	// AccountRepID is who looked after the customer when the order was placed.
	AccountRepID EmployeeID
	PlacedAt     time.Time
	UpdatedAt    time.Time
	// Version goes up with every change; 0 where other software wrote the record.
	Version int
}

// LineItem is one line of an order: a product, how many, at which price.
type LineItem struct {
	OrderID OrderID
	// CustomerID is who placed the order; empty where the record that was read does not tell.
	CustomerID CustomerID
	SKU        SKU
	// Name and UnitPrice are the product's at the time of placing.
	Name      string
	Quantity  int
	UnitPrice Money
}

// Subtotal is the unit price times the quantity.
//
// Errors: one that says so where the result has more than 19 digits.
func (i LineItem) Subtotal() (Money, error) { return i.UnitPrice.Times(i.Quantity) }

// Address is where goods go. Line2 and Region may be empty.
type Address struct {
	Recipient, Line1, Line2, City, Region, PostalCode string
	// CountryCode is two letters by ISO 3166-1.
	CountryCode string
}

// EventType is what kind of thing happened to an order, in lower case: "placed".
type EventType string

// The kinds of events.
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

// ParseEventType reads a kind of event as it is stored.
//
// Errors: InvalidError for any other text.
func ParseEventType(s string) (EventType, error) {
	switch t := EventType(s); t {
	case EventPlaced, EventConfirmed, EventShipped, EventDelivered, EventCancelled, EventItemSet, EventItemRemoved,
		EventShippingAddressChanged, EventImported:
		return t, nil
	}
	return "", Invalid("is %q, which is no kind of event", s)
}

// Event is one thing that happened to an order.
type Event struct {
	ID      EventID
	OrderID OrderID
	Type    EventType
	// From and To are the statuses before and after; zero where the event has none.
	From, To Status
	At       time.Time
	// Actor is who did it.
	Actor string
	// Note is what they noted; empty where nothing.
	Note string
	// WarehouseID is where the goods left from; empty unless the event shipped the order.
	WarehouseID WarehouseID
}

// AvailableTransitions are the statuses that the order can move to from here.
func (o Order) AvailableTransitions() []Status { return o.Status.Transitions() }
