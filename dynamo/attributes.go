package dynamo

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/commerce"
)

// Attributes that conditions and updates name.
const (
	// attrVersion goes up with every change of a record, but not with its counters.
	attrVersion = "version"
	// Counters.
	attrOrderCount     = "orderCount"
	attrTotalInventory = "totalInventory"
	attrAvailable      = "available"
	attrQuantity       = "quantity"
	// attrStockRevision of a product goes up by one with every change of its stock, and never down.
	// Absent means 0.
	attrStockRevision = "stockRevision"
	// attrCustomerID is whose a record is.
	attrCustomerID = "customerId"
)

// record is a record's attributes by name, as the SDK gives them.
type record map[string]types.AttributeValue

// with returns r with more's attributes added to it.
func (r record) with(more record) record {
	maps.Copy(r, more)
	return r
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

func amount(m commerce.Money) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: m.Decimal()}
}

func list(values ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: values}
}

func texts(values []string) types.AttributeValue {
	l := make([]types.AttributeValue, len(values))
	for i, v := range values {
		l[i] = str(v)
	}
	return list(l...)
}

// timestampLayout is the form of times in the table: ISO 8601 in UTC with milliseconds, so that
// they sort as text.
const timestampLayout = "2006-01-02T15:04:05.000Z"

func timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// reader takes a record apart, as the SDK gives it or as it stands in an answer. Its methods give
// zero values for attributes that are absent or of another type, and the ones with "must" remember
// the first such attribute, for err.
//
// What it gives of an answer shares the answer's bytes, all of them, which is right for the time of
// a request. What is kept for longer is made of attributes.
type reader struct {
	record  record
	item    item
	problem string
	// misread, where it is set, is called with each attribute that is there and cannot be read, and
	// what is wrong with it. It is for records that are given as attributes.
	misread func(attribute, what string)
}

// absent tells whether there is no record.
func (r *reader) absent() bool { return r.record == nil && r.item.doc == nil }

// attributes are the record as the SDK gives it, with nothing else in memory because of it; nil
// where there is none.
func (r *reader) attributes() record {
	if r.item.doc == nil {
		return r.record
	}
	return r.item.attributes()
}

// size is the record's size in bytes.
func (r *reader) size() int {
	if r.item.doc == nil {
		return sizeOf(r.record)
	}
	return r.item.size()
}

func (r *reader) fail(name, what string) {
	if r.problem == "" {
		r.problem = fmt.Sprintf("attribute %q %s", name, what)
	}
	if r.misread != nil && r.has(name) {
		r.misread(name, what)
	}
}

// doubt notes that an attribute that the record may lack is there and cannot be read. It reads as
// an absent one.
func (r *reader) doubt(name, what string) {
	if r.misread != nil {
		r.misread(name, what)
	}
}

// err tells what is wrong with the record, by its key; nil where nothing is.
//
// Errors: ErrCorrupt.
func (r *reader) err() error {
	if r.problem == "" {
		return nil
	}
	return fmt.Errorf("%w: record %s: %s", ErrCorrupt, r.primaryKey(), r.problem)
}

// keyOf is the primary key of a record.
func keyOf(r record) keys {
	at := reader{record: r}
	return keys{PK: at.text(attrPK), SK: at.text(attrSK)}
}

// primaryKey is the record's key for messages.
func (r record) primaryKey() string {
	at := reader{record: r}
	return at.primaryKey()
}

// primaryKey is the record's key for messages.
func (r *reader) primaryKey() string { return r.text(attrPK) + " " + r.text(attrSK) }

// of gives the text of an attribute that is a string or a number, and which of them it is; kindNone
// for one of another type, or none. present tells whether there is one at all.
func (r *reader) of(name string) (text string, is kind, present bool) {
	if r.item.doc != nil {
		at, ok := r.item.find(name)
		if !ok {
			return "", kindNone, false
		}
		if n := &r.item.doc.nodes[at]; n.kind == kindS || n.kind == kindN {
			return r.item.doc.span(n.text, n.textEnd), n.kind, true
		}
		return "", kindNone, true
	}
	v, present := r.record[name]
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, kindS, true
	case *types.AttributeValueMemberN:
		return v.Value, kindN, true
	}
	return "", kindNone, present
}

func (r *reader) text(name string) string {
	s, is, present := r.of(name)
	if is == kindS {
		return s
	}
	if present {
		r.doubt(name, "is not a string")
	}
	return ""
}

func (r *reader) mustText(name string) string {
	s, is, _ := r.of(name)
	if is == kindS {
		return s
	}
	r.fail(name, "is missing or no string")
	return ""
}

