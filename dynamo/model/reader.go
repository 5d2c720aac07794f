package model

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/commerce"
)

// ErrCorrupt means that a record lacks an attribute that its kind must have, or has it in another
// type.
var ErrCorrupt = errors.New("record cannot be read")

// Attributes that conditions and updates name.
const (
	// AttrVersion goes up with every change of a record, but not with its counters.
	AttrVersion = "version"
	// Counters.
	AttrOrderCount = "orderCount"
	AttrComplete   = "complete"
	AttrPart       = "part"
	AttrSpent      = "spent"
	AttrOrders     = "orders"
	// AttrSpendingComplete of a customer says that all orders are in the records of the spending.
	AttrSpendingComplete = "spendingComplete"
	AttrTotalInventory   = "totalInventory"
	AttrAvailable        = "available"
	AttrQuantity         = "quantity"
	AttrProductCount     = "productCount"
	// AttrStockRevision of a product goes up by one with every change of its stock, and never down.
	// Absent means 0.
	AttrStockRevision = "stockRevision"
	// AttrCategory is the category of a product, and the name of a category.
	AttrCategory = "category"
	// AttrCustomerID and AttrEmployeeID are whose a record is.
	AttrCustomerID = "customerId"
	AttrEmployeeID = "employeeId"
)

// Record is a record's attributes by name, as the SDK gives them.
type Record map[string]types.AttributeValue

// With returns r with more's attributes added to it.
func (r Record) With(more Record) Record {
	maps.Copy(r, more)
	return r
}

// Str returns a string attribute.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns a number attribute.
func Num(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

// Bool returns a boolean attribute.
func Bool(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// Amount returns an amount of money as a number attribute.
func Amount(m commerce.Money) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: m.Decimal()}
}

// ListValue returns a list attribute.
func ListValue(values ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: values}
}

// Texts returns a list of strings.
func Texts(values []string) types.AttributeValue {
	l := make([]types.AttributeValue, len(values))
	for i, v := range values {
		l[i] = Str(v)
	}
	return ListValue(l...)
}

// timestampLayout is the form of times in the table: ISO 8601 in UTC with milliseconds, so that
// they sort as text.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp returns a time as the table holds it.
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// Reader takes a record apart, as the SDK gives it or as it stands in an answer. Its methods give
// zero values for attributes that are absent or of another type, and the ones with "must" remember
// the first such attribute, for err.
//
// What it gives of an answer shares the answer's bytes, all of them, which is right for the time of
// a request. What is kept for longer is made of attributes.
type Reader struct {
	Record  Record
	Item    Item
	Problem string
	// misread, where it is set, is called with each attribute that is there and cannot be read, and
	// what is wrong with it. It is for records that are given as attributes.
	misread func(attribute, what string)
}

// Absent reports whether there is no record.
func (r *Reader) Absent() bool { return r.Record == nil && r.Item.Doc == nil }

// Attributes returns the record as the SDK gives it, without keeping the response in memory; nil if
// there is no record.
func (r *Reader) Attributes() Record {
	if r.Item.Doc == nil {
		return r.Record
	}
	return r.Item.attributes()
}

// Size is the record's size in bytes.
func (r *Reader) Size() int {
	if r.Item.Doc == nil {
		return SizeOf(r.Record)
	}
	return r.Item.size()
}

// Fail notes that an attribute is missing or cannot be read.
func (r *Reader) Fail(name, what string) {
	if r.Problem == "" {
		r.Problem = fmt.Sprintf("attribute %q %s", name, what)
	}
	if r.misread != nil && r.Has(name) {
		r.misread(name, what)
	}
}

// doubt notes that an attribute that the record may lack is there and cannot be read. It reads as
// an absent one.
func (r *Reader) doubt(name, what string) {
	if r.misread != nil {
		r.misread(name, what)
	}
}

// Err tells what is wrong with the record, by its key; nil where nothing is.
//
// Errors: ErrCorrupt.
func (r *Reader) Err() error {
	if r.Problem == "" {
		return nil
	}
	return fmt.Errorf("%w: record %s: %s", ErrCorrupt, r.KeyText(), r.Problem)
}

