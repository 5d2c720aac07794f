package dynamo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

func orderKey(b *keyBuilder, id commerce.OrderID) keys {
	return keys{PK: b.key(entityOrder.PK, string(id)), SK: b.key(entityOrder.SK)}
}

// CustomerOrderKey names an order by its customer and its id.
type CustomerOrderKey struct {
	Customer commerce.CustomerID
	Order    commerce.OrderID
}

func customerOrderKey(b *keyBuilder, k CustomerOrderKey) keys {
	return keys{PK: b.key(entityCustomerOrder.PK, string(k.Customer)), SK: b.key(entityCustomerOrder.SK, string(k.Order))}
}

// OrderItemKey names an item of an order by the order and the product.
type OrderItemKey struct {
	Order commerce.OrderID
	SKU   commerce.SKU
}

func orderItemKey(b *keyBuilder, k OrderItemKey) keys {
	return keys{PK: b.key(entityOrderItem.PK, string(k.Order)), SK: b.key(entityOrderItem.SK, string(k.SKU))}
}

// orderRecords are all records of an order: its own, the customer's copy, each item and each event.
// items are all of the order's, also where the order is too large to carry them.
func orderRecords(b *keyBuilder, o commerce.Order, items []commerce.LineItem, events []commerce.Event) []record {
	n := len(items)
	o.Items, o.ItemCount, o.EmbedsItems = items, &n, n <= commerce.MaxEmbeddedItems
	own, theirs := orderHeaders(b, o)
	records := []record{own, theirs}
	for _, item := range items {
		records = append(records, lineRecord(b, o, item))
	}
	for _, event := range events {
		records = append(records, eventRecord(b, event))
	}
	return records
}

// orderHeaders are the two records of an order: its own, and the customer's copy. They differ in
// nothing but their keys.
func orderHeaders(b *keyBuilder, o commerce.Order) (own, theirs record) {
	id := string(o.ID)
	ownKeys := orderKey(b, o.ID)
	ownKeys.IndexPK = b.sharded(entityOrder.IndexPK, id, o.Status.String())
	ownKeys.IndexSK = b.key(entityOrder.IndexSK, id)

	theirKeys := customerOrderKey(b, CustomerOrderKey{Customer: o.CustomerID, Order: o.ID})
	if o.AccountRepID != "" {
		theirKeys.IndexPK = b.key(entityCustomerOrder.IndexPK, string(o.AccountRepID))
		theirKeys.IndexSK = b.key(entityCustomerOrder.IndexSK, id)
	}
	attributes := orderAttributes(o)
	own = ownKeys.attributes().with(attributes).with(record{"entity": str(entityOrder.Name)})
	theirs = theirKeys.attributes().with(attributes).with(record{"entity": str(entityCustomerOrder.Name)})
	return own, theirs
}

// lineRecord is an item's own record.
func lineRecord(b *keyBuilder, o commerce.Order, item commerce.LineItem) record {
	k := orderItemKey(b, OrderItemKey{Order: o.ID, SKU: item.SKU})
	k.IndexPK = b.key(entityOrderItem.IndexPK, string(item.SKU))
	k.IndexSK = b.key(entityOrderItem.IndexSK, string(o.ID))
	return k.attributes().with(lineAttributes(item)).with(record{
		"entity": str(entityOrderItem.Name), "orderId": str(string(o.ID)), "customerId": str(string(o.CustomerID)),
		"currency": str(string(item.UnitPrice.Currency)),
	})
}

// orderAttributes are what both records of an order carry.
func orderAttributes(o commerce.Order) record {
	r := record{
		"orderId": str(string(o.ID)), "customerId": str(string(o.CustomerID)), "status": str(o.Status.String()),
		"total": amount(o.Total), "currency": str(string(o.Total.Currency)),
		"createdAt": str(timestamp(o.PlacedAt)), "updatedAt": str(timestamp(o.UpdatedAt)), attrVersion: num(o.Version),
	}
	if o.ItemCount != nil {
		r["itemCount"] = num(*o.ItemCount)
	}
	if o.EmbedsItems {
		lines := make([]types.AttributeValue, len(o.Items))
		for i, item := range bySKU(o.Items) {
			lines[i] = &types.AttributeValueMemberM{Value: lineAttributes(item)}
		}
		r["items"] = list(lines...)
	}
	if o.AccountRepID != "" {
		r["accountRepId"] = str(string(o.AccountRepID))
	}
	if a := o.ShippingAddress; a != nil {
		r["shippingAddress"] = &types.AttributeValueMemberM{Value: record{
			"recipient": str(a.Recipient), "line1": str(a.Line1), "line2": str(a.Line2), "city": str(a.City),
			"region": str(a.Region), "postalCode": str(a.PostalCode), "countryCode": str(a.CountryCode),
		}}
	}
	return r
}

