package commerce

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/govalues/decimal"
)

// CustomField declares a field that a shop adds to all records of a type.
type CustomField struct {
	Name string
	Type CustomFieldType
	// EnumValues contains the possible values if Type is CustomEnum.
	EnumValues []string
	// If List is true, the field contains up to MaxItems values. None of them is null.
	List     bool
	MaxItems int
	// MaxLength is the maximum number of bytes in a value of type CustomString or CustomID.
	MaxLength int
	// Min and Max limit values of type CustomInt or CustomDecimal. They are nil if there is no limit.
	Min, Max *decimal.Decimal
	// Default is the value, as Parse returns it, of records that lack the field. It can be nil.
	Default any
	// If Required is true, the field is never null. Default is then set.
	Required bool
	// ListQuery is the name of the query that lists the records with a value of the field. LookupQuery is the
	// name of the query for the only record with a value. At most one of them is set.
	ListQuery, LookupQuery string
}

// keyEscapes replaces the character that separates the parts of a key, and keyTexts reverses this.
var (
	keyEscapes = strings.NewReplacer("%", "%25", "#", "%23")
	keyTexts   = strings.NewReplacer("%25", "%", "%23", "#")
)

// KeyText returns a value, as Parse has returned it, as a part of a key. Different values have different
// texts. If the value is nil, the text is empty.
func (f *CustomField) KeyText(value any) string {
	switch value := value.(type) {
	case string:
		return keyEscapes.Replace(value)
	case json.Number:
		return value.String()
	case bool:
		return strconv.FormatBool(value)
	}
	return ""
}

// TextOfKey is the inverse of CustomField.KeyText, for messages.
func TextOfKey(key string) string { return keyTexts.Replace(key) }

// CustomFieldType is the type of a custom field's values. Except for CustomEnum, it is the name of
// the type in the GraphQL schema.
type CustomFieldType string

// The types of custom fields.
const (
	CustomString   CustomFieldType = "String"
	CustomID       CustomFieldType = "ID"
	CustomInt      CustomFieldType = "Int"
	CustomBoolean  CustomFieldType = "Boolean"
	CustomDecimal  CustomFieldType = "Decimal"
	CustomMoney    CustomFieldType = "Money"
	CustomDate     CustomFieldType = "Date"
	CustomDateTime CustomFieldType = "DateTime"
	CustomEnum     CustomFieldType = "enum"
)

// customFields maps the name of a record type, such as Order, to its custom fields.
var customFields map[string][]CustomField

// DeclareCustomFields declares the custom fields of all records. The keys of the map are the names of
// types in the GraphQL schema: Customer, Employee, Order, OrderItem, Product and Warehouse. Like all
// declarations of records, custom fields apply to the whole process, so call DeclareCustomFields only
// before the process uses records. It returns the previous declaration, which tests restore.
func DeclareCustomFields(fields map[string][]CustomField) (previous map[string][]CustomField) {
	previous, customFields = customFields, fields
	return previous
}

// CustomFieldsOf returns the custom fields of a record type, such as Order.
func CustomFieldsOf(recordType string) []CustomField { return customFields[recordType] }

// customTimeLayout is the layout of stored values of type CustomDateTime.
const customTimeLayout = "2006-01-02T15:04:05.000Z"

// Parse validates a value and returns its normal form: a string, a json.Number, a bool, a Money, or a
// []any of these. It accepts its own results, values of GraphQL inputs, and values of StoredValues. If
// the value is nil, Parse returns nil.
//
// Parse returns an InvalidError if the field cannot have the value.
func (f *CustomField) Parse(value any) (any, error) {
	switch {
	case value == nil && f.Required:
		return nil, NewInvalidError("is null: set a value")
	case value == nil:
		return nil, nil
	case !f.List:
		return f.parseElement(value)
	}
	elements, ok := value.([]any)
	if !ok {
		elements = []any{value}
	}
	if len(elements) > f.MaxItems {
		return nil, NewInvalidError("has %d values: use at most %d", len(elements), f.MaxItems)
	}
	parsed := make([]any, len(elements))
	for i, element := range elements {
		var err error
		if parsed[i], err = f.parseElement(element); err != nil {
			return nil, ErrorWithArgument(strconv.Itoa(i), err)
		}
	}
	return parsed, nil
}