// KeyOf is the primary key of a record.
func KeyOf(r Record) Keys {
	at := Reader{Record: r}
	return Keys{PK: at.Text(AttrPK), SK: at.Text(AttrSK)}
}

// KeyText is the record's key for messages.
func (r Record) KeyText() string {
	at := Reader{Record: r}
	return at.KeyText()
}

// KeyText is the record's key for messages.
func (r *Reader) KeyText() string { return r.Text(AttrPK) + " " + r.Text(AttrSK) }

// of returns the text and the kind of an attribute that is a string or a number. The kind is
// kindNone if the attribute is of another type or absent; present reports whether it exists.
func (r *Reader) of(name string) (text string, is Kind, present bool) {
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

// Text returns a string; an empty one if the attribute is absent.
func (r *Reader) Text(name string) string {
	s, is, present := r.of(name)
	if is == KindS {
		return s
	}
	if present {
		r.doubt(name, "is not a string")
	}
	return ""
}

// MustText returns a string that the record must have.
func (r *Reader) MustText(name string) string {
	s, is, _ := r.of(name)
	if is == KindS {
		return s
	}
	r.Fail(name, "is missing or no string")
	return ""
}

// textOrKey returns an attribute of a record. If the attribute is absent or empty, it returns the
// value in the record's index key: see indexValue. An attribute of another type is unreadable, and
// the key does not replace it.
func (r *Reader) textOrKey(name string, e *Entity) string {
	text, is, present := r.of(name)
	switch {
	case present && is != KindS:
		return r.Text(name)
	case text != "":
		return text
	}
	return r.indexValue(e)
}

// indexValue returns the value in the record's partition key of the index, made from the entity's
// template: the account rep, the warehouse or the category by which a list finds the record. Other
// software may keep it in the key alone. It returns an empty string for any other key.
//
// In a record of this model, which has the attribute entity, an account rep or a warehouse stands
// in an attribute, and the key follows from it. Every product of this model has a category, so one
// without the attribute has lost it.
func (r *Reader) indexValue(e *Entity) string {
	if e.Name != EntityProduct.Name && r.Has("entity") {
		return ""
	}
	return KeyValue(e.IndexPK, r.Text(AttrIndexPK))
}

// IndexValueOf returns the value in the index key of a record: see Reader.IndexValue.
func IndexValueOf(e *Entity, rec Record) string {
	at := Reader{Record: rec}
	return at.indexValue(e)
}

// Has reports whether there is an attribute of that name.
func (r *Reader) Has(name string) bool {
	_, _, present := r.of(name)
	return present
}

// Number returns a whole number; 0 if the attribute is absent.
func (r *Reader) Number(name string) int {
	n, _ := r.counted(name)
	return n
}

// Flag returns a boolean; false if the attribute is absent.
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
		r.doubt(name, "is not a boolean")
	}
	return false
}

// MustNumber returns a whole number that the record must have.
func (r *Reader) MustNumber(name string) int {
	n, present := r.counted(name)
	if !present {
		r.Fail(name, "is missing or no whole number")
	}
	return n
}

// counted is a number, and whether there is an attribute of that name, which must be one.
func (r *Reader) counted(name string) (int, bool) {
	n, is, present := r.of(name)
	if !present {
		return 0, false
	}
	if is == KindN {
		if i, err := strconv.Atoi(n); err == nil {
			return i, true
		}
		// Other software writes 5.0 and 1E+1.
		if d, err := decimal.Parse(n); err == nil {
			if whole, _, ok := d.Trunc(0).Int64(0); ok && d.IsInt() {
				return int(whole), true
			}
		}
	}
	r.Fail(name, "is missing or no whole number")
	return 0, true
}

func (r *Reader) mustMoney(name string, c commerce.Currency) commerce.Money {
	n, is, _ := r.of(name)
	if is != KindN {
		r.Fail(name, "is missing or no number")
		return commerce.Money{Currency: c}
	}
	m, err := commerce.ParseMoney(n, c)
	if err != nil {
		r.Fail(name, err.Error())
	}
	return m
}

