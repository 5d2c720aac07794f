package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// OrderGuests is the name of the feature that a table must have before guests place orders. Servers that do not
// know it would treat the guest as a deleted customer, and reject the event of a claim.
const OrderGuests = "order." + guestsFeature

const guestsFeature = "guests"

// attrTags contains the tags of an order.
const attrTags = "tags"

// AttrWaitingSince is the time when an order was confirmed, as long as the order waits to be
// shipped. Only a table with EntityOrderWaiting has it.
const AttrWaitingSince = "waitingSince"

// waitingSince returns the time in the keys of EntityOrderWaiting, or "" if the order does not
// wait. An order that was confirmed before the table had this edge waits since it was placed.
func waitingSince(attributes Record) string {
	status, since := attributes["status"], TextOf(attributes, AttrWaitingSince)
	if status == nil { // these are the attributes of the edge
		return since
	}
	if !EqualsText(status, commerce.Confirmed.String()) {
		return ""
	}
	if placed, ok := commerce.OrderID(TextOf(attributes, "orderId")).Time(); ok && since == "" {
		return Timestamp(placed)
	}
	return since
}

// CustomerOrderKey identifies the copy of an order in the customer's partition.
type CustomerOrderKey struct {
	Customer commerce.CustomerID
	Order    commerce.OrderID
}

// KeysOfCustomerOrder returns the primary key of the copy of an order in the customer's partition.
func KeysOfCustomerOrder(b *KeyBuilder, k CustomerOrderKey) Keys {
	return Keys{PK: b.Build(EntityCustomerOrder.PK, string(k.Customer)), SK: b.Build(EntityCustomerOrder.SK, string(k.Order))}
}

// OrderItemKey identifies a line item by its order and its product.
type OrderItemKey struct {
	Order commerce.OrderID
	SKU   commerce.SKU
}

// KeysOfOrderItem returns the primary key of a line item's record.
func KeysOfOrderItem(b *KeyBuilder, k OrderItemKey) Keys {
	return Keys{PK: b.Build(EntityOrderItem.PK, string(k.Order)), SK: b.Build(EntityOrderItem.SK, string(k.SKU))}
}

// OrderRecords returns the order's own record, the copy in the customer's partition, the line items
// and the events. The parameter items must contain all line items, because their number determines
// whether the order's record embeds them.
func OrderRecords(b *KeyBuilder, o commerce.Order, items []commerce.LineItem, events []commerce.Event) []Record {
	n := len(items)
	o.Items, o.ItemCount, o.EmbedsItems = items, &n, n <= commerce.MaxEmbeddedItems
	records := EncodeWithEdges(b, &o)
	for _, item := range items {
		records = append(records, OrderItemRecord(b, o, item))
	}
	for _, event := range events {
		records = append(records, EventRecord(b, event))
	}
	return records
}

// OrderItemRecord returns the record of a line item.
func OrderItemRecord(b *KeyBuilder, o commerce.Order, item commerce.LineItem) Record {
	item.OrderID, item.CustomerID = o.ID, o.CustomerID
	return b.record(&EntityOrderItem, encode(orderItemAttributes, item))
}

// orderWithOptionalFields contains an order and the values to which the order's pointer fields
// point. So one allocation is sufficient for the order and these values.
type orderWithOptionalFields struct {
	order   commerce.Order
	count   int
	address commerce.Address
}

func orderAttributes(a *attributeVisitor, parts *orderWithOptionalFields) {
	o := &parts.order
	idAttribute(a, "orderId", &o.ID, commerce.ULIDLength)
	textAttribute(a, AttrCustomerID, &o.CustomerID, commerce.MaxIDLength)
	a.currencyAttribute(&o.Total)
	a.amount("total", &o.Total, commerce.MaxAmountDigits)
	a.optionalCounter("itemCount", &o.ItemCount, &parts.count)
	indexedTextAttribute(a, "accountRepId", &o.AccountRepID, commerce.MaxIDLength, repKey, presenceOptional)
	a.version(&o.Version)
	a.status("status", &o.Status, presenceRequired)
	// Almost all order IDs are ULIDs. They contain the creation time, so createdAt is not needed.
	if placed, ok := o.ID.Time(); ok && a.mode == modeReading {
		o.PlacedAt = placed
		if text := a.Text("createdAt"); text != "" && a.onUnreadable != nil {
			a.time("createdAt", text)
		}
	} else {
		a.createdAt(&o.PlacedAt)
	}
	a.updatedAt(&o.UpdatedAt, o.PlacedAt)
	a.lineItems(o)
	a.address("shippingAddress", &o.ShippingAddress, &parts.address)
	a.address("billingAddress", &o.BillingAddress, nil)
	optionalTextAttribute(a, AttrTrackingNumber, &o.TrackingNumber, commerce.MaxName)
	optionalTextAttribute(a, "carrier", &o.Carrier, commerce.MaxName)
	optionalMapAttribute(a, "hold", &o.Hold, holdAttributes)
	optionalMapAttribute(a, "contact", &o.Contact, contactAttributes)
	personal(a, &o.Contact)
	a.optionalTime(AttrExpiry, &o.ExpiresAt)
	a.optionalTime(AttrWaitingSince, &o.WaitingSince)
	a.searchableTexts(attrTags, &o.Tags, commerce.MaxTags, commerce.MaxTag)
	listAttribute(a, AttrAdjustments, &o.Adjustments, commerce.MaxAdjustments, presenceOptional, adjustmentAttributes)
	a.paymentTotals(o)
	a.fulfillmentTotals(o)
	a.customFields("Order", &o.CustomFields)
	if a.optionalFlag(AttrErased, &o.Erased); a.mode == modeErasing {
		o.Erased = true
	}
	if o.EmbedsItems && o.ItemCount == nil && a.mode == modeReading {
		parts.count = len(o.Items)
		o.ItemCount = &parts.count
	}
}

