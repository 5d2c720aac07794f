// Package attr has DynamoDB's items and attribute values: their JSON, their validation, their sizes,
// their order, and keys whose bytes sort like the values.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
package attr

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the type of an attribute value.
type Kind byte

// The kinds of values. A value without a kind is invalid.
const (
	String Kind = iota + 1
	Number
	Binary
	Bool
	Null
	Map
	List
	StringSet
	NumberSet
	BinarySet
)

// kindNames has the names of the kinds in DynamoDB's JSON.
var kindNames = [...]string{String: "S", Number: "N", Binary: "B", Bool: "BOOL", Null: "NULL", Map: "M", List: "L", StringSet: "SS", NumberSet: "NS", BinarySet: "BS"}

// String returns the name in DynamoDB's JSON, such as "S".
func (k Kind) String() string { return kindNames[k] }

// KindOf returns the kind with a name in DynamoDB's JSON, or 0 if no kind has this name.
func KindOf(name string) Kind { return Kind(max(slices.Index(kindNames[:], name), 0)) }

// Item is an item, a key, or the content of a map.
type Item map[string]Value

// Value is one attribute value. Values are immutable: code that changes an element copies the list
// or map.
type Value struct {
	Kind Kind
	Text string   // Text is a string, a number in decimal notation, or the bytes of a binary value.
	Bool bool     // Bool is the value of a Bool.
	Map  Item     // Map has the elements of a Map.
	List []Value  // List has the elements of a List.
	Set  []string // Set has the elements of a set, in the notation of Text.

	// fault is why the JSON is not a valid value. Validate returns it.
	fault string
}

// NewString returns a string value.
func NewString(text string) Value { return Value{Kind: String, Text: text} }

// NewNumber returns a number value. The text must be a valid number in canonical notation.
func NewNumber(text string) Value { return Value{Kind: Number, Text: text} }

// faults of values, as DynamoDB words them
const (
	faultEmpty   = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
	faultSeveral = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)

// UnmarshalJSONFrom decodes a value, such as {"S":"text"}. It returns an error if the JSON has
// another structure. Validate finds all other faults.
func (v *Value) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*v = Value{fault: faultEmpty}
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		kind := KindOf(name.String())
		if kind == 0 || d.PeekKind() == 'n' {
			if err := d.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if v.Kind != 0 {
			v.fault = faultSeveral
		} else {
			v.fault = ""
		}
		v.Kind = kind
		if err := v.decode(d); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// decode decodes the content of a value of v's kind.
func (v *Value) decode(d *jsontext.Decoder) (err error) {
	switch v.Kind {
	case String, Number, Binary:
		v.Text, err = decodeText(d, v.Kind)
	case Bool, Null:
		var token jsontext.Token
		if token, err = d.ReadToken(); err == nil && token.Kind() != 't' && token.Kind() != 'f' {
			return fmt.Errorf("a value of type %s must be true or false", v.Kind)
		}
		v.Bool = token.Kind() == 't' || v.Kind == Null
	case Map:
		v.Map = Item{}
		err = json.UnmarshalDecode(d, &v.Map)
	case List:
		v.List = []Value{}
		err = json.UnmarshalDecode(d, &v.List)
	default:
		err = v.decodeSet(d)
	}
	return err
}

// decodeSet decodes the elements of a set.
func (v *Value) decodeSet(d *jsontext.Decoder) error {
	v.Set = []string{}
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		text, err := decodeText(d, v.Kind-StringSet+String)
		if err != nil {
			return err
		}
		v.Set = append(v.Set, text)
	}
	return expect(d, ']')
}

// decodeText decodes the JSON string of a String, Number or Binary.
func decodeText(d *jsontext.Decoder, kind Kind) (string, error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", fmt.Errorf("a value of type %s must be a JSON string", kind)
	}
	text := token.String()
	if kind == Binary {
		decoded, err := base64.StdEncoding.DecodeString(text)
		return string(decoded), err
	}
	return text, nil
}

// expect reads one token of a kind.
func expect(d *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := d.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("unexpected JSON %s, expected %s", token.Kind(), kind)
	}
	return err
}

// MarshalJSONTo encodes the value.
func (v Value) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(v.AppendJSON(nil)) }

// AppendJSON appends the value as JSON.
func (v Value) AppendJSON(b []byte) []byte {
	b = append(b, '{', '"')
	b = append(b, v.Kind.String()...)
	b = append(b, '"', ':')
	switch v.Kind {
	case String, Number:
		b = appendText(b, v.Kind, v.Text)
	case Binary:
		b = appendText(b, v.Kind, v.Text)
	case Bool, Null:
		if v.Bool {
			b = append(b, "true"...)
		} else {
			b = append(b, "false"...)
		}
	case Map:
		b = v.Map.AppendJSON(b)
	case List:
		b = append(b, '[')
		for i, e := range v.List {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.AppendJSON(b)
		}
		b = append(b, ']')
	default:
		b = append(b, '[')
		for i, e := range v.Set {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, v.Kind-StringSet+String, e)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendText appends the JSON string of a String, Number or Binary.
func appendText(b []byte, kind Kind, text string) []byte {
	if kind == Binary {
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(text))
		return append(b, '"')
	}
	return AppendQuote(b, text)
}

// AppendQuote appends text as a JSON string. It replaces invalid UTF-8.
func AppendQuote(b []byte, text string) []byte {
	quoted, err := jsontext.AppendQuote(b, text)
	if err != nil {
		quoted, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return quoted
}

// AppendJSON appends the item as a JSON object. The attributes are sorted by name.
func (i Item) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for n, name := range slices.Sorted(maps.Keys(i)) {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(AppendQuote(b, name), ':')
		b = i[name].AppendJSON(b)
	}
	return append(b, '}')
}

// MarshalJSONTo encodes the item.
func (i Item) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(i.AppendJSON(nil)) }

