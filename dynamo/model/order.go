package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// OrderKeys returns the keys of an order's own record.
func OrderKeys(b *KeyBuilder, id commerce.OrderID) Keys {
	return Keys{PK: b.Key(EntityOrder.PK, string(id)), SK: b.Key(EntityOrder.SK)}
}

// CustomerOrderKey names an order by its customer and its id.
type CustomerOrderKey struct {
	Customer commerce.CustomerID
	Order    commerce.OrderID
}

// CustomerOrderKeys returns the keys of the customer's copy of an order.
func CustomerOrderKeys(b *KeyBuilder, k CustomerOrderKey) Keys {
	return Keys{PK: b.Key(EntityCustomerOrder.PK, string(k.Customer)), SK: b.Key(EntityCustomerOrder.SK, string(k.Order))}
}

// OrderItemKey names an item of an order by the order and the product.
type OrderItemKey struct {
	Order commerce.OrderID
	SKU   commerce.SKU
}

// OrderItemKeys returns the keys of an order item.
func OrderItemKeys(b *KeyBuilder, k OrderItemKey) Keys {
	return Keys{PK: b.Key(EntityOrderItem.PK, string(k.Order)), SK: b.Key(EntityOrderItem.SK, string(k.SKU))}
}

// OrderRecords are all records of an order: its own, the customer's copy, each item and each event.
// items are all of the order's, also where the order is too large to carry them.
func OrderRecords(b *KeyBuilder, o commerce.Order, items []commerce.LineItem, events []commerce.Event) []Record {
	n := len(items)
	o.Items, o.ItemCount, o.EmbedsItems = items, &n, n <= commerce.MaxEmbeddedItems
	own, theirs := OrderHeaders(b, o)
	records := []Record{own, theirs}
	for _, item := range items {
		records = append(records, LineRecord(b, o, item))
	}
	for _, event := range events {
		records = append(records, EventRecord(b, event))
	}
	return records
}

// OrderHeaders are the two records of an order: its own, and the customer's copy. They differ in
// nothing but their keys.
func OrderHeaders(b *KeyBuilder, o commerce.Order) (own, theirs Record) {
	id := string(o.ID)
	ownKeys := OrderKeys(b, o.ID)
	ownKeys.IndexPK = b.sharded(EntityOrder.IndexPK, id, o.Status.String())
	ownKeys.IndexSK = b.Key(EntityOrder.IndexSK, id)

	theirKeys := CustomerOrderKeys(b, CustomerOrderKey{Customer: o.CustomerID, Order: o.ID})
	if o.AccountRepID != "" {
		theirKeys.IndexPK = b.Key(EntityCustomerOrder.IndexPK, string(o.AccountRepID))
		theirKeys.IndexSK = b.Key(EntityCustomerOrder.IndexSK, id)
	}
	attributes := OrderAttributes(o)
	own = ownKeys.Attributes().With(attributes).With(Record{"entity": Str(EntityOrder.Name)})
	theirs = theirKeys.Attributes().With(attributes).With(Record{"entity": Str(EntityCustomerOrder.Name)})
	return own, theirs
}

// LineRecord is an item's own record.
func LineRecord(b *KeyBuilder, o commerce.Order, item commerce.LineItem) Record {
	k := OrderItemKeys(b, OrderItemKey{Order: o.ID, SKU: item.SKU})
	k.IndexPK = b.Key(EntityOrderItem.IndexPK, string(item.SKU))
	k.IndexSK = b.Key(EntityOrderItem.IndexSK, string(o.ID))
	return k.Attributes().With(lineAttributes(item)).With(Record{
		"entity": Str(EntityOrderItem.Name), "orderId": Str(string(o.ID)), "customerId": Str(string(o.CustomerID)),
		"currency": Str(string(item.UnitPrice.Currency)),
	})
}

// OrderAttributes are what both records of an order carry.
func OrderAttributes(o commerce.Order) Record {
	r := Record{
		"orderId": Str(string(o.ID)), "customerId": Str(string(o.CustomerID)), "status": Str(o.Status.String()),
		"total": Amount(o.Total), "currency": Str(string(o.Total.Currency)),
		"createdAt": Str(Timestamp(o.PlacedAt)), "updatedAt": Str(Timestamp(o.UpdatedAt)), AttrVersion: Num(o.Version),
	}
	if o.ItemCount != nil {
		r["itemCount"] = Num(*o.ItemCount)
	}
	if o.EmbedsItems {
		lines := make([]types.AttributeValue, len(o.Items))
		for i, item := range BySKU(o.Items) {
			lines[i] = &types.AttributeValueMemberM{Value: lineAttributes(item)}
		}
		r["items"] = ListValue(lines...)
	}
	if o.AccountRepID != "" {
		r["accountRepId"] = Str(string(o.AccountRepID))
	}
	if a := o.ShippingAddress; a != nil {
		r["shippingAddress"] = &types.AttributeValueMemberM{Value: Record{
			"recipient": Str(a.Recipient), "line1": Str(a.Line1), "line2": Str(a.Line2), "city": Str(a.City),
			"region": Str(a.Region), "postalCode": Str(a.PostalCode), "countryCode": Str(a.CountryCode),
		}}
	}
	return r
}

