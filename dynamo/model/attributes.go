package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// Codec encodes and decodes the records of a table.
type Codec struct {
	// Currency is the currency of records that have no currency attribute.
	Currency commerce.Currency
	// Layout contains the current layout of the table. If it is nil, the table has one shard.
	Layout *CurrentLayout
	// ElectroDB contains the names and versions of the entities in ElectroDB.
	ElectroDB ElectroDB
}

// KeyBuilder returns a builder for the keys of records.
func (codec *Codec) KeyBuilder() *KeyBuilder {
	l := codec.Layout.stored()
	return &KeyBuilder{Layout: l.Eras, Derivations: l.Derivations, ElectroDB: codec.ElectroDB}
}

// attributeVisitor reads, writes or describes a record's attributes, depending on mode. For each
// kind of record, a function such as customerAttributes passes the attributes to the visitor.
type attributeVisitor struct {
	// Reader contains the record to read.
	Reader
	mode visitMode
	// currency is the currency of the record's amounts: the default currency of the table, until
	// the visitor reads the attribute "currency".
	currency commerce.Currency
	// encoded contains the attributes that the visitor has written.
	encoded Record
	// descriptions are the descriptions of the attributes, in the order of their declaration.
	descriptions []Attribute
}

type visitMode uint8

const (
	modeReading visitMode = iota
	modeWriting
	// modeMaximizing sets a Go value to the value with the largest possible record.
	modeMaximizing
	modeDescribing
	// modeErasing removes the personal data from a Go value.
	modeErasing
)

// Attribute describes an attribute of a record.
type Attribute struct {
	Name string
	// Type is the type of the attribute in DynamoDB: S, N, BOOL, L or M.
	Type string
	// MaxLength is the maximum number of bytes in a string or elements in a list, and otherwise 0.
	MaxLength int
	// Required reports whether a record without the attribute is corrupt. Optional reports whether
	// Ordergraph omits the attribute if its value is empty.
	Required, Optional bool
	// Personal reports whether the attribute contains personal data of a customer, if the record belongs to
	// one.
	Personal bool
}

func (a *attributeVisitor) describe(name, dynamoType string, most int, p presence) {
	a.descriptions = append(a.descriptions, Attribute{name, dynamoType, most, p == presenceRequired, p == presenceOptional, false})
}

// personal is the part of a declaration that marks the attribute before it as personal data of a customer.
// eraseCustomer removes the value.
func personal[V any](a *attributeVisitor, v *V) {
	switch a.mode {
	case modeErasing:
		*v = *new(V)
	case modeDescribing:
		a.descriptions[len(a.descriptions)-1].Personal = true
	}
}

type presence uint8

const (
	// presenceRequired means that a record without the attribute is corrupt.
	presenceRequired presence = iota
	// presenceLenient means that only records written by other software may lack the attribute.
	presenceLenient
	// presenceOptional means that Ordergraph omits the attribute if its value is empty.
	presenceOptional
)

// recordCodec encodes and decodes the attributes of an entity's records as values of one Go type.
type recordCodec interface {
	// encodes reports whether v is a pointer to a value of this type.
	encodes(v any) bool
	// encode returns the attributes of a value. v is a pointer to it.
	encode(v any) Record
	// decode returns a pointer to the value of a record.
	decode(codec *Codec, r Reader) (any, error)
	// largest returns a pointer to the value with the largest record.
	largest() any
	describe() []Attribute
	// erase removes the personal data from a value. v is a pointer to it.
	erase(v any)
	// encodeErased is like encode, but omits personal data.
	encodeErased(v any) Record
}

// codecFor is a recordCodec for values of type V: a function that declares their attributes.
type codecFor[V any] func(*attributeVisitor, *V)

func (declare codecFor[V]) encodes(v any) bool {
	_, ok := v.(*V)
	return ok
}

func (declare codecFor[V]) encode(v any) Record {
	a := attributeVisitor{mode: modeWriting, encoded: make(Record, 8)}
	declare(&a, v.(*V))
	return a.encoded
}

func (declare codecFor[V]) decode(codec *Codec, r Reader) (any, error) {
	return declare.read(codec, r)
}

// read decodes a record. It allocates more memory than a function that calls declare directly, such as
// DecodeOrder.
//
// Errors: ErrCorrupt.
func (declare codecFor[V]) read(codec *Codec, r Reader) (*V, error) {
	a, v := attributeVisitor{Reader: r, currency: codec.Currency}, new(V)
	declare(&a, v)
	return v, a.Err()
}