func (f *CustomField) parseElement(value any) (any, error) {
	text, isText := value.(string)
	switch f.Type {
	case CustomMoney:
		return parseCustomMoney(value)
	case CustomBoolean:
		if b, ok := value.(bool); ok {
			return b, nil
		}
		return nil, NewInvalidError("must be true or false")
	case CustomInt, CustomDecimal:
		return f.parseNumber(value)
	}
	if !isText {
		return nil, NewInvalidError("must be a text")
	}
	switch f.Type {
	case CustomString:
		return ParseText(text, f.MaxLength)
	case CustomID:
		return ParseName(text, f.MaxLength)
	case CustomDate:
		date, err := ParseDate(text)
		return string(date), err
	case CustomDateTime:
		t, err := ParseDateTime(text)
		if text = t.Format(customTimeLayout); err == nil && len(text) != len(customTimeLayout) {
			err = NewInvalidError("is in a year that has not four digits in UTC")
		}
		return text, err
	}
	if !slices.Contains(f.EnumValues, text) {
		return nil, NewInvalidError("is %q: use %s", excerpt(text), strings.Join(f.EnumValues, ", "))
	}
	return text, nil
}

// parseNumber returns a number as a json.Number without an exponent or unnecessary zeros.
func (f *CustomField) parseNumber(value any) (any, error) {
	var text string
	switch value := value.(type) {
	case string:
		text = value
	case json.Number:
		text = value.String()
	case int64:
		text = strconv.FormatInt(value, 10)
	}
	d, err := decimal.Parse(text)
	switch {
	case err != nil || !isExactDecimal(d, text):
		return nil, NewInvalidError("must be a number of at most 19 digits")
	case f.Type == CustomInt && (!d.IsInt() || d.Cmp(decimal.MustNew(math.MaxInt32, 0)) > 0 || d.Cmp(decimal.MustNew(math.MinInt32, 0)) < 0):
		return nil, NewInvalidError("must be a whole number with at most 32 bits")
	case f.Min != nil && d.Cmp(*f.Min) < 0:
		return nil, NewInvalidError("is %s: use at least %s", d.Trim(0), f.Min)
	case f.Max != nil && d.Cmp(*f.Max) > 0:
		return nil, NewInvalidError("is %s: use at most %s", d.Trim(0), f.Max)
	}
	return json.Number(d.Trim(0).String()), nil
}

// The members of a stored amount of money, and the name that GraphQL uses for the currency.
const (
	MoneyAmount       = "amount"
	MoneyCurrency     = "currency"
	moneyCurrencyCode = "currencyCode"
)

func parseCustomMoney(value any) (any, error) {
	if m, ok := value.(Money); ok {
		return m, nil
	}
	const problem = `must be an amount of money, such as {amount: "29.99", currencyCode: "USD"}`
	members, ok := value.(map[string]any)
	if !ok {
		return nil, NewInvalidError(problem)
	}
	code := members[MoneyCurrency]
	if code == nil {
		code = members[moneyCurrencyCode]
	}
	var amount string
	switch a := members[MoneyAmount].(type) {
	case string:
		amount = a
	case json.Number:
		amount = a.String()
	}
	codeText, ok := code.(string)
	if !ok || amount == "" {
		return nil, NewInvalidError(problem)
	}
	currency, err := ParseCurrency(codeText)
	if err != nil {
		return nil, err
	}
	return ParseMoney(amount, currency)
}

// Value returns the field's value in a record, as Parse returns it. If the record lacks the field, it
// returns the default value.
//
// Value returns an error that wraps ErrMalformed if the field cannot have the stored value.
func (f *CustomField) Value(values CustomValues) (any, error) {
	stored := values.Get(f.Name)
	if stored == nil {
		return f.Default, nil
	}
	parsed, err := f.Parse(stored)
	if err != nil {
		return nil, &MalformedCustomField{f.Name, err}
	}
	return parsed, nil
}

// MalformedCustomField is the error for a stored value that does not match the declaration of its
// field. It wraps ErrMalformed.
type MalformedCustomField struct {
	Field string
	Err   error
}

// Error describes the field and its problem.
func (e *MalformedCustomField) Error() string {
	return "the stored value of the custom field " + e.Field + " " + e.Err.Error()
}

// Unwrap returns ErrMalformed.
func (e *MalformedCustomField) Unwrap() error { return ErrMalformed }