// bySKU returns the items in the order that their records have in the table.
func bySKU(items []commerce.LineItem) []commerce.LineItem {
	ordered := func(a, b commerce.LineItem) int { return cmp.Compare(a.SKU, b.SKU) }
	if slices.IsSortedFunc(items, ordered) {
		return items
	}
	return slices.SortedFunc(slices.Values(items), ordered)
}

func lineAttributes(i commerce.LineItem) record {
	return record{"productId": str(string(i.SKU)), "name": str(i.Name), "qty": num(i.Quantity), "price": amount(i.UnitPrice)}
}

// decodeOrder reads either record of an order.
//
// Errors: ErrCorrupt.
func (codec *Codec) decodeOrder(r reader) (*commerce.Order, error) {
	currency := r.currency(codec.Currency)
	// An order, its count and its address come together, so they are made together.
	made := &struct {
		order   commerce.Order
		count   int
		address commerce.Address
	}{}
	o := &made.order
	o.ID = commerce.OrderID(r.mustText("orderId"))
	o.CustomerID = commerce.CustomerID(r.mustText("customerId"))
	o.Total = r.mustMoney("total", currency)
	if n, present := r.counted("itemCount"); present {
		made.count = n
		o.ItemCount = &made.count
	}
	o.AccountRepID = commerce.EmployeeID(r.textOrKey("accountRepId", &entityCustomerOrder))
	o.Version = r.number(attrVersion)
	status, err := commerce.ParseStatus(r.mustText("status"))
	if err != nil {
		r.fail("status", err.Error())
	}
	o.Status = status
	placed, ok := o.ID.Time()
	if !ok {
		placed = r.mustTime("createdAt")
	}
	o.PlacedAt = placed
	o.UpdatedAt = r.updatedOr(placed)
	if lines, ok := r.maps("items"); ok {
		o.EmbedsItems = true
		o.Items = make([]commerce.LineItem, 0, lines.length)
		for lines.length > 0 {
			line, ok := lines.next()
			if !ok {
				r.fail("items", "holds something else than maps")
				break
			}
			o.Items = append(o.Items, commerce.LineItem{OrderID: o.ID, CustomerID: o.CustomerID})
			if err := decodeLineInto(&o.Items[len(o.Items)-1], line, currency); err != nil {
				o.Items = o.Items[:len(o.Items)-1]
				r.fail("items", fmt.Sprintf("holds a line that cannot be read: %v", err))
				break
			}
		}
		o.Items = bySKU(o.Items)
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
			Recipient: a.text("recipient"), Line1: a.text("line1"), Line2: a.text("line2"), City: a.text("city"),
			Region: a.text("region"), PostalCode: a.text("postalCode"), CountryCode: a.text("countryCode"),
		}
	}
	return o, r.err()
}

func decodeLine(r reader, c commerce.Currency) (item commerce.LineItem, err error) {
	err = decodeLineInto(&item, r, c)
	return item, err
}

// decodeLineInto reads an item, but whose it is.
func decodeLineInto(item *commerce.LineItem, r reader, c commerce.Currency) error {
	item.SKU = commerce.SKU(r.mustText("productId"))
	item.Name = r.mustText("name")
	item.Quantity = r.mustNumber("qty")
	item.UnitPrice = r.mustMoney("price", c)
	return r.err()
}