func (declare codecFor[V]) largest() any { return new(largestValue(declare)) }

func (declare codecFor[V]) describe() []Attribute { return describeAttributes(declare) }

func (declare codecFor[V]) erase(v any) { declare(&attributeVisitor{mode: modeErasing}, v.(*V)) }

func (declare codecFor[V]) encodeErased(v any) Record {
	erased := *v.(*V)
	declare.erase(&erased)
	return declare.encode(&erased)
}

// Erase removes the personal data of the customer from the value to which v points. It also marks an order
// as erased.
func Erase(v any) { EntityOfValue(v).codec.erase(v) }

// EncodeWithEdges returns the record of a value, its copies and its claims. v points to a value that an entity's
// codec encodes, such as a commerce.Product.
func EncodeWithEdges(b *KeyBuilder, v any) []Record {
	e := EntityOfValue(v)
	return b.encodeWithCopies(e, e.codec.encode(v))
}

// EncodeAttributes returns the attributes of a value, without the keys. v points to the value.
func EncodeAttributes(v any) Record {
	return EntityOfValue(v).codec.encode(v)
}

// EntityOfValue returns the entity whose codec encodes the value to which v points.
func EntityOfValue(v any) *Entity {
	for _, e := range allEntities {
		if e.codec != nil && e.codec.encodes(v) {
			return e
		}
	}
	panic(fmt.Sprintf("no entity has a codec for %T", v))
}

func encode[V any](declare func(*attributeVisitor, *V), v V) Record {
	a := attributeVisitor{mode: modeWriting, encoded: make(Record, 8)}
	declare(&a, &v)
	return a.encoded
}

func largestValue[V any](declare func(*attributeVisitor, *V)) (v V) {
	declare(&attributeVisitor{mode: modeMaximizing}, &v)
	return v
}

func describeAttributes[V any](declare func(*attributeVisitor, *V)) []Attribute {
	var v V
	a := attributeVisitor{mode: modeDescribing, descriptions: make([]Attribute, 0, 16)}
	declare(&a, &v)
	return a.descriptions
}

// AttributesOf returns the attributes of an entity's records. It returns nil for idempotency
// records, because they have no codec.
func AttributesOf(e *Entity) []Attribute {
	if codec := e.valueCodec(); codec != nil {
		return codec.describe()
	}
	return nil
}

// EmbeddedItemAttributes returns the attributes of a line item embedded in the order's own record.
func EmbeddedItemAttributes() []Attribute { return describeAttributes(embeddedItemAttributes) }

// AddressAttributes returns the attributes of an address.
func AddressAttributes() []Attribute { return describeAttributes(addressAttributes) }

// HoldAttributes returns the attributes of an order's hold.
func HoldAttributes() []Attribute { return describeAttributes(holdAttributes) }

// ContactAttributes returns the attributes of an order's contact.
func ContactAttributes() []Attribute { return describeAttributes(contactAttributes) }

// AdjustmentAttributes returns the attributes of an order's adjustment.
func AdjustmentAttributes() []Attribute { return describeAttributes(adjustmentAttributes) }

// FulfillmentLineAttributes returns the attributes of a line of a fulfillment.
func FulfillmentLineAttributes() []Attribute { return describeAttributes(fulfillmentLineAttributes) }

// textAttribute declares a string attribute that every record has, with at most this many bytes.
func textAttribute[S ~string](a *attributeVisitor, name string, v *S, most int) {
	if a.mode == modeReading {
		*v = S(a.RequiredText(name))
		return
	}
	putText(a, name, v, most, presenceRequired)
}

// idAttribute declares an ID that every record has. If the ID is not valid in a key, no list or
// reference of the record can be read, so the record is malformed.
func idAttribute[S ~string](a *attributeVisitor, name string, v *S, most int) {
	textAttribute(a, name, v, most)
	if a.mode == modeReading && (*v == "" || strings.Contains(string(*v), "#")) {
		a.Fail(name, "is not an ID")
	}
}

// lenientTextAttribute declares a string attribute that only other software may omit.
func lenientTextAttribute[S ~string](a *attributeVisitor, name string, v *S, most int) {
	if a.mode == modeReading {
		*v = S(a.Text(name))
		return
	}
	putText(a, name, v, most, presenceLenient)
}

func optionalTextAttribute[S ~string](a *attributeVisitor, name string, v *S, most int) {
	if a.mode == modeReading {
		*v = S(a.Text(name))
		return
	}
	putText(a, name, v, most, presenceOptional)
}

