package commerce

import (
	"fmt"
	"slices"
	"time"
)

// MaxEmbeddedItems is the maximum number of line items that an order's record can contain. The line
// items of a larger order are stored only as separate records.
const MaxEmbeddedItems = 25

// Order is a purchase of a customer.
type Order struct {
	ID         OrderID
	CustomerID CustomerID
	Status     Status
	// Total is the sum of the subtotals of the line items and of the adjustments that are not included.
	Total Money
	// ItemCount is the number of line items. It is nil if the stored record has no count.
	ItemCount *int
	// If EmbedsItems is true, Items contains all line items, sorted by SKU.
	Items []LineItem
	// EmbedsItems is true if the order's record contains the line items. It is false if the order has
	// more than MaxEmbeddedItems line items, or if other software wrote the order.
	EmbedsItems bool
	// Adjustments are the amounts for shipping, taxes, discounts and fees.
	Adjustments []OrderAdjustment
	// ShippingAddress is nil if the order has no shipping address, and BillingAddress is nil if it has no
	// billing address of its own.
	ShippingAddress, BillingAddress *Address
	// Contact is nil if the order has no contact of its own.
	Contact *OrderContact
	// TrackingNumber and Carrier describe the shipment. Either of them can be empty.
	TrackingNumber, Carrier string
	// Hold is nil unless the order is on hold.
	Hold *OrderHold
	// Tags are words by which staff find the order, in ascending order. There are at most MaxTags.
	Tags []string
	// ExpiresAt is when the order is cancelled unless it was confirmed, paid or held until then. It is nil
	// if the order does not expire.
	ExpiresAt *time.Time
	// WaitingSince is when the order was confirmed. It is nil unless the order is confirmed, in a
	// table that lists such orders.
	WaitingSince *time.Time
	// PaymentTotals is nil until a payment is recorded.
	PaymentTotals *PaymentTotals
	// Fulfilled is nil unless the order has fulfillments that are not cancelled.
	Fulfilled    *FulfillmentTotals
	CustomFields CustomValues
	// Erased is true if the personal data of the order's customer is erased. Such an order gets no further
	// personal data.
	Erased bool
	// AccountRepID is the ID of the employee who was the customer's account rep when the order was
	// placed.
	AccountRepID EmployeeID
	PlacedAt     time.Time
	UpdatedAt    time.Time
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int
}

// LineItem is one line of an order: a product, its quantity and its unit price.
type LineItem struct {
	OrderID OrderID
	// CustomerID is the ID of the order's customer. It is empty if the stored record lacks this
	// attribute.
	CustomerID CustomerID
	SKU        SKU
	// Name is copied from the product when the line item is added to the order. UnitPrice is copied
	// each time units are added.
	Name string
	// Quantity does not include cancelled pieces. It is 0 only if all pieces are cancelled.
	Quantity, Cancelled int
	UnitPrice           Money
	CustomFields        CustomValues
}