// Largest returns a value with the maximum size.
func (f *CustomField) Largest() any {
	var value any
	switch f.Type {
	case CustomString, CustomID:
		value = strings.Repeat("x", f.MaxLength)
	case CustomBoolean:
		value = true
	case CustomInt:
		value = json.Number("-2147483648")
	case CustomDecimal:
		value = json.Number("-0.9999999999999999999")
	case CustomMoney:
		value, _ = ParseMoney("-99999999999999999.99", "USD")
	case CustomDate:
		value = "2026-02-01"
	case CustomDateTime:
		value = customTimeLayout
	case CustomEnum:
		value = slices.MaxFunc(f.EnumValues, func(a, b string) int { return len(a) - len(b) })
	}
	if f.List {
		return slices.Repeat([]any{value}, f.MaxItems)
	}
	return value
}

// StoredValues reads the custom fields of stored records.
type StoredValues interface {
	// StoredValue returns the value of an attribute of the record at a position: a string, a json.Number,
	// a bool, or a []any or map[string]any of such values. If the attribute is absent, StoredValue returns
	// nil.
	StoredValue(at RecordPosition, name string) any
}

// RecordPosition is the position of a record among several stored records, from First up to, but not
// including, End. With it, the values of many records need no memory of their own.
type RecordPosition struct{ First, End uint32 }

// CustomValues are the values of a record's custom fields, or changes of them. In JSON, they are an
// object with the changed values.
type CustomValues struct {
	// changed contains the values that replace stored ones. nil removes a value.
	changed map[string]any
	stored  StoredValues
	at      RecordPosition
}

// NewCustomValues returns changes of custom fields. The map contains values that CustomField.Parse
// has returned.
func NewCustomValues(changed map[string]any) CustomValues { return CustomValues{changed: changed} }

// StoredCustomValues returns the values of a stored record. They are read only when they are needed.
func StoredCustomValues(stored StoredValues, at RecordPosition) CustomValues {
	return CustomValues{stored: stored, at: at}
}

// Get returns the value of a field, or nil if the field has no value.
func (v CustomValues) Get(name string) any {
	if value, ok := v.changed[name]; ok || v.stored == nil {
		return value
	}
	return v.stored.StoredValue(v.at, name)
}

// Changed returns the changed value of a field. If the field was not changed, it returns false.
func (v CustomValues) Changed(name string) (any, bool) {
	value, ok := v.changed[name]
	return value, ok
}

// Stored returns the stored values and the position of the record. Without a stored record, the values
// are nil.
func (v CustomValues) Stored() (StoredValues, RecordPosition) { return v.stored, v.at }

// With returns the values after changes.
func (v CustomValues) With(changes CustomValues) CustomValues {
	if len(changes.changed) == 0 {
		return v
	}
	changed := maps.Clone(v.changed)
	if changed == nil {
		changed = make(map[string]any, len(changes.changed))
	}
	maps.Copy(changed, changes.changed)
	return CustomValues{changed, v.stored, v.at}
}

// conflict returns the name of a field that both changes set to different values, or "".
func (v CustomValues) conflict(other CustomValues) string {
	for _, name := range slices.Sorted(maps.Keys(other.changed)) {
		if value, ok := v.changed[name]; ok && !reflect.DeepEqual(value, other.changed[name]) {
			return name
		}
	}
	return ""
}

// IsZero reports whether no value was changed. Package encoding/json calls it for the option omitzero.
func (v CustomValues) IsZero() bool { return len(v.changed) == 0 }

// MarshalJSON encodes the changed values as an object.
func (v CustomValues) MarshalJSON() ([]byte, error) { return json.Marshal(v.changed) }

// UnmarshalJSON decodes the changed values from an object. It does not validate them.
func (v *CustomValues) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	return d.Decode(&v.changed)
}

// Validate validates changed values for records of a type, such as ParseCustomValues does.
func (v CustomValues) Validate(recordType string, report func(path []string, problem string)) CustomValues {
	return ParseCustomValues(recordType, v.changed, report)
}

// ParseCustomValues validates changed values for records of a type, such as Order, and returns them in
// their normal form. report is called with the path and the problem of each invalid value.
func ParseCustomValues(recordType string, values map[string]any, report func(path []string, problem string)) CustomValues {
	parsed := make(map[string]any, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(customFields[recordType], func(f CustomField) bool { return f.Name == name })
		if i < 0 {
			report([]string{name}, "is not a field of "+recordType)
			continue
		}
		value, err := customFields[recordType][i].Parse(values[name])
		if err != nil {
			path, reason := []string{name}, err.Error()
			if invalid, ok := errors.AsType[*InvalidError](err); ok {
				if reason = invalid.Reason; invalid.Argument != "" {
					path = append(path, invalid.Argument)
				}
			}
			report(path, reason)
			continue
		}
		parsed[name] = value
	}
	return NewCustomValues(parsed)
}