// indexedTextAttribute declares a string attribute whose value is also in the index partition key,
// which has the template t. If a record lacks the attribute, the visitor reads this key (see
// Reader.textOrIndexKey).
func indexedTextAttribute[S ~string](a *attributeVisitor, name string, v *S, most int, t KeyTemplate, p presence) {
	if a.mode == modeReading {
		*v = S(a.textOrIndexKey(name, t, p))
		return
	}
	putText(a, name, v, most, p)
}

// normalizedAttribute is the part of a declaration that normalizes a text by which clients search.
// Keys are built from this form, even if other software or an older version stored another form.
func normalizedAttribute(a *attributeVisitor, v *string) {
	if a.mode == modeReading {
		*v = commerce.NormalizeName(*v)
	}
}

func putText[S ~string](a *attributeVisitor, name string, v *S, most int, p presence) {
	switch a.mode {
	case modeWriting:
		if *v != "" || p != presenceOptional {
			a.encoded[name] = Str(string(*v))
		}
	case modeMaximizing:
		*v = S(strings.Repeat("x", most))
	case modeDescribing:
		a.describe(name, "S", most, p)
	}
}

// texts declares a list of at most this many strings, each with at most this many bytes.
func (a *attributeVisitor) texts(name string, v *[]string, most, bytes int) {
	switch a.mode {
	case modeReading:
		*v = a.Texts(name)
	case modeWriting:
		a.encoded[name] = TextListValue(*v)
	case modeMaximizing:
		for range most {
			*v = append(*v, strings.Repeat("x", bytes))
		}
	case modeDescribing:
		a.describe(name, "L", most, presenceLenient)
	}
}

// searchableTexts declares a list of names by which clients search. It is sorted, contains no name
// twice, and is omitted if it is empty. Like texts that normalizedAttribute declares, each name is
// read in its normal form.
func (a *attributeVisitor) searchableTexts(name string, v *[]string, most, bytes int) {
	switch a.mode {
	case modeReading:
		for _, text := range a.Texts(name) {
			if text, err := commerce.ParseSearchText(commerce.NormalizeName(text), bytes); err == nil {
				*v = append(*v, text)
			} else {
				a.reportUnreadable(name, fmt.Sprintf("contains a text that %v", err))
			}
		}
		slices.Sort(*v)
		if *v = slices.Compact(*v); len(*v) > most {
			a.reportInvalid(name, commerce.NewInvalidError("has %d elements: use at most %d", len(*v), most))
		}
	case modeWriting:
		if len(*v) > 0 {
			a.encoded[name] = TextListValue(*v)
		}
	case modeMaximizing:
		for i := range most {
			*v = append(*v, fmt.Sprintf("%0*d", bytes, i))
		}
	case modeDescribing:
		a.describe(name, "L", most, presenceOptional)
	}
}

// flag declares a boolean. An absent attribute is read as false.
func (a *attributeVisitor) flag(name string, v *bool) {
	switch a.mode {
	case modeReading:
		*v = a.Flag(name)
	case modeWriting:
		a.encoded[name] = Bool(*v)
	case modeMaximizing:
		*v = true
	case modeDescribing:
		a.describe(name, "BOOL", 0, presenceLenient)
	}
}

// optionalFlag declares a boolean that is omitted if it is false.
func (a *attributeVisitor) optionalFlag(name string, v *bool) {
	switch a.mode {
	case modeDescribing:
		a.describe(name, "BOOL", 0, presenceOptional)
	case modeWriting:
		if *v {
			a.encoded[name] = Bool(true)
		}
	default:
		a.flag(name, v)
	}
}

// number declares a whole number. An absent attribute is read as 0.
func (a *attributeVisitor) number(name string, v *int) {
	if a.mode == modeReading {
		*v = a.Number(name)
		return
	}
	a.putNumber(name, v, presenceLenient)
}

func (a *attributeVisitor) requiredNumber(name string, v *int) {
	if a.mode == modeReading {
		*v = a.RequiredNumber(name)
		return
	}
	a.putNumber(name, v, presenceRequired)
}

// optionalNumber declares a number that is omitted if it is 0.
func (a *attributeVisitor) optionalNumber(name string, v *int) {
	if a.mode == modeReading {
		*v = a.Number(name)
	} else if *v != 0 || a.mode != modeWriting {
		a.putNumber(name, v, presenceOptional)
	}
}

