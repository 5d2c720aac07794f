package model

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// Codec reads and writes the records of a table.
type Codec struct {
	// Currency is the currency of records that name none.
	Currency commerce.Currency
	// Shards is the number of partition keys that each busy list is spread over.
	Shards int
}

// KeyBuilder returns a builder for keys of the table.
func (codec *Codec) KeyBuilder() *KeyBuilder { return &KeyBuilder{Shards: codec.Shards} }

// attributes visits the attributes of a record one by one. One function declares the attributes of
// each kind of record. It calls one method or function of this type for each attribute. purpose
// selects what the call does.
//
// Reader is the record to read.
type attributes struct {
	Reader
	purpose purpose
	// currency is the currency of the record's amounts. Until the record's currency has been read, it
	// is the currency of records that name none.
	currency commerce.Currency
	// encoded is the record to write.
	encoded Record
	// declared are the described attributes.
	declared []Attribute
}

type purpose uint8

const (
	// reading sets the value from the record.
	reading purpose = iota
	// writing sets the attribute from the value.
	writing
	// enlarging sets the value to the largest possible one.
	enlarging
	// describing lists the attributes.
	describing
)

// Attribute describes an attribute of a record.
type Attribute struct {
	Name string
	// Type is DynamoDB's type: S, N, BOOL, L or M.
	Type string
	// Most is the maximum number of bytes of a string or of elements of a list. It is 0 for other
	// types.
	Most int
	// Required reports whether a record without the attribute is corrupt. Optional reports whether the
	// attribute is absent if there is no value.
	Required, Optional bool
}

func (a *attributes) describe(name, dynamoType string, most int, p presence) {
	a.declared = append(a.declared, Attribute{name, dynamoType, most, p == required, p == optional})
}

// presence describes which records have an attribute.
type presence uint8

const (
	// A record without a required attribute is corrupt.
	required presence = iota
	// This program always writes a usual attribute. External records may lack it.
	usual
	// An optional attribute is absent if there is no value.
	optional
)

// Value is a type that mutations return.
type Value interface {
	*commerce.Customer | *commerce.Order | *commerce.Product | *commerce.InventoryLevel | *commerce.Warehouse | *commerce.Employee
}

// Records returns the record of a value and its edges. For an order, it returns the order's own
// record and the customer's copy.
func Records[V Value](b *KeyBuilder, v V) []Record {
	e, attributes := content(v)
	records := b.withEdges(e, attributes)
	if e == &EntityOrder {
		records = append(records, b.record(&EntityCustomerOrder, attributes))
	}
	return records
}

// Attributes returns the attributes that all records of a value have.
func Attributes[V Value](v V) Record {
	_, attributes := content(v)
	return attributes
}

// content returns the entity and the attributes of a value.
func content[V Value](v V) (*Entity, Record) {
	switch v := any(v).(type) {
	case *commerce.Customer:
		return &EntityCustomer, written(customerAttributes, *v)
	case *commerce.Order:
		return &EntityOrder, written(orderAttributes, orderParts{order: *v})
	case *commerce.Product:
		return &EntityProduct, written(productAttributes, *v)
	case *commerce.InventoryLevel:
		return &EntityInventoryLevel, written(inventoryLevelAttributes, *v)
	case *commerce.Warehouse:
		return &EntityWarehouse, written(warehouseAttributes, *v)
	case *commerce.Employee:
		return &EntityEmployee, written(employeeAttributes, *v)
	}
	return nil, nil
}

// written returns the attributes of a value.
func written[V any](declare func(*attributes, *V), v V) Record {
	a := attributes{purpose: writing, encoded: make(Record, 8)}
	declare(&a, &v)
	return a.encoded
}

// largest returns the value with the largest possible record.
func largest[V any](declare func(*attributes, *V)) (v V) {
	declare(&attributes{purpose: enlarging}, &v)
	return v
}

// described returns the attributes of a kind of record.
func described[V any](declare func(*attributes, *V)) []Attribute {
	var v V
	a := attributes{purpose: describing}
	declare(&a, &v)
	return a.declared
}

// AttributesOf returns the declared attributes of an entity's records. It returns nil for
// idempotency keys, and for entities with no attributes besides keys.
func AttributesOf(e *Entity) []Attribute {
	switch e.Root().Name {
	case EntityCustomer.Name:
		return described(customerAttributes)
	case EntityOrder.Name, EntityCustomerOrder.Name:
		return described(orderAttributes)
	case EntityOrderItem.Name:
		return described(orderItemAttributes)
	case EntityOrderEvent.Name, EntityLastEvent.Name:
		return described(eventAttributes)
	case EntityOrderCounts.Name:
		return described(orderCountsAttributes)
	case EntityRepOrders.Name:
		return described(repOrdersAttributes)
	case EntitySpending.Name:
		return described(spendingAttributes)
	case EntityProduct.Name:
		return described(productAttributes)
	case EntityCategory.Name:
		return described(categoryAttributes)
	case EntityInventoryLevel.Name:
		return described(inventoryLevelAttributes)
	case EntityWarehouse.Name:
		return described(warehouseAttributes)
	case EntityEmployee.Name:
		return described(employeeAttributes)
	}
	return nil
}