// ParseItem decodes the JSON of a stored item.
func ParseItem(stored []byte) (Item, error) {
	i := Item{}
	d := jsontext.NewDecoder(bytes.NewBuffer(stored), jsontext.AllowDuplicateNames(true))
	return i, json.UnmarshalDecode(d, &i)
}

// MaxNesting is the maximum depth of a value in an item. An attribute's value has the depth 1. A list
// or map of the maximum depth is invalid, even if it is empty.
const MaxNesting = 32

// Normalize validates the item and returns it with canonical numbers. It returns an error with
// DynamoDB's message if a value is invalid.
func (i Item) Normalize() (Item, error) {
	for _, name := range slices.Sorted(maps.Keys(i)) {
		v, err := i[name].normalize(1)
		if err != nil {
			return nil, err
		}
		i[name] = v
	}
	return i, nil
}

// Normalize is like Item.Normalize, for one value.
func (v Value) Normalize() (Value, error) { return v.normalize(1) }

// normalize validates a value at a depth of nesting.
func (v Value) normalize(depth int) (_ Value, err error) {
	if v.fault != "" {
		return v, fmt.Errorf("%s", v.fault)
	}
	if depth >= MaxNesting && (v.Kind == Map || v.Kind == List) {
		return v, fmt.Errorf("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit")
	}
	switch v.Kind {
	case Number:
		v.Text, err = canonical(v.Text)
	case Map:
		for _, name := range slices.Sorted(maps.Keys(v.Map)) {
			if v.Map[name], err = v.Map[name].normalize(depth + 1); err != nil {
				return v, err
			}
		}
	case List:
		for i, e := range v.List {
			if v.List[i], err = e.normalize(depth + 1); err != nil {
				return v, err
			}
		}
	case StringSet, NumberSet, BinarySet:
		return v.normalizeSet()
	}
	return v, err
}

// normalizeSet validates a set.
func (v Value) normalizeSet() (_ Value, err error) {
	if len(v.Set) == 0 {
		return v, fmt.Errorf("One or more parameter values were invalid: %s", map[Kind]string{
			StringSet: "An string set  may not be empty", NumberSet: "An number set  may not be empty", BinarySet: "Binary sets should not be empty",
		}[v.Kind])
	}
	seen := make(map[string]bool, len(v.Set))
	for i, e := range v.Set {
		if v.Kind == NumberSet {
			if e, err = canonical(e); err != nil {
				return v, err
			}
			v.Set[i] = e
		}
		if seen[e] {
			switch v.Kind {
			case NumberSet:
				return v, fmt.Errorf("Input collection contains duplicates")
			case BinarySet:
				return v, fmt.Errorf("One or more parameter values were invalid: Input collection of type BS contains duplicates.")
			}
			return v, fmt.Errorf("One or more parameter values were invalid: Input collection [%s] contains duplicates", strings.Join(v.Set, ", "))
		}
		seen[e] = true
	}
	return v, nil
}

// Equal reports whether two values are equal. Sets are equal if they have the same elements.
func (v Value) Equal(w Value) bool {
	if v.Kind != w.Kind {
		return false
	}
	switch v.Kind {
	case Bool:
		return v.Bool == w.Bool
	case Null:
		return true
	case Map:
		return maps.EqualFunc(v.Map, w.Map, Value.Equal)
	case List:
		return slices.EqualFunc(v.List, w.List, Value.Equal)
	case StringSet, NumberSet, BinarySet:
		return len(v.Set) == len(w.Set) && !slices.ContainsFunc(v.Set, func(e string) bool { return !slices.Contains(w.Set, e) })
	default:
		return v.Text == w.Text
	}
}

// Ordered reports whether values of the kind have an order.
func (k Kind) Ordered() bool { return k == String || k == Number || k == Binary }

// Compare compares two values of the same ordered kind.
func (v Value) Compare(w Value) int {
	if v.Kind == Number {
		return parseDecimal(v.Text).compare(parseDecimal(w.Text))
	}
	return strings.Compare(v.Text, w.Text)
}

// Size returns the size of the item in bytes, by DynamoDB's documented rules.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func (i Item) Size() int {
	n := 0
	for name, v := range i {
		n += len(name) + v.Size()
	}
	return n
}

// Size returns the size of the value in bytes.
func (v Value) Size() int {
	switch v.Kind {
	case Number:
		return parseDecimal(v.Text).size()
	case Bool, Null:
		return 1
	case Map:
		return 3 + len(v.Map) + v.Map.Size()
	case List:
		n := 3 + len(v.List)
		for _, e := range v.List {
			n += e.Size()
		}
		return n
	case StringSet, BinarySet:
		n := 0
		for _, e := range v.Set {
			n += len(e)
		}
		return n
	case NumberSet:
		n := 0
		for _, e := range v.Set {
			n += parseDecimal(e).size()
		}
		return n
	default:
		return len(v.Text)
	}
}

// NewInt returns a number value.
func NewInt(n int) Value { return NewNumber(strconv.Itoa(n)) }