func (a *attributeVisitor) putNumber(name string, v *int, p presence) {
	switch a.mode {
	case modeWriting:
		a.encoded[name] = Num(*v)
	case modeMaximizing:
		*v = math.MaxInt
	case modeDescribing:
		a.describe(name, "N", 0, p)
	}
}

// optionalCounter declares a count. If the record does not have it yet, *v is nil. When reading,
// the visitor sets *v to place, or to a new int if place is nil.
func (a *attributeVisitor) optionalCounter(name string, v **int, place *int) {
	switch a.mode {
	case modeReading:
		if n, present := a.wholeNumber(name); present {
			if place == nil {
				place = new(int)
			}
			*place = n
			*v = place
		}
	case modeWriting:
		if *v != nil {
			a.encoded[name] = Num(**v)
		}
	case modeMaximizing:
		*v = new(int)
		**v = math.MaxInt
	case modeDescribing:
		a.describe(name, "N", 0, presenceOptional)
	}
}

// version declares the attribute "version" (see AttrVersion), which other software may omit.
func (a *attributeVisitor) version(v *int) { a.number(AttrVersion, v) }

func (a *attributeVisitor) createdAt(v *time.Time) { a.requiredTime("createdAt", v) }

func (a *attributeVisitor) requiredTime(name string, v *time.Time) {
	if a.mode == modeReading {
		*v = a.RequiredTime(name)
		return
	}
	a.putTime(name, v, presenceRequired)
}

// updatedAt declares the time of the last change. If other software omitted it, created is read.
func (a *attributeVisitor) updatedAt(v *time.Time, created time.Time) {
	if a.mode == modeReading {
		*v = a.UpdatedAtOr(created)
		return
	}
	a.putTime("updatedAt", v, presenceLenient)
}

func (a *attributeVisitor) putTime(name string, v *time.Time, p presence) {
	switch a.mode {
	case modeWriting:
		a.encoded[name] = Str(Timestamp(*v))
	case modeDescribing:
		a.describe(name, "S", len(timestampLayout), p)
	}
}

// optionalTime declares a time that is omitted if it is nil.
func (a *attributeVisitor) optionalTime(name string, v **time.Time) {
	switch a.mode {
	case modeReading:
		if a.Has(name) {
			*v = new(a.RequiredTime(name))
		}
	case modeWriting:
		if *v != nil {
			a.putTime(name, *v, presenceOptional)
		}
	case modeMaximizing:
		*v = new(time.Time)
	case modeDescribing:
		a.putTime(name, nil, presenceOptional)
	}
}

// amount declares an amount of money in the record's currency, with at most this many digits.
func (a *attributeVisitor) amount(name string, v *commerce.Money, digits int) {
	switch a.mode {
	case modeReading:
		*v = a.requiredMoney(name, a.currency)
	case modeWriting:
		a.encoded[name] = AmountValue(*v)
	case modeMaximizing:
		*v, _ = commerce.ParseMoney(strings.Repeat("9", digits-2)+".99", "USD")
	case modeDescribing:
		a.describe(name, "N", 0, presenceRequired)
	}
}

// currencyAttribute declares the currency of all amounts in the record. v is one of these amounts.
func (a *attributeVisitor) currencyAttribute(v *commerce.Money) {
	switch a.mode {
	case modeReading:
		a.currency = a.Currency(a.currency)
	case modeWriting:
		a.encoded["currency"] = Str(string(v.Currency))
	case modeDescribing:
		a.describe("currency", "S", len("USD"), presenceLenient)
	}
}

// parsedTextAttribute declares a string attribute that parse checks. longest is its longest value.
func parsedTextAttribute[S ~string](a *attributeVisitor, name string, v *S, parse func(string) (S, error), longest S) {
	switch a.mode {
	case modeReading:
		value, err := parse(a.RequiredText(name))
		if err != nil {
			a.Fail(name, err.Error())
		}
		*v = value
	case modeWriting:
		a.encoded[name] = Str(string(*v))
	case modeMaximizing:
		*v = longest
	case modeDescribing:
		a.describe(name, "S", len(longest), presenceRequired)
	}
}

func (a *attributeVisitor) status(name string, v *commerce.Status, p presence) {
	switch a.mode {
	case modeReading:
		if p == presenceOptional && !a.Has(name) {
			return
		}
		s, err := commerce.ParseStatus(a.RequiredText(name))
		if err != nil {
			a.Fail(name, err.Error())
		}
		*v = s
	case modeWriting:
		if *v != 0 || p != presenceOptional {
			a.encoded[name] = Str(v.String())
		}
	case modeMaximizing:
		*v = commerce.Cancelled
	case modeDescribing:
		a.describe(name, "S", len(commerce.Cancelled.String()), p)
	}
}