// LineAttributes returns the attributes of an item that its order embeds.
func LineAttributes() []Attribute { return described(lineAttributes) }

// AddressAttributes returns the attributes of an address.
func AddressAttributes() []Attribute { return described(addressAttributes) }

// text is a string that every record has.
func text[S ~string](a *attributes, name string, v *S, most int) {
	if a.purpose == reading {
		*v = S(a.MustText(name))
		return
	}
	putText(a, name, v, most, required)
}

// lenientText is a string that this program always writes. External records may lack it.
func lenientText[S ~string](a *attributes, name string, v *S, most int) {
	if a.purpose == reading {
		*v = S(a.Text(name))
		return
	}
	putText(a, name, v, most, usual)
}

// optionalText is a string that is absent if there is no value.
func optionalText[S ~string](a *attributes, name string, v *S, most int) {
	if a.purpose == reading {
		*v = S(a.Text(name))
		return
	}
	putText(a, name, v, most, optional)
}

// listedText is a string in the index key of e. Reading falls back to the index key: see
// Reader.textOrKey.
func listedText[S ~string](a *attributes, name string, v *S, most int, e *Entity, p presence) {
	if a.purpose == reading {
		*v = S(a.textOrKey(name, e))
		return
	}
	putText(a, name, v, most, p)
}

func putText[S ~string](a *attributes, name string, v *S, most int, p presence) {
	switch a.purpose {
	case writing:
		if *v != "" || p != optional {
			a.encoded[name] = Str(string(*v))
		}
	case enlarging:
		*v = S(strings.Repeat("x", most))
	case describing:
		a.describe(name, "S", most, p)
	}
}

// texts is a list of at most most strings, each of at most bytes bytes.
func (a *attributes) texts(name string, v *[]string, most, bytes int) {
	switch a.purpose {
	case reading:
		*v = a.Texts(name)
	case writing:
		a.encoded[name] = Texts(*v)
	case enlarging:
		for range most {
			*v = append(*v, strings.Repeat("x", bytes))
		}
	case describing:
		a.describe(name, "L", most, usual)
	}
}

// flag is a boolean. An absent attribute reads as false.
func (a *attributes) flag(name string, v *bool) {
	switch a.purpose {
	case reading:
		*v = a.Flag(name)
	case writing:
		a.encoded[name] = Bool(*v)
	case enlarging:
		*v = true
	case describing:
		a.describe(name, "BOOL", 0, usual)
	}
}

// number is a whole number. An absent attribute reads as 0.
func (a *attributes) number(name string, v *int) {
	if a.purpose == reading {
		*v = a.Number(name)
		return
	}
	a.putNumber(name, v, usual)
}

// mustNumber is a whole number that every record has.
func (a *attributes) mustNumber(name string, v *int) {
	if a.purpose == reading {
		*v = a.MustNumber(name)
		return
	}
	a.putNumber(name, v, required)
}

func (a *attributes) putNumber(name string, v *int, p presence) {
	switch a.purpose {
	case writing:
		a.encoded[name] = Num(*v)
	case enlarging:
		*v = math.MaxInt
	case describing:
		a.describe(name, "N", 0, p)
	}
}

// count is a counter that is nil if the orders or items have not been counted. Reading stores the
// number in place, or allocates it if place is nil.
func (a *attributes) count(name string, v **int, place *int) {
	switch a.purpose {
	case reading:
		if n, present := a.counted(name); present {
			if place == nil {
				place = new(int)
			}
			*place = n
			*v = place
		}
	case writing:
		if *v != nil {
			a.encoded[name] = Num(**v)
		}
	case enlarging:
		*v = new(int)
		**v = math.MaxInt
	case describing:
		a.describe(name, "N", 0, optional)
	}
}

// version is incremented by every change. External records may lack it.
func (a *attributes) version(v *int) { a.number(AttrVersion, v) }

// createdAt is the time at which the record was created.
func (a *attributes) createdAt(v *time.Time) {
	if a.purpose == reading {
		*v = a.MustTime("createdAt")
		return
	}
	a.putTime("createdAt", v, required)
}

// updatedAt is the time of the last change. It defaults to created, because external records may
// lack it.
func (a *attributes) updatedAt(v *time.Time, created time.Time) {
	if a.purpose == reading {
		*v = a.UpdatedOr(created)
		return
	}
	a.putTime("updatedAt", v, usual)
}

func (a *attributes) putTime(name string, v *time.Time, p presence) {
	switch a.purpose {
	case writing:
		a.encoded[name] = Str(Timestamp(*v))
	case describing:
		a.describe(name, "S", len(timestampLayout), p)
	}
}