// orderValueAttributes declares the attributes of an order without memory for optional fields.
func orderValueAttributes(a *attributeVisitor, o *commerce.Order) {
	parts := orderWithOptionalFields{order: *o}
	if orderAttributes(a, &parts); a.mode != modeWriting {
		*o = parts.order
	}
}

// SortBySKU returns the line items sorted by SKU, which is also the order of their sort keys.
func SortBySKU(items []commerce.LineItem) []commerce.LineItem {
	ordered := func(a, b commerce.LineItem) int { return cmp.Compare(a.SKU, b.SKU) }
	if slices.IsSortedFunc(items, ordered) {
		return items
	}
	return slices.SortedFunc(slices.Values(items), ordered)
}

func embeddedItemAttributes(a *attributeVisitor, i *commerce.LineItem) {
	textAttribute(a, "productId", &i.SKU, commerce.MaxIDLength)
	textAttribute(a, "name", &i.Name, commerce.MaxName)
	a.requiredNumber("qty", &i.Quantity)
	if a.optionalNumber("cancelled", &i.Cancelled); a.mode == modeMaximizing {
		i.Cancelled = commerce.MaxQuantity - 1 // it has more digits than other quantities
	}
	a.amount("price", &i.UnitPrice, commerce.MaxPriceDigits)
	a.customFields("OrderItem", &i.CustomFields)
	if _, err := i.Subtotal(); err != nil && a.mode == modeReading {
		a.Fail("qty", "times the price has too many digits")
	}
	if a.onInvalid == nil {
		return
	}
	if i.Quantity != 0 || i.Cancelled < 1 {
		_, err := commerce.ParseQuantity(i.Quantity)
		a.reportInvalid("qty", err)
	}
	if i.UnitPrice.Amount.IsNeg() {
		a.reportInvalid("price", i.UnitPrice.CheckPrice())
	}
}

func orderItemAttributes(a *attributeVisitor, i *commerce.LineItem) {
	a.currencyAttribute(&i.UnitPrice)
	embeddedItemAttributes(a, i)
	lenientTextAttribute(a, AttrCustomerID, &i.CustomerID, commerce.MaxIDLength)
	lenientTextAttribute(a, "orderId", &i.OrderID, commerce.ULIDLength)
	if i.OrderID == "" && a.mode == modeReading {
		// Early versions stored the order's ID only in the key.
		i.OrderID = commerce.OrderID(FirstPlaceholderValue(orderKey, a.Text(AttrPK)))
	}
}

// DecodeOrder decodes an order's own record or its copy in the customer's partition.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeOrder(r Reader) (*commerce.Order, error) {
	a, parts := attributeVisitor{Reader: r, currency: codec.Currency}, &orderWithOptionalFields{}
	orderAttributes(&a, parts)
	return &parts.order, a.Err()
}

// DecodeEmbeddedItem decodes a line item in an order's record. c is the currency of its price.
//
// Errors: ErrCorrupt.
func DecodeEmbeddedItem(r Reader, c commerce.Currency) (item commerce.LineItem, err error) {
	a := attributeVisitor{Reader: r, currency: c}
	embeddedItemAttributes(&a, &item)
	return item, a.Err()
}

// DecodeOrderItem decodes a line item's own record.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeOrderItem(r Reader) (*commerce.LineItem, error) {
	a, item := attributeVisitor{Reader: r, currency: codec.Currency}, &commerce.LineItem{}
	orderItemAttributes(&a, item)
	return item, a.Err()
}

// EventRecord returns the record of an order event.
func EventRecord(b *KeyBuilder, e commerce.Event) Record {
	return b.record(&EntityOrderEvent, encode(eventAttributes, e))
}

// LastEventRecord returns the record that stores a copy of the last event of a customer's orders.
func LastEventRecord(b *KeyBuilder, id commerce.CustomerID, e commerce.Event) Record {
	return b.record(&EntityLastEvent, encode(lastEventAttributes, lastEvent{e, id}))
}