// textOrKey returns an attribute of a record. If the attribute is absent or empty, it returns the
// value in the record's index key: see indexValue. An attribute of another type is unreadable, and
// the key does not replace it.
func (r *reader) textOrKey(name string, e *Entity) string {
	text, is, present := r.of(name)
	switch {
	case present && is != kindS:
		return r.text(name)
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
func (r *reader) indexValue(e *Entity) string {
	if e.Name != entityProduct.Name && r.has("entity") {
		return ""
	}
	return keyValue(e.IndexPK, r.text(attrIndexPK))
}

func indexValueOf(e *Entity, rec record) string {
	at := reader{record: rec}
	return at.indexValue(e)
}

func (r *reader) has(name string) bool {
	_, _, present := r.of(name)
	return present
}

func (r *reader) number(name string) int {
	n, _ := r.counted(name)
	return n
}

func (r *reader) mustNumber(name string) int {
	n, present := r.counted(name)
	if !present {
		r.fail(name, "is missing or no whole number")
	}
	return n
}

// counted is a number, and whether there is an attribute of that name, which must be one.
func (r *reader) counted(name string) (int, bool) {
	n, is, present := r.of(name)
	if !present {
		return 0, false
	}
	if is == kindN {
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
	r.fail(name, "is missing or no whole number")
	return 0, true
}

// count is number for an attribute whose absence means that nobody has counted.
func (r *reader) count(name string) *int {
	if n, present := r.counted(name); present {
		return &n
	}
	return nil
}

func (r *reader) mustMoney(name string, c commerce.Currency) commerce.Money {
	n, is, _ := r.of(name)
	if is != kindN {
		r.fail(name, "is missing or no number")
		return commerce.Money{Currency: c}
	}
	m, err := commerce.ParseMoney(n, c)
	if err != nil {
		r.fail(name, err.Error())
	}
	return m
}

// currency is the record's, or the shop's where it names none.
func (r *reader) currency(otherwise commerce.Currency) commerce.Currency {
	if c := r.text("currency"); c != "" {
		return commerce.Currency(c)
	}
	return otherwise
}

func (r *reader) mustTime(name string) time.Time { return r.time(name, r.mustText(name)) }

// time reads an attribute's text as a time.
func (r *reader) time(name, text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.fail(name, "is no time of the form 2026-02-01T09:30:00.000Z")
	}
	return t.UTC()
}

// updatedOr returns the time of the last update, which other software may not write; without it,
// otherwise.
func (r *reader) updatedOr(otherwise time.Time) time.Time {
	const name = "updatedAt"
	text, is, present := r.of(name)
	switch {
	case !present:
		return otherwise
	case is != kindS:
		return r.mustTime(name)
	}
	return r.time(name, text)
}

func (r *reader) texts(name string) []string {
	const what = "is not a list of strings"
	if r.item.doc != nil {
		at, ok := r.item.find(name)
		if k := r.item.kind(at); !ok || k != kindSS && k != kindL {
			return nil
		}
		inside := r.item.inside(at)
		out := make([]string, 0, inside.len())
		inside.each(func(_ uint32, e *node) bool {
			if e.kind == kindS {
				out = append(out, r.item.doc.span(e.text, e.textEnd))
			}
			return true
		})
		return out
	}
	switch v := r.record[name].(type) {
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

// within is a map in the record; false where there is none of that name.
func (r *reader) within(name string) (reader, bool) {
	if r.item.doc != nil {
		at, ok := r.item.find(name)
		if !ok || r.item.kind(at) != kindM {
			return reader{}, false
		}
		return reader{item: r.item.inside(at)}, true
	}
	m, ok := r.record[name].(*types.AttributeValueMemberM)
	if !ok {
		if r.has(name) {
			r.doubt(name, "is not a map")
		}
		return reader{}, false
	}
	inside := reader{record: m.Value}
	if misread := r.misread; misread != nil {
		inside.misread = func(member, what string) { misread(name, fmt.Sprintf("has a member %q that %s", member, what)) }
	}
	return inside, true
}

// maps are a list in the record, which is to hold maps; present is false where there is no list of
// that name.
func (r *reader) maps(name string) (all mapList, present bool) {
	if r.item.doc != nil {
		at, ok := r.item.find(name)
		if !ok || r.item.kind(at) != kindL {
			return mapList{}, false
		}
		inside := r.item.inside(at)
		return mapList{item: inside, length: inside.len()}, true
	}
	l, ok := r.record[name].(*types.AttributeValueMemberL)
	if !ok {
		if r.has(name) {
			r.doubt(name, "is not a list")
		}
		return mapList{}, false
	}
	return mapList{values: l.Value, length: len(l.Value)}, true
}

// mapList is a list that is to hold maps.
type mapList struct {
	values []types.AttributeValue
	item   item
	// length is how many elements the list has.
	length int
}

// next gives the first element and takes it off the list; false where it is no map, or there is
// none.
func (l *mapList) next() (reader, bool) {
	if l.length == 0 {
		return reader{}, false
	}
	l.length--
	if l.item.doc != nil {
		at := l.item.first
		l.item.first = l.item.doc.nodes[at].end
		return reader{item: l.item.inside(at)}, l.item.kind(at) == kindM
	}
	m, ok := l.values[0].(*types.AttributeValueMemberM)
	l.values = l.values[1:]
	if !ok {
		return reader{}, false
	}
	return reader{record: m.Value}, true
}

func textOf(rec record, name string) string {
	at := reader{record: rec}
	return at.text(name)
}

func isText(v types.AttributeValue, text string) bool {
	s, ok := v.(*types.AttributeValueMemberS)
	return ok && s.Value == text
}

// attrExpiresAt is when DynamoDB may delete a record, in seconds since 1970: the table's
// time-to-live attribute. DynamoDB takes days to do so, so whoever reads such a record has to look
// at it.
const attrExpiresAt = "expiresAt"