// Currency is the record's, or the shop's where it names none.
func (r *Reader) Currency(otherwise commerce.Currency) commerce.Currency {
	if c := r.Text("currency"); c != "" {
		return commerce.Currency(c)
	}
	return otherwise
}

// MustTime returns a time that the record must have.
func (r *Reader) MustTime(name string) time.Time { return r.time(name, r.MustText(name)) }

// time reads an attribute's text as a time.
func (r *Reader) time(name, text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.Fail(name, "is no time of the form 2026-02-01T09:30:00.000Z")
	}
	return t.UTC()
}

// UpdatedOr returns the time of the last update, which other software may not write; without it,
// otherwise.
func (r *Reader) UpdatedOr(otherwise time.Time) time.Time {
	const name = "updatedAt"
	text, is, present := r.of(name)
	switch {
	case !present:
		return otherwise
	case is != KindS:
		return r.MustTime(name)
	}
	return r.time(name, text)
}

// Texts returns a list or a set of strings.
func (r *Reader) Texts(name string) []string {
	const what = "is not a list of strings"
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if k := r.Item.kind(at); !ok || k != KindSS && k != KindL {
			return nil
		}
		inside := r.Item.inside(at)
		out := make([]string, 0, inside.len())
		inside.each(func(_ uint32, e *Node) bool {
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
				r.doubt(name, what)
			}
		}
		return out
	default:
		r.doubt(name, what)
	}
	return nil
}

// within returns the map of that name in the record, and whether the record has such a map.
func (r *Reader) within(name string) (Reader, bool) {
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if !ok || r.Item.kind(at) != KindM {
			return Reader{}, false
		}
		return Reader{Item: r.Item.inside(at)}, true
	}
	m, ok := r.Record[name].(*types.AttributeValueMemberM)
	if !ok {
		if r.Has(name) {
			r.doubt(name, "is not a map")
		}
		return Reader{}, false
	}
	inside := Reader{Record: m.Value}
	if misread := r.misread; misread != nil {
		inside.misread = func(member, what string) { misread(name, fmt.Sprintf("has a member %q that %s", member, what)) }
	}
	return inside, true
}

// maps are a list in the record, which is to hold maps; present is false where there is no list of
// that name.
func (r *Reader) maps(name string) (all mapList, present bool) {
	if r.Item.Doc != nil {
		at, ok := r.Item.Find(name)
		if !ok || r.Item.kind(at) != KindL {
			return mapList{}, false
		}
		inside := r.Item.inside(at)
		return mapList{item: inside, length: inside.len()}, true
	}
	l, ok := r.Record[name].(*types.AttributeValueMemberL)
	if !ok {
		if r.Has(name) {
			r.doubt(name, "is not a list")
		}
		return mapList{}, false
	}
	return mapList{values: l.Value, length: len(l.Value)}, true
}

// mapList is a list that is to hold maps.
type mapList struct {
	values []types.AttributeValue
	item   Item
	// length is how many elements the list has.
	length int
}

// next gives the first element and takes it off the list; false where it is no map, or there is
// none.
func (l *mapList) next() (Reader, bool) {
	if l.length == 0 {
		return Reader{}, false
	}
	l.length--
	if l.item.Doc != nil {
		at := l.item.First
		l.item.First = l.item.Doc.Nodes[at].End
		return Reader{Item: l.item.inside(at)}, l.item.kind(at) == KindM
	}
	m, ok := l.values[0].(*types.AttributeValueMemberM)
	l.values = l.values[1:]
	if !ok {
		return Reader{}, false
	}
	return Reader{Record: m.Value}, true
}

// TextOf returns a string attribute of a record; an empty string if it is absent.
func TextOf(rec Record, name string) string {
	at := Reader{Record: rec}
	return at.Text(name)
}

// IsText reports whether a value is a string with this text.
func IsText(v types.AttributeValue, text string) bool {
	s, ok := v.(*types.AttributeValueMemberS)
	return ok && s.Value == text
}

// AttrExpiresAt is when DynamoDB may delete a record, in seconds since 1970: the table's
// time-to-live attribute. DynamoDB takes days to do so, so whoever reads such a record has to look
// at it.
const AttrExpiresAt = "expiresAt"