// address declares a map attribute that is omitted if the order has no such address. In modeReading, the
// visitor sets *v to place and stores the address there, without an allocation. If place is nil, it
// allocates the address.
func (a *attributeVisitor) address(name string, v **commerce.Address, place *commerce.Address) {
	switch a.mode {
	case modeReading:
		if inside, ok := a.mapAttribute(name); ok {
			if place == nil {
				place = new(commerce.Address)
			}
			members := attributeVisitor{Reader: inside}
			addressAttributes(&members, place)
			place.Malformed = members.misread
			*v = place
			if a.onInvalid != nil {
				a.reportInvalid(name, place.Validate())
			}
		}
	case modeWriting:
		if *v != nil {
			a.encoded[name] = &types.AttributeValueMemberM{Value: encode(addressAttributes, **v)}
		}
	case modeMaximizing:
		*v = new(largestValue(addressAttributes))
	case modeDescribing:
		a.describe(name, "M", 0, presenceOptional)
	}
	personal(a, v)
}

func addressAttributes(a *attributeVisitor, v *commerce.Address) {
	lenientTextAttribute(a, "recipient", &v.Recipient, commerce.MaxName)
	lenientTextAttribute(a, "line1", &v.Line1, commerce.MaxName)
	lenientTextAttribute(a, "line2", &v.Line2, commerce.MaxName)
	lenientTextAttribute(a, "city", &v.City, commerce.MaxName)
	lenientTextAttribute(a, "region", &v.Region, commerce.MaxName)
	lenientTextAttribute(a, "postalCode", &v.PostalCode, commerce.MaxName)
	lenientTextAttribute(a, "countryCode", &v.CountryCode, 2)
}

// optionalMapAttribute declares a map attribute that is omitted if *v is nil. The function declare declares
// its members.
func optionalMapAttribute[V any](a *attributeVisitor, name string, v **V, declare func(*attributeVisitor, *V)) {
	switch a.mode {
	case modeReading:
		if inside, ok := a.mapAttribute(name); ok {
			members := attributeVisitor{Reader: inside}
			*v = new(V)
			declare(&members, *v)
			if err := members.Err(); err != nil {
				a.Fail(name, fmt.Sprintf("cannot be read: %v", err))
			}
		}
	case modeWriting:
		if *v != nil {
			a.encoded[name] = &types.AttributeValueMemberM{Value: encode(declare, **v)}
		}
	case modeMaximizing:
		*v = new(largestValue(declare))
	case modeDescribing:
		a.describe(name, "M", 0, presenceOptional)
		hasPersonal := slices.ContainsFunc(describeAttributes(declare), func(member Attribute) bool { return member.Personal })
		a.descriptions[len(a.descriptions)-1].Personal = hasPersonal
	case modeErasing:
		if *v != nil {
			erased := **v
			declare(a, &erased)
			*v = &erased
		}
	}
}

func holdAttributes(a *attributeVisitor, v *commerce.OrderHold) {
	lenientTextAttribute(a, "reason", &v.Reason, commerce.MaxName)
	personal(a, &v.Reason)
	a.createdAt(&v.Since)
}

func contactAttributes(a *attributeVisitor, v *commerce.OrderContact) {
	lenientTextAttribute(a, "email", &v.Email, commerce.MaxEmail)
	lenientTextAttribute(a, "phone", &v.Phone, commerce.MaxPhoneNumberLength)
	lenientTextAttribute(a, "name", &v.Name, commerce.MaxName)
}

// AttrAdjustments contains the adjustments of an order. Servers that do not know this attribute would write
// totals without them, and reject the types of events that came with it.
const AttrAdjustments = "adjustments"

// OrderAdjustments is the name of the feature that a table must have before orders get adjustments.
const OrderAdjustments = "order." + AttrAdjustments

