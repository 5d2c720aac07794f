package model

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/commerce"
)

// ErrCorrupt means that a required attribute is missing or that an attribute cannot be decoded.
var ErrCorrupt = commerce.ErrMalformed

// The names of attributes that DynamoDB expressions use.
const (
	// AttrVersion is a number in a record. Every change to the record increments this number, except
	// changes to counters.
	AttrVersion = "version"
	// Counts and totals. AttrComplete and AttrPart describe a record that contains counts.
	AttrOrderCount = "orderCount"
	AttrComplete   = "complete"
	AttrPart       = "part"
	AttrShard      = "shard"
	AttrSpent      = "spent"
	AttrOrders     = "orders"
	// AttrOpenOrders and AttrReservedUnits are in the record of a customer's last event. They count
	// the customer's pending and confirmed orders, and the units in them. If the boolean
	// AttrReservationsCounted is true, they include all orders. Otherwise, they can be too low.
	AttrOpenOrders          = "openOrders"
	AttrReservedUnits       = "reservedUnits"
	AttrReservationsCounted = "reservationsCounted"
	// AttrSpendingComplete is a boolean in a customer's record. It reports whether the customer's
	// spending records include all orders.
	AttrSpendingComplete = "spendingComplete"
	AttrTotalInventory   = "totalInventory"
	AttrAvailable        = "available"
	AttrQuantity         = "quantity"
	AttrProductCount     = "productCount"
	// AttrAuthorized, AttrCaptured and AttrRefunded are in an order's record after a payment was recorded.
	// AttrPaymentDue is there, too, if a payment is outstanding (commerce.Order.PaymentDue).
	AttrAuthorized = "authorized"
	AttrCaptured   = "captured"
	AttrRefunded   = "refunded"
	AttrPaymentDue = "paymentDue"
	// AttrExpiry is in an order that is cancelled at this time unless it is paid. Its name differs from
	// AttrExpiresAt, so that DynamoDB never deletes an order.
	AttrExpiry = "expiry"
	// AttrStockRevision is a number in a product's record. Every change to the product's stock
	// increments this number. A record without this attribute has the stock revision 0.
	AttrStockRevision = "stock" + revisionSuffix
	// AttrStockBuckets is the number of records that store a product's stock. If a product's record
	// lacks it, the number is 1. AttrProductVersion is the product's version in the other records.
	AttrStockBuckets   = "stockBuckets"
	AttrProductVersion = "productVersion"
	// AttrCategory is the category in a product's record, and the name in a category's record.
	AttrCategory = "category"
	// AttrCustomerID and AttrEmployeeID contain the ID of the customer or employee to whom a record
	// belongs.
	AttrCustomerID = "customerId"
	AttrEmployeeID = "employeeId"
)

const revisionSuffix = "Revision"

// IsRevision reports whether the named attribute is a number that increases with each change of
// other attributes. These are AttrVersion and all attributes with names that end in "Revision".
func IsRevision(name string) bool {
	return name == AttrVersion || strings.HasSuffix(name, revisionSuffix)
}

// Record is a record in the types of the AWS SDK. It maps the names of attributes to their values.
type Record map[string]types.AttributeValue

// Merge adds the attributes of more to r, and returns r.
func (r Record) Merge(more Record) Record {
	maps.Copy(r, more)
	return r
}

// Str returns a string attribute.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns a number attribute.
func Num(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

// Bool returns a boolean attribute.
func Bool(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// AmountValue returns an amount of money as a number attribute.
func AmountValue(m commerce.Money) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: m.Decimal()}
}

// NumberText returns a number attribute. text is the number in DynamoDB's format.
func NumberText(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }

// ListValue returns a list attribute.
func ListValue(values ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: values}
}

// TextListValue returns a list attribute of strings.
func TextListValue(values []string) types.AttributeValue {
	l := make([]types.AttributeValue, len(values))
	for i, v := range values {
		l[i] = Str(v)
	}
	return ListValue(l...)
}