// BySKU returns the items in the order that their records have in the table.
func BySKU(items []commerce.LineItem) []commerce.LineItem {
	ordered := func(a, b commerce.LineItem) int { return cmp.Compare(a.SKU, b.SKU) }
	if slices.IsSortedFunc(items, ordered) {
		return items
	}
	return slices.SortedFunc(slices.Values(items), ordered)
}

func lineAttributes(i commerce.LineItem) Record {
	return Record{"productId": Str(string(i.SKU)), "name": Str(i.Name), "qty": Num(i.Quantity), "price": Amount(i.UnitPrice)}
}

// DecodeOrder reads either record of an order.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeOrder(r Reader) (*commerce.Order, error) {
	currency := r.Currency(codec.Currency)
	// An order, its count and its address come together, so they are made together.
	made := &struct {
		order   commerce.Order
		count   int
		address commerce.Address
	}{}
	o := &made.order
	o.ID = commerce.OrderID(r.MustText("orderId"))
	o.CustomerID = commerce.CustomerID(r.MustText("customerId"))
	o.Total = r.mustMoney("total", currency)
	if n, present := r.counted("itemCount"); present {
		made.count = n
		o.ItemCount = &made.count
	}
	o.AccountRepID = commerce.EmployeeID(r.textOrKey("accountRepId", &EntityCustomerOrder))
	o.Version = r.Number(AttrVersion)
	status, err := commerce.ParseStatus(r.MustText("status"))
	if err != nil {
		r.Fail("status", err.Error())
	}
	o.Status = status
	placed, ok := o.ID.Time()
	if !ok {
		placed = r.MustTime("createdAt")
	}
	o.PlacedAt = placed
	o.UpdatedAt = r.UpdatedOr(placed)
	if lines, ok := r.maps("items"); ok {
		o.EmbedsItems = true
		o.Items = make([]commerce.LineItem, 0, lines.length)
		for lines.length > 0 {
			line, ok := lines.next()
			if !ok {
				r.Fail("items", "holds something else than maps")
				break
			}
			o.Items = append(o.Items, commerce.LineItem{OrderID: o.ID, CustomerID: o.CustomerID})
			if err := decodeLineInto(&o.Items[len(o.Items)-1], line, currency); err != nil {
				o.Items = o.Items[:len(o.Items)-1]
				r.Fail("items", fmt.Sprintf("holds a line that cannot be read: %v", err))
				break
			}
		}
		o.Items = BySKU(o.Items)
		for i := 1; i < len(o.Items) && r.misread != nil; i++ {
			if sku := o.Items[i].SKU; sku == o.Items[i-1].SKU {
				r.doubt("items", fmt.Sprintf("has product %s twice", sku))
			}
		}
		if o.ItemCount == nil {
			made.count = len(o.Items)
			o.ItemCount = &made.count
		}
	}
	if a, ok := r.within("shippingAddress"); ok {
		o.ShippingAddress = &made.address
		made.address = commerce.Address{
			Recipient: a.Text("recipient"), Line1: a.Text("line1"), Line2: a.Text("line2"), City: a.Text("city"),
			Region: a.Text("region"), PostalCode: a.Text("postalCode"), CountryCode: a.Text("countryCode"),
		}
	}
	return o, r.Err()
}

// DecodeLine reads an item of an order's list. c is the currency of its price.
func DecodeLine(r Reader, c commerce.Currency) (item commerce.LineItem, err error) {
	err = decodeLineInto(&item, r, c)
	return item, err
}

// decodeLineInto reads an item, but whose it is.
func decodeLineInto(item *commerce.LineItem, r Reader, c commerce.Currency) error {
	item.SKU = commerce.SKU(r.MustText("productId"))
	item.Name = r.MustText("name")
	item.Quantity = r.MustNumber("qty")
	item.UnitPrice = r.mustMoney("price", c)
	return r.Err()
}

