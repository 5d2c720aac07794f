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

// timestampLayout is the form of times in the table: ISO 8601 in UTC with milliseconds, so that they sort as text.
const timestampLayout = "2006-01-02T15:04:05.000Z"

func timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// reader takes a record apart. Its methods give zero values for attributes that are absent or of another type, and
// the ones with "must" remember the first such attribute, for err.
type reader struct {
	record  record
	problem string
}

func (r *reader) fail(name, what string) {
	if r.problem == "" {
		r.problem = fmt.Sprintf("attribute %q %s", name, what)
	}
}

// err tells what is wrong with the record, by its key; nil where nothing is.
//
// Errors: ErrCorrupt.
func (r *reader) err() error {
	if r.problem == "" {
		return nil
	}
	return fmt.Errorf("%w: record %s: %s", ErrCorrupt, r.record.primaryKey(), r.problem)
}

// keyOf is the primary key of a record.
func keyOf(r record) keys {
	at := reader{record: r}
	return keys{PK: at.text(attrPK), SK: at.text(attrSK)}
}

// primaryKey is the record's key for messages.
func (r record) primaryKey() string {
	at := reader{record: r}
	return at.text(attrPK) + " " + at.text(attrSK)
}

func (r *reader) text(name string) string {
	s, _ := r.record[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func (r *reader) mustText(name string) string {
	if s, ok := r.record[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	r.fail(name, "is missing or no string")
	return ""
}

func (r *reader) has(name string) bool {
	_, ok := r.record[name]
	return ok
}

func (r *reader) number(name string) int {
	if !r.has(name) {
		return 0
	}
	return r.mustNumber(name)
}

func (r *reader) mustNumber(name string) int {
	if n, ok := r.record[name].(*types.AttributeValueMemberN); ok {
		if i, err := strconv.Atoi(n.Value); err == nil {
			return i
		}
		// Other software writes 5.0 and 1E+1.
		if d, err := decimal.Parse(n.Value); err == nil {
			if whole, _, ok := d.Trunc(0).Int64(0); ok && d.IsInt() {
				return int(whole)
			}
		}
	}
	r.fail(name, "is missing or no whole number")
	return 0
}

// count is number for an attribute whose absence means that nobody has counted.
func (r *reader) count(name string) *int {
	if !r.has(name) {
		return nil
	}
	n := r.mustNumber(name)
	return &n
}

func (r *reader) mustMoney(name string, c commerce.Currency) commerce.Money {
	n, ok := r.record[name].(*types.AttributeValueMemberN)
	if !ok {
		r.fail(name, "is missing or no number")
		return commerce.Money{Currency: c}
	}
	m, err := commerce.ParseMoney(n.Value, c)
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

func (r *reader) mustTime(name string) time.Time {
	t, err := time.Parse(time.RFC3339, r.mustText(name))
	if err != nil {
		r.fail(name, "is no time of the form 2026-02-01T09:30:00.000Z")
	}
	return t.UTC()
}

// timeOr is the time in an attribute that other software may not write.
func (r *reader) timeOr(name string, otherwise time.Time) time.Time {
	if !r.has(name) {
		return otherwise
	}
	return r.mustTime(name)
}

func (r *reader) texts(name string) []string {
	switch v := r.record[name].(type) {
	case *types.AttributeValueMemberSS:
		return v.Value
	case *types.AttributeValueMemberL:
		out := make([]string, 0, len(v.Value))
		for _, e := range v.Value {
			if s, ok := e.(*types.AttributeValueMemberS); ok {
				out = append(out, s.Value)
			}
		}
		return out
	}
	return nil
}