// lastEvent is the value of the record that stores a copy of a customer's last event.
type lastEvent struct {
	commerce.Event
	customer commerce.CustomerID
}

func lastEventAttributes(a *attributeVisitor, e *lastEvent) {
	textAttribute(a, AttrCustomerID, &e.customer, commerce.MaxIDLength)
	eventAttributes(a, &e.Event)
}

// KeepReservation copies the attributes that count a customer's open orders from the stored record
// of the customer's last event to its new version (next), and returns next.
func KeepReservation(next, stored Record) Record {
	for _, name := range []string{AttrOpenOrders, AttrReservedUnits, AttrReservationsCounted} {
		if v := stored[name]; v != nil {
			next[name] = v
		}
	}
	return next
}

// eventAttributes declares the attributes of a timeline event, or of the copy of the last event.
func eventAttributes(a *attributeVisitor, e *commerce.Event) {
	textAttribute(a, "eventId", &e.ID, commerce.ULIDLength)
	textAttribute(a, "orderId", &e.OrderID, commerce.ULIDLength)
	parsedTextAttribute(a, "type", &e.Type, commerce.ParseEventType, commerce.EventShippingAddressChanged)
	a.createdAt(&e.At)
	lenientTextAttribute(a, "actor", &e.Actor, commerce.MaxName)
	if !e.Type.IsByStaff() {
		personal(a, &e.Actor)
	}
	a.status("from", &e.From, presenceOptional)
	a.status("to", &e.To, presenceOptional)
	optionalTextAttribute(a, "note", &e.Note, commerce.MaxNote)
	if !e.HasServerNote() {
		personal(a, &e.Note)
	}
	optionalTextAttribute(a, "noteCustomerId", &e.NoteCustomerID, commerce.MaxIDLength)
	optionalTextAttribute(a, "warehouseId", &e.WarehouseID, commerce.MaxIDLength)
	a.optionalNumber("orderVersion", &e.Version)
}

// StatusChanges is the name of the feature that a table must have before the status changes of all
// orders are listed. With the feature Changes, all events are listed, also those that change no
// status. Events that are older than the feature are not in the list.
const (
	StatusChanges     = "orderEvent." + attrStatusChanges
	attrStatusChanges = "statusChanges"
	Changes           = "orderEvent." + attrChanges
	attrChanges       = "changes"
)

// NoStatus replaces the status in the index keys of events that change no status.
const NoStatus = "none"

// ChangedStatuses returns the values of {to} in the index keys of events.
func ChangedStatuses() []string {
	all := []string{NoStatus}
	for _, status := range commerce.Statuses() {
		all = append(all, status.String())
	}
	return all
}

// EventList returns the name of the feature that lists all events, or only events that change the
// status. If two features list them, it returns the older one.
func (all DerivationStatuses) EventList(allEvents bool) string {
	changes, statusChanges := all.Of(Changes), all.Of(StatusChanges)
	if allEvents || changes.State == Readable && (statusChanges.State != Readable || changes.Since.Before(statusChanges.Since)) {
		return Changes
	}
	return StatusChanges
}

// DecodeEvent decodes an event in an order's timeline, or the copy of a customer's last event.
//
// Errors: ErrCorrupt.
func DecodeEvent(r Reader) (*commerce.Event, error) {
	a, e := attributeVisitor{Reader: r}, &commerce.Event{}
	eventAttributes(&a, e)
	return e, a.Err()
}

// LastEventID returns the event ID in r, the record with the copy of a customer's last event.
func LastEventID(r Record) commerce.EventID { return commerce.EventID(TextOf(r, "eventId")) }

// IsOrdergraphEvent reports whether Ordergraph wrote an event in an order's timeline. If other
// software wrote the event, the attribute "entity" is missing or the event's ID is not a ULID.
func IsOrdergraphEvent(r Record) bool {
	_, ok := EventIDFromKey(r).Time()
	return ok && TextOf(r, "entity") == EntityOrderEvent.Name
}

// DecodeTimelineEvent decodes an event in an order's timeline.
//
// Errors: ErrCorrupt. If the key does not match the attributes, this is also an error, because a
// subscription could not resume after such an event.
func DecodeTimelineEvent(r Record) (*commerce.Event, error) {
	event, err := DecodeEvent(Reader{Record: r})
	if err != nil {
		return nil, err
	}
	k := KeyOf(r)
	if k.SK != EntityOrderEvent.SK.Prefix()+string(event.ID) || k.PK != EntityOrderEvent.PK.Prefix()+string(event.OrderID) {
		return nil, fmt.Errorf("%w: record %s: the key does not match the attributes (event %s of order %s)", ErrCorrupt, r.KeyText(), event.ID, event.OrderID)
	}
	return event, nil
}

// EventIDFromKey returns the event ID in the sort key of a record.
func EventIDFromKey(r Record) commerce.EventID {
	return commerce.EventID(strings.TrimPrefix(KeyOf(r).SK, string(EventsInRange.SK)))
}