// listAttribute declares a list of at most this many maps. The function declare declares their members. If the
// list is optional, it is omitted if it is empty.
func listAttribute[V any](a *attributeVisitor, name string, v *[]V, most int, p presence, declare func(*attributeVisitor, *V)) {
	switch a.mode {
	case modeReading:
		list, isList := a.mapListAttribute(name)
		if !isList && (a.Has(name) || p == presenceRequired) {
			a.Fail(name, "is not a list")
		}
		for list.length > 0 {
			inside, ok := list.next()
			member := attributeVisitor{Reader: inside, currency: a.currency}
			if ok {
				*v = append(*v, *new(V))
				declare(&member, &(*v)[len(*v)-1])
			}
			if err := member.Err(); !ok || err != nil {
				a.Fail(name, fmt.Sprintf("contains an element that cannot be read: %v", err))
				return
			}
		}
	case modeWriting:
		if len(*v) > 0 || p != presenceOptional {
			maps := make([]types.AttributeValue, len(*v))
			for i, member := range *v {
				maps[i] = &types.AttributeValueMemberM{Value: encode(declare, member)}
			}
			a.encoded[name] = ListValue(maps...)
		}
	case modeMaximizing:
		*v = slices.Repeat([]V{largestValue(declare)}, most)
	case modeDescribing:
		a.describe(name, "L", most, p)
		hasPersonal := slices.ContainsFunc(describeAttributes(declare), func(member Attribute) bool { return member.Personal })
		a.descriptions[len(a.descriptions)-1].Personal = hasPersonal
	case modeErasing:
		*v = slices.Clone(*v)
		for i := range *v {
			declare(a, &(*v)[i])
		}
	}
}

func adjustmentAttributes(a *attributeVisitor, v *commerce.OrderAdjustment) {
	parsedTextAttribute(a, "kind", &v.Kind, commerce.ParseAdjustmentKind, commerce.AdjustmentShipping)
	lenientTextAttribute(a, "label", &v.Label, commerce.MaxAdjustmentLabel)
	a.amount("amount", &v.Amount, commerce.MaxPriceDigits)
	optionalTextAttribute(a, "line", &v.Line, commerce.MaxIDLength)
	a.flag("included", &v.Included)
}

// AttrErased marks an order whose personal data is erased. Servers that do not know it would store further
// personal data.
const AttrErased = "erased"

// OrderErased is the name of the feature that a table must have before customers are erased.
const OrderErased = "order." + AttrErased

// lineItems declares the list of line items that the order's record embeds, sorted by SKU. If the
// order has too many line items to embed, the attribute is omitted.
func (a *attributeVisitor) lineItems(o *commerce.Order) {
	const name = "items"
	switch a.mode {
	case modeReading:
		a.readLineItems(o)
	case modeWriting:
		if o.EmbedsItems {
			lines := make([]types.AttributeValue, len(o.Items))
			for i, item := range SortBySKU(o.Items) {
				line := encode(embeddedItemAttributes, item)
				keepUnknownMembers(line, item.CustomFields)
				lines[i] = &types.AttributeValueMemberM{Value: line}
			}
			a.encoded[name] = ListValue(lines...)
		}
	case modeMaximizing:
		o.EmbedsItems = true
		for range commerce.MaxEmbeddedItems {
			o.Items = append(o.Items, largestValue(embeddedItemAttributes))
		}
		*o.ItemCount = len(o.Items)
	case modeDescribing:
		a.describe(name, "L", commerce.MaxEmbeddedItems, presenceOptional)
	case modeErasing:
		o.Items = slices.Clone(o.Items)
		for i := range o.Items {
			embeddedItemAttributes(a, &o.Items[i])
		}
	}
}

func (a *attributeVisitor) readLineItems(o *commerce.Order) {
	const name = "items"
	list, ok := a.mapListAttribute(name)
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
		item := attributeVisitor{Reader: line, currency: a.currency}
		if a.onInvalid != nil {
			item.onInvalid = func(member, problem string) {
				a.onInvalid(name, fmt.Sprintf("contains a line item whose attribute %q %s", member, problem))
			}
		}
		embeddedItemAttributes(&item, &o.Items[len(o.Items)-1])
		if line.Record != nil {
			o.Items[len(o.Items)-1].CustomFields = commerce.StoredCustomValues(embeddedLine(line.Record), commerce.RecordPosition{})
		}
		if err := item.Err(); err != nil {
			o.Items = o.Items[:len(o.Items)-1]
			a.Fail(name, fmt.Sprintf("contains a line item that cannot be read: %v", err))
			break
		}
	}
	o.Items = SortBySKU(o.Items)
	for i := 1; i < len(o.Items) && a.onUnreadable != nil; i++ {
		if sku := o.Items[i].SKU; sku == o.Items[i-1].SKU {
			a.reportUnreadable(name, fmt.Sprintf("contains product %s twice", sku))
		}
	}
}