// timestampLayout is the layout of times in the table. All times are in UTC and have the same
// number of digits, so their texts sort in order of time.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp formats a time for the table.
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// Reader reads the attributes of a record. If an attribute is absent or has an unexpected type,
// most methods return the zero value. Some, such as RequiredText, also store the problem, and Err
// returns the first stored problem.
type Reader struct {
	// The record is either Record, in the types of the AWS SDK, or Item, in a parsed response.
	Record Record
	// Strings from Item keep the whole response in memory. For values that outlive the client's
	// request, use Attributes.
	Item    Item
	Problem string
	// misread is true if an optional attribute is present but cannot be decoded.
	misread bool
	// onInvalid is called for each attribute that can be decoded, but that Ordergraph would not write.
	onInvalid func(attribute, problem string)
	// onUnreadable is called for each attribute that is present but cannot be decoded. Do not set it
	// if the record is in Item, because some methods would not call it.
	onUnreadable func(attribute, problem string)
}

// Absent reports whether the Reader contains no record.
func (r *Reader) Absent() bool { return r.Record == nil && r.Item.Doc == nil }

// Attributes returns the record in the types of the AWS SDK. The result does not keep the parsed
// response in memory. If there is no record, the result is nil.
func (r *Reader) Attributes() Record {
	if r.Item.Doc == nil {
		return r.Record
	}
	return r.Item.toRecord()
}

// Size returns the record's size in bytes.
func (r *Reader) Size() int {
	if r.Item.Doc == nil {
		return SizeOf(r.Record)
	}
	return r.Item.size()
}

// Fail stores a problem with the named attribute. Err returns only the first stored problem.
func (r *Reader) Fail(name, problem string) {
	if r.Problem == "" {
		r.Problem = fmt.Sprintf("attribute %q %s", name, problem)
	}
	if r.onUnreadable != nil && r.Has(name) {
		r.onUnreadable(name, problem)
	}
}

// reportUnreadable reports that an optional attribute is present but cannot be decoded. The caller
// then treats the attribute as absent.
func (r *Reader) reportUnreadable(name, problem string) {
	r.misread = true
	if r.onUnreadable != nil {
		r.onUnreadable(name, problem)
	}
}

// Err returns an error that describes the first stored problem. Without a problem, it returns nil.
//
// Errors: ErrCorrupt.
func (r *Reader) Err() error {
	if r.Problem == "" {
		return nil
	}
	return fmt.Errorf("%w: record %s: %s", ErrCorrupt, r.KeyText(), r.Problem)
}

// reportInvalid reports that Ordergraph would not write the value of an attribute.
func (r *Reader) reportInvalid(name string, err error) {
	if invalid, ok := errors.AsType[*commerce.InvalidError](err); ok && r.onInvalid != nil && r.Has(name) {
		r.onInvalid(name, invalid.Reason)
	}
}

// KeyOf returns the primary key of a record.
func KeyOf(r Record) Keys {
	at := Reader{Record: r}
	return at.Key()
}

// Key returns the primary key of the record.
func (r *Reader) Key() Keys { return Keys{PK: r.Text(AttrPK), SK: r.Text(AttrSK)} }

// KeyText returns the record's primary key for messages.
func (r Record) KeyText() string {
	at := Reader{Record: r}
	return at.KeyText()
}

// KeyText returns the record's primary key for messages.
func (r *Reader) KeyText() string { return r.Text(AttrPK) + " " + r.Text(AttrSK) }

// scalar returns the text and the kind of a string or number attribute. If the attribute is absent
// or has another type, the kind is kindNone. present reports whether the attribute exists.
func (r *Reader) scalar(name string) (text string, kind Kind, present bool) {
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if !ok {
			return "", kindNone, false
		}
		if n := &r.Item.Doc.Nodes[at]; n.Kind == KindS || n.Kind == KindN {
			return r.Item.Doc.Span(n.Text, n.TextEnd), n.Kind, true
		}
		return "", kindNone, true
	}
	v, present := r.Record[name]
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, KindS, true
	case *types.AttributeValueMemberN:
		return v.Value, KindN, true
	}
	return "", kindNone, present
}

// Text returns the value of a string attribute, or "" if it is absent or not a string.
func (r *Reader) Text(name string) string {
	s, kind, present := r.scalar(name)
	if kind == KindS {
		return s
	}
	if present {
		r.reportUnreadable(name, "is not a string")
	}
	return ""
}