// DecodeOrderItem reads an item's own record.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeOrderItem(r Reader) (*commerce.LineItem, error) {
	item, err := DecodeLine(r, r.Currency(codec.Currency))
	if err != nil {
		return nil, err
	}
	item.CustomerID = commerce.CustomerID(r.Text("customerId"))
	if item.OrderID = commerce.OrderID(r.Text("orderId")); item.OrderID == "" {
		// The first tables kept the order's id in the key alone.
		if values, ok := EntityOrderItem.PK.Values(r.Text(AttrPK)); ok {
			item.OrderID = commerce.OrderID(values[0])
		}
	}
	return &item, nil
}

// EventRecord returns the record of an order event.
func EventRecord(b *KeyBuilder, e commerce.Event) Record {
	k := Keys{PK: b.Key(EntityOrderEvent.PK, string(e.OrderID)), SK: b.Key(EntityOrderEvent.SK, string(e.ID))}
	return k.Attributes().With(eventAttributes(e)).With(Record{"entity": Str(EntityOrderEvent.Name)})
}

// LastEventKeys names the record of a customer's last order event.
func LastEventKeys(b *KeyBuilder, id commerce.CustomerID) Keys {
	return Keys{PK: b.Key(EntityLastEvent.PK, string(id)), SK: b.Key(EntityLastEvent.SK)}
}

// LastEventRecord tells a customer's last order event: the event itself, and whose it is.
func LastEventRecord(b *KeyBuilder, id commerce.CustomerID, e commerce.Event) Record {
	return LastEventKeys(b, id).Attributes().With(eventAttributes(e)).With(Record{
		"entity": Str(EntityLastEvent.Name), "customerId": Str(string(id)),
	})
}

// eventAttributes are what both records of an event carry.
func eventAttributes(e commerce.Event) Record {
	r := Record{
		"eventId": Str(string(e.ID)), "orderId": Str(string(e.OrderID)),
		"type": Str(string(e.Type)), "createdAt": Str(Timestamp(e.At)), "actor": Str(e.Actor),
	}
	if e.From != 0 {
		r["from"] = Str(e.From.String())
	}
	if e.To != 0 {
		r["to"] = Str(e.To.String())
	}
	if e.Note != "" {
		r["note"] = Str(e.Note)
	}
	return r
}

// DecodeEvent reads either record of an order event.
//
// Errors: ErrCorrupt.
func DecodeEvent(r Reader) (*commerce.Event, error) {
	e := &commerce.Event{
		ID:      commerce.EventID(r.MustText("eventId")),
		OrderID: commerce.OrderID(r.MustText("orderId")),
		At:      r.MustTime("createdAt"),
		Actor:   r.Text("actor"),
		Note:    r.Text("note"),
	}
	kind, err := commerce.ParseEventType(r.MustText("type"))
	if err != nil {
		r.Fail("type", err.Error())
	}
	e.Type = kind
	e.From, e.To = r.statusIn("from"), r.statusIn("to")
	return e, r.Err()
}

// statusIn is a status that not every record has.
func (r *Reader) statusIn(name string) commerce.Status {
	if !r.Has(name) {
		return 0
	}
	status, err := commerce.ParseStatus(r.Text(name))
	if err != nil {
		r.Fail(name, err.Error())
	}
	return status
}

// LastEventID is the ID in the record of a last event.
func LastEventID(r Record) commerce.EventID { return commerce.EventID(TextOf(r, "eventId")) }

// IsOwnEvent reports whether an entry of a timeline was written by this program. Other software
// writes no entity, or an ID that is not a ULID.
func IsOwnEvent(r Record) bool {
	_, ok := EventIDOf(r).Time()
	return ok && TextOf(r, "entity") == EntityOrderEvent.Name
}

// ReadEvent reads an entry of a timeline.
//
// Errors: ErrCorrupt, also where its key tells another id than it does: a follower could not go on
// behind it.
func ReadEvent(r Record) (*commerce.Event, error) {
	event, err := DecodeEvent(Reader{Record: r})
	if err != nil {
		return nil, err
	}
	k := KeyOf(r)
	if k.SK != EntityOrderEvent.SK.Literal()+string(event.ID) || k.PK != EntityOrderEvent.PK.Literal()+string(event.OrderID) {
		return nil, fmt.Errorf("%w: record %s: it says that it is event %s of order %s", ErrCorrupt, r.KeyText(), event.ID, event.OrderID)
	}
	return event, nil
}

// EventIDOf is the id that an event's key tells.
func EventIDOf(r Record) commerce.EventID {
	return commerce.EventID(strings.TrimPrefix(KeyOf(r).SK, string(EventsSince.SK)))
}