// decodeOrderItem reads an item's own record.
//
// Errors: ErrCorrupt.
func (codec *Codec) decodeOrderItem(r reader) (*commerce.LineItem, error) {
	item, err := decodeLine(r, r.currency(codec.Currency))
	if err != nil {
		return nil, err
	}
	item.CustomerID = commerce.CustomerID(r.text("customerId"))
	if item.OrderID = commerce.OrderID(r.text("orderId")); item.OrderID == "" {
		// The first tables kept the order's id in the key alone.
		if values, ok := entityOrderItem.PK.Values(r.text(attrPK)); ok {
			item.OrderID = commerce.OrderID(values[0])
		}
	}
	return &item, nil
}

func eventRecord(b *keyBuilder, e commerce.Event) record {
	k := keys{PK: b.key(entityOrderEvent.PK, string(e.OrderID)), SK: b.key(entityOrderEvent.SK, string(e.ID))}
	return k.attributes().with(eventAttributes(e)).with(record{"entity": str(entityOrderEvent.Name)})
}

// lastEventKey names the record of a customer's last order event.
func lastEventKey(b *keyBuilder, id commerce.CustomerID) keys {
	return keys{PK: b.key(entityLastEvent.PK, string(id)), SK: b.key(entityLastEvent.SK)}
}

// lastEventRecord tells a customer's last order event: the event itself, and whose it is.
func lastEventRecord(b *keyBuilder, id commerce.CustomerID, e commerce.Event) record {
	return lastEventKey(b, id).attributes().with(eventAttributes(e)).with(record{
		"entity": str(entityLastEvent.Name), "customerId": str(string(id)),
	})
}

// eventAttributes are what both records of an event carry.
func eventAttributes(e commerce.Event) record {
	r := record{
		"eventId": str(string(e.ID)), "orderId": str(string(e.OrderID)),
		"type": str(string(e.Type)), "createdAt": str(timestamp(e.At)), "actor": str(e.Actor),
	}
	if e.From != 0 {
		r["from"] = str(e.From.String())
	}
	if e.To != 0 {
		r["to"] = str(e.To.String())
	}
	if e.Note != "" {
		r["note"] = str(e.Note)
	}
	return r
}

// decodeEvent reads either record of an order event.
//
// Errors: ErrCorrupt.
func decodeEvent(r reader) (*commerce.Event, error) {
	e := &commerce.Event{
		ID:      commerce.EventID(r.mustText("eventId")),
		OrderID: commerce.OrderID(r.mustText("orderId")),
		At:      r.mustTime("createdAt"),
		Actor:   r.text("actor"),
		Note:    r.text("note"),
	}
	kind, err := commerce.ParseEventType(r.mustText("type"))
	if err != nil {
		r.fail("type", err.Error())
	}
	e.Type = kind
	e.From, e.To = r.statusIn("from"), r.statusIn("to")
	return e, r.err()
}

// statusIn is a status that not every record has.
func (r *reader) statusIn(name string) commerce.Status {
	if !r.has(name) {
		return 0
	}
	status, err := commerce.ParseStatus(r.text(name))
	if err != nil {
		r.fail(name, err.Error())
	}
	return status
}

// lastEventID is the ID in the record of a last event.
func lastEventID(r record) commerce.EventID { return commerce.EventID(textOf(r, "eventId")) }

// isOwnEvent reports whether an entry of a timeline was written by this program. Other software
// writes no entity, or an ID that is not a ULID.
func isOwnEvent(r record) bool {
	_, ok := eventIDOf(r).Time()
	return ok && textOf(r, "entity") == entityOrderEvent.Name
}

// readEvent reads an entry of a timeline.
//
// Errors: ErrCorrupt, also where its key tells another id than it does: a follower could not go on
// behind it.
func readEvent(r record) (*commerce.Event, error) {
	event, err := decodeEvent(reader{record: r})
	if err != nil {
		return nil, err
	}
	k := keyOf(r)
	if k.SK != entityOrderEvent.SK.literal()+string(event.ID) || k.PK != entityOrderEvent.PK.literal()+string(event.OrderID) {
		return nil, fmt.Errorf("%w: record %s: it says that it is event %s of order %s", ErrCorrupt, r.primaryKey(), event.ID, event.OrderID)
	}
	return event, nil
}

// eventIDOf is the id that an event's key tells.
func eventIDOf(r record) commerce.EventID {
	return commerce.EventID(strings.TrimPrefix(keyOf(r).SK, string(EventsSince.SK)))
}