// RequiredText returns the value of a string attribute that the record must have.
func (r *Reader) RequiredText(name string) string {
	s, kind, _ := r.scalar(name)
	if kind == KindS {
		return s
	}
	r.Fail(name, "is missing or not a string")
	return ""
}

// textOrIndexKey returns a string attribute or, if it is absent or empty, the value in the index
// partition key.
func (r *Reader) textOrIndexKey(name string, t KeyTemplate, p presence) string {
	text, kind, present := r.scalar(name)
	switch {
	case present && kind != KindS:
		return r.Text(name)
	case text != "":
		return text
	case p == presenceOptional && r.Has("entity"):
		// Ordergraph marks its records with the attribute "entity". In these records, an absent optional
		// attribute means that the record has no such value.
		return ""
	}
	return FirstPlaceholderValue(t, r.Text(AttrIndexPK))
}

// IndexValueOf returns the account rep or warehouse in the index partition key of a record. Other
// software may store the value only there. If the key does not match e.IndexPK, or Ordergraph wrote the
// record, the result is empty.
func IndexValueOf(e *Entity, rec Record) string {
	at := Reader{Record: rec}
	if at.Has("entity") {
		return ""
	}
	return FirstPlaceholderValue(e.IndexPK, at.Text(AttrIndexPK))
}

// Has reports whether the attribute exists.
func (r *Reader) Has(name string) bool {
	_, _, present := r.scalar(name)
	return present
}

// Number returns the value of a whole-number attribute. If the attribute is absent, it returns 0.
func (r *Reader) Number(name string) int {
	n, _ := r.wholeNumber(name)
	return n
}

// Flag returns the value of a boolean attribute, or false if it is absent or not a boolean.
func (r *Reader) Flag(name string) bool {
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if !ok || r.Item.kind(at) != KindBOOL {
			return false
		}
		n := &r.Item.Doc.Nodes[at]
		return r.Item.Doc.Span(n.Text, n.TextEnd) == JSONTrue
	}
	switch v := r.Record[name].(type) {
	case nil:
	case *types.AttributeValueMemberBOOL:
		return v.Value
	default:
		r.reportUnreadable(name, "is not a boolean")
	}
	return false
}

// RequiredNumber returns the value of a whole-number attribute that the record must have.
func (r *Reader) RequiredNumber(name string) int {
	n, present := r.wholeNumber(name)
	if !present {
		r.Fail(name, "is missing or not a whole number")
	}
	return n
}

// wholeNumber returns the value of a whole-number attribute, and reports whether the attribute
// exists. If the attribute is not a whole number, wholeNumber stores this problem (see Err).
func (r *Reader) wholeNumber(name string) (int, bool) {
	n, kind, present := r.scalar(name)
	if !present {
		return 0, false
	}
	if kind == KindN {
		if i, err := strconv.Atoi(n); err == nil {
			return i, true
		}
		// Other software may write whole numbers in other notations, such as 5.0 or 1E+1.
		if d, err := decimal.Parse(n); err == nil {
			if whole, _, ok := d.Trunc(0).Int64(0); ok && d.IsInt() {
				return int(whole), true
			}
		}
	}
	r.Fail(name, "is missing or not a whole number")
	return 0, true
}

func (r *Reader) requiredMoney(name string, c commerce.Currency) commerce.Money {
	n, kind, _ := r.scalar(name)
	if kind != KindN {
		r.Fail(name, "is missing or not a number")
		return commerce.Money{Currency: c}
	}
	m, err := commerce.ParseMoney(n, c)
	if err != nil {
		r.Fail(name, err.Error())
	}
	return m
}

// Currency returns the currency of a record, or otherwise if the record has no currency.
func (r *Reader) Currency(otherwise commerce.Currency) commerce.Currency {
	if c := r.Text("currency"); c != "" {
		return commerce.Currency(c)
	}
	return otherwise
}

// RequiredTime returns the value of a time attribute that the record must have.
func (r *Reader) RequiredTime(name string) time.Time { return r.time(name, r.RequiredText(name)) }

func (r *Reader) time(name, text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.Fail(name, "is not a time of the form 2026-02-01T09:30:00.000Z")
	}
	return t.UTC()
}