// Subtotal returns the unit price times the quantity.
//
// Subtotal returns an error that wraps ErrMalformed if the result has more than 19 digits.
func (i LineItem) Subtotal() (Money, error) {
	subtotal, err := i.UnitPrice.Times(i.Quantity)
	if err != nil {
		return Money{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return subtotal, nil
}

// Validate returns an InvalidError if a required field of a stored address is missing, or if a field
// cannot be read.
func (a Address) Validate() error {
	if field := a.missingField(); field != "" {
		return NewInvalidError("has no %s", field)
	}
	if a.Malformed {
		return NewInvalidError("has a member that cannot be read")
	}
	return nil
}

// missingField returns the name of a required field that is empty, or "".
func (a Address) missingField() string {
	switch "" {
	case a.Recipient:
		return "recipient"
	case a.Line1:
		return "line1"
	case a.City:
		return "city"
	case a.CountryCode:
		return "countryCode"
	}
	return ""
}

// OrderContact is who the shop contacts about an order. Each field can be empty.
type OrderContact struct{ Email, Phone, Name string }

// Address is a shipping or billing address. Line2, Region and PostalCode may be empty.
type Address struct {
	Recipient, Line1, Line2, City, Region, PostalCode string
	// CountryCode is a two-letter code of ISO 3166-1.
	CountryCode string
	// Malformed is true if a field of the stored address cannot be read.
	Malformed bool `json:"-"`
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
	EventItemsCancelled         EventType = "items_cancelled"
	EventShippingAddressChanged EventType = "shipping_address_changed"
	EventAdjustmentsChanged     EventType = "adjustments_changed"
	EventBillingChanged         EventType = "billing_changed"
	EventCustomFieldsChanged    EventType = "custom_fields_changed"
	EventNoteAdded              EventType = "note_added"
	EventHeld                   EventType = "held"
	EventReleased               EventType = "released"
	EventTagsChanged            EventType = "tags_changed"
	EventPaymentRecorded        EventType = "payment_recorded"
	EventErased                 EventType = "erased"
	EventClaimed                EventType = "claimed"
	EventReturnRequested        EventType = "return_requested"
	EventReturnApproved         EventType = "return_approved"
	EventReturnRejected         EventType = "return_rejected"
	EventReturnReceived         EventType = "return_received"
	EventFulfillmentCreated     EventType = "fulfillment_created"
	EventTrackingUpdated        EventType = "tracking_updated"
	EventFulfillmentDelivered   EventType = "fulfillment_delivered"
	EventFulfillmentCancelled   EventType = "fulfillment_cancelled"
	EventImported               EventType = "imported"
)

// ParseEventType validates s and returns it as an event type.
//
// ParseEventType returns an InvalidError if s is not an event type.
func ParseEventType(s string) (EventType, error) {
	switch t := EventType(s); t {
	case EventPlaced, EventConfirmed, EventShipped, EventDelivered, EventCancelled, EventItemSet, EventItemRemoved, EventItemsCancelled,
		EventShippingAddressChanged, EventAdjustmentsChanged, EventBillingChanged, EventCustomFieldsChanged, EventNoteAdded, EventHeld, EventReleased, EventTagsChanged, EventPaymentRecorded,
		EventReturnRequested, EventReturnApproved, EventReturnRejected, EventReturnReceived, EventErased, EventClaimed,
		EventFulfillmentCreated, EventTrackingUpdated, EventFulfillmentDelivered, EventFulfillmentCancelled, EventImported:
		return t, nil
	}
	return "", NewInvalidError("is %q, which is not an event type", s)
}

// Event is an entry in the timeline of an order.
type Event struct {
	ID      EventID
	OrderID OrderID
	Type    EventType
	// From is the order's status before the event, and To is the status after the event. Both are zero
	// if the event does not change the status.
	From, To Status
	At       time.Time
	// Actor is the name of the principal that caused the event.
	Actor string
	// Note is a text that the actor wrote. It may be empty. If ChangesItems is true, the server wrote it.
	Note string
	// Version is the order's version after the event. It is 0 if an older version or other software
	// stored the event.
	Version int
	// NoteCustomerID is the ID of the customer who may read the note: the customer wrote it, or staff wrote
	// it for the customer. It is AnyGuest if it was written for a guest. It is empty if only staff may read the
	// note, or if an older version stored it.
	NoteCustomerID CustomerID `json:"-"`
	// WarehouseID is the ID of the warehouse that shipped the order or parcel. It is set only in events of
	// the types EventShipped and EventFulfillmentCreated.
	WarehouseID WarehouseID
}

// ChangesItems reports whether the event changes a line item.
func (e Event) ChangesItems() bool {
	return slices.Contains([]EventType{EventItemSet, EventItemRemoved, EventItemsCancelled}, e.Type)
}

// HasServerNote reports whether the server wrote the event's note, so it contains no personal data.
func (e Event) HasServerNote() bool {
	return e.ChangesItems() || slices.Contains([]EventType{EventPaymentRecorded, EventFulfillmentCreated, EventTrackingUpdated, EventFulfillmentDelivered, EventFulfillmentCancelled}, e.Type)
}

// IsByStaff reports whether customers cannot cause events of the type, so the actor is no customer.
func (t EventType) IsByStaff() bool {
	switch t {
	case EventConfirmed, EventShipped, EventDelivered, EventItemsCancelled, EventAdjustmentsChanged, EventHeld, EventReleased, EventTagsChanged, EventPaymentRecorded,
		EventFulfillmentCreated, EventTrackingUpdated, EventFulfillmentDelivered, EventFulfillmentCancelled, EventErased, EventClaimed, EventReturnApproved, EventReturnRejected, EventReturnReceived:
		return true
	default:
		return false
	}
}

// NoteVisibility is the group of callers who can read the note of an event.
type NoteVisibility string

// Visibilities of notes.
const (
	VisibilityStaff    NoteVisibility = "staff"
	VisibilityCustomer NoteVisibility = "customer"
)

// NoteVisibility returns who can read the event's note.
func (e Event) NoteVisibility() NoteVisibility {
	if e.ChangesItems() || e.NoteCustomerID != "" {
		return VisibilityCustomer
	}
	return VisibilityStaff
}

// OrderHold is the hold of an order. Until the order is released, it cannot be shipped, and its customer
// cannot cancel it.
type OrderHold struct {
	// Reason is a text for staff.
	Reason string
	Since  time.Time
}

// CanExpire reports whether the order is cancelled at the time ExpiresAt: it is pending, not on hold, and
// has neither an authorized nor a captured payment.
func (o Order) CanExpire() bool {
	return o.Status == Pending && o.Hold == nil && o.Authorized().Amount.IsZero() && o.Captured().Amount.IsZero()
}

// AvailableTransitions returns the statuses to which the order can change next. An order with fulfillments
// changes its status only with them.
func (o Order) AvailableTransitions() []Status {
	if o.Fulfilled != nil {
		return nil
	}
	return slices.DeleteFunc(o.Status.Transitions(), func(s Status) bool { return o.Hold != nil && s == Shipped })
}