// amount is an amount of money in the currency of the record. digits is the maximum number of
// digits.
func (a *attributes) amount(name string, v *commerce.Money, digits int) {
	switch a.purpose {
	case reading:
		*v = a.mustMoney(name, a.currency)
	case writing:
		a.encoded[name] = Amount(*v)
	case enlarging:
		*v, _ = commerce.ParseMoney(strings.Repeat("9", digits-2)+".99", "USD")
	case describing:
		a.describe(name, "N", 0, required)
	}
}

// currencyOf is the currency of all amounts of the record. v is one of these amounts.
func (a *attributes) currencyOf(v *commerce.Money) {
	switch a.purpose {
	case reading:
		a.currency = a.Currency(a.currency)
	case writing:
		a.encoded["currency"] = Str(string(v.Currency))
	case describing:
		a.describe("currency", "S", len("USD"), usual)
	}
}

// parsed is a string with its own format. longest is a value of maximum length.
func parsed[S ~string](a *attributes, name string, v *S, parse func(string) (S, error), longest S) {
	switch a.purpose {
	case reading:
		value, err := parse(a.MustText(name))
		if err != nil {
			a.Fail(name, err.Error())
		}
		*v = value
	case writing:
		a.encoded[name] = Str(string(*v))
	case enlarging:
		*v = longest
	case describing:
		a.describe(name, "S", len(longest), required)
	}
}

// status is a status of an order.
func (a *attributes) status(name string, v *commerce.Status, p presence) {
	switch a.purpose {
	case reading:
		if p == optional && !a.Has(name) {
			return
		}
		s, err := commerce.ParseStatus(a.MustText(name))
		if err != nil {
			a.Fail(name, err.Error())
		}
		*v = s
	case writing:
		if *v != 0 || p != optional {
			a.encoded[name] = Str(v.String())
		}
	case enlarging:
		*v = commerce.Cancelled
	case describing:
		a.describe(name, "S", len(commerce.Cancelled.String()), p)
	}
}

// address is a map that is absent if there is no address. Reading stores the address in place.
func (a *attributes) address(name string, v **commerce.Address, place *commerce.Address) {
	switch a.purpose {
	case reading:
		if inside, ok := a.within(name); ok {
			addressAttributes(&attributes{Reader: inside}, place)
			*v = place
		}
	case writing:
		if *v != nil {
			a.encoded[name] = &types.AttributeValueMemberM{Value: written(addressAttributes, **v)}
		}
	case enlarging:
		*v = new(largest(addressAttributes))
	case describing:
		a.describe(name, "M", 0, optional)
	}
}

func addressAttributes(a *attributes, v *commerce.Address) {
	lenientText(a, "recipient", &v.Recipient, commerce.MaxName)
	lenientText(a, "line1", &v.Line1, commerce.MaxName)
	lenientText(a, "line2", &v.Line2, commerce.MaxName)
	lenientText(a, "city", &v.City, commerce.MaxName)
	lenientText(a, "region", &v.Region, commerce.MaxName)
	lenientText(a, "postalCode", &v.PostalCode, commerce.MaxName)
	lenientText(a, "countryCode", &v.CountryCode, 2)
}

// lines is the list of embedded items, sorted by SKU. It is absent if the order embeds no items.
func (a *attributes) lines(o *commerce.Order) {
	const name = "items"
	switch a.purpose {
	case reading:
		a.readLines(o)
	case writing:
		if o.EmbedsItems {
			lines := make([]types.AttributeValue, len(o.Items))
			for i, item := range BySKU(o.Items) {
				lines[i] = &types.AttributeValueMemberM{Value: written(lineAttributes, item)}
			}
			a.encoded[name] = ListValue(lines...)
		}
	case enlarging:
		o.EmbedsItems = true
		for range commerce.MaxEmbeddedItems {
			o.Items = append(o.Items, largest(lineAttributes))
		}
		*o.ItemCount = len(o.Items)
	case describing:
		a.describe(name, "L", commerce.MaxEmbeddedItems, optional)
	}
}

func (a *attributes) readLines(o *commerce.Order) {
	const name = "items"
	list, ok := a.maps(name)
	if !ok {
		return
	}
	o.EmbedsItems = true
	o.Items = make([]commerce.LineItem, 0, list.length)
	for list.length > 0 {
		line, ok := list.next()
		if !ok {
			a.Fail(name, "contains an element that is not a map")
			break
		}
		o.Items = append(o.Items, commerce.LineItem{OrderID: o.ID, CustomerID: o.CustomerID})
		item := attributes{Reader: line, currency: a.currency}
		lineAttributes(&item, &o.Items[len(o.Items)-1])
		if err := item.Err(); err != nil {
			o.Items = o.Items[:len(o.Items)-1]
			a.Fail(name, fmt.Sprintf("contains a line item that cannot be read: %v", err))
			break
		}
	}
	o.Items = BySKU(o.Items)
	for i := 1; i < len(o.Items) && a.misread != nil; i++ {
		if sku := o.Items[i].SKU; sku == o.Items[i-1].SKU {
			a.doubt(name, fmt.Sprintf("contains product %s twice", sku))
		}
	}
}