// UpdatedAtOr returns the time of the record's last update. If the record does not store this time,
// because other software wrote the record, UpdatedAtOr returns its parameter.
func (r *Reader) UpdatedAtOr(otherwise time.Time) time.Time {
	const name = "updatedAt"
	text, kind, present := r.scalar(name)
	switch {
	case !present:
		return otherwise
	case kind != KindS:
		return r.RequiredTime(name)
	}
	return r.time(name, text)
}

// Texts returns the strings in a list or set attribute.
func (r *Reader) Texts(name string) []string {
	const problem = "is not a list of strings"
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if k := r.Item.kind(at); !ok || k != KindSS && k != KindL {
			return nil
		}
		inside := r.Item.elements(at)
		out := make([]string, 0, inside.len())
		inside.forEach(func(_ uint32, e *Node) bool {
			if e.Kind == KindS {
				out = append(out, r.Item.Doc.Span(e.Text, e.TextEnd))
			}
			return true
		})
		return out
	}
	switch v := r.Record[name].(type) {
	case nil:
	case *types.AttributeValueMemberSS:
		return v.Value
	case *types.AttributeValueMemberL:
		out := make([]string, 0, len(v.Value))
		for _, e := range v.Value {
			if s, ok := e.(*types.AttributeValueMemberS); ok {
				out = append(out, s.Value)
			} else {
				r.reportUnreadable(name, problem)
			}
		}
		return out
	default:
		r.reportUnreadable(name, problem)
	}
	return nil
}

// mapAttribute returns a Reader for the members of a map attribute, or false if it is not a map.
func (r *Reader) mapAttribute(name string) (Reader, bool) {
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if !ok || r.Item.kind(at) != KindM {
			return Reader{}, false
		}
		return Reader{Item: r.Item.elements(at)}, true
	}
	m, ok := r.Record[name].(*types.AttributeValueMemberM)
	if !ok {
		if r.Has(name) {
			r.reportUnreadable(name, "is not a map")
		}
		return Reader{}, false
	}
	inside := Reader{Record: m.Value}
	if misread := r.onUnreadable; misread != nil {
		inside.onUnreadable = func(member, problem string) { misread(name, fmt.Sprintf("has a member %q that %s", member, problem)) }
	}
	return inside, true
}

// mapListAttribute returns the elements of a list attribute. If the attribute is not a list,
// present is false. mapList.next checks that each element is a map.
func (r *Reader) mapListAttribute(name string) (all mapList, present bool) {
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if !ok || r.Item.kind(at) != KindL {
			return mapList{}, false
		}
		inside := r.Item.elements(at)
		return mapList{item: inside, length: inside.len()}, true
	}
	l, ok := r.Record[name].(*types.AttributeValueMemberL)
	if !ok {
		if r.Has(name) {
			r.reportUnreadable(name, "is not a list")
		}
		return mapList{}, false
	}
	return mapList{values: l.Value, length: len(l.Value)}, true
}

// mapList is a list whose elements should be maps.
type mapList struct {
	values []types.AttributeValue
	item   Item
	// length is the number of remaining elements.
	length int
}

// next removes and returns the first element, or false if there is none or it is not a map.
func (l *mapList) next() (Reader, bool) {
	if l.length == 0 {
		return Reader{}, false
	}
	l.length--
	if l.item.Doc != nil {
		at := l.item.First
		l.item.First = l.item.Doc.Nodes[at].End
		return Reader{Item: l.item.elements(at)}, l.item.kind(at) == KindM
	}
	m, ok := l.values[0].(*types.AttributeValueMemberM)
	l.values = l.values[1:]
	if !ok {
		return Reader{}, false
	}
	return Reader{Record: m.Value}, true
}

// TextOf returns the value of a string attribute, or "" if it is absent or not a string.
func TextOf(rec Record, name string) string {
	at := Reader{Record: rec}
	return at.Text(name)
}

// EqualsText reports whether a value is a string that equals text.
func EqualsText(v types.AttributeValue, text string) bool {
	s, ok := v.(*types.AttributeValueMemberS)
	return ok && s.Value == text
}

// AttrExpiresAt is the time when a record expires, in Unix seconds (DynamoDB's TTL). DynamoDB may
// delete the record days later, so readers must check the time.
const AttrExpiresAt = "expiresAt"
