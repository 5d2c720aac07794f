// Package attr implements DynamoDB's items and attribute values. It decodes, encodes, validates and
// compares them, and computes their sizes. It also encodes values for the keys of the database
// file. If values have the same type, their encodings sort like the values.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
package attr

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the type of an attribute value.
type Kind byte

// The types of attribute values. The zero Kind is invalid.
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

// kindNames contains the names of the types in DynamoDB's JSON, such as "S" for String.
var kindNames = [...]string{String: "S", Number: "N", Binary: "B", Bool: "BOOL", Null: "NULL", Map: "M", List: "L", StringSet: "SS", NumberSet: "NS", BinarySet: "BS"}

// String returns the name of the type in DynamoDB's JSON, such as "S".
func (k Kind) String() string { return kindNames[k] }

// KindOf returns the type with the given name in DynamoDB's JSON. If no type has this name, KindOf
// returns 0.
func KindOf(name string) Kind { return Kind(max(slices.Index(kindNames[:], name), 0)) }

// Item maps attribute names to values. An Item represents a complete item, a key, or the content of
// a Map value.
type Item map[string]Value

// Value is one attribute value. After Normalize, a value is immutable. Code that changes an element
// must first copy the list or map that contains the element.
type Value struct {
	Kind Kind
	Bool bool // Bool is the content of a Bool or Null.
	// fault is the reason why the JSON of the value is invalid, or 0 if it is valid. If fault is
	// not 0, Normalize returns an error.
	fault jsonFault
	Text  string   // Text is the content of a String, Number or Binary.
	Map   Item     // Map contains the elements of a Map.
	List  []Value  // List contains the elements of a List.
	Set   []string // Set contains the elements of a set. Each element has the same form as Text.
}

// NewNumber returns a Number. text must be in canonical notation, such as "0.5".
func NewNumber(text string) Value { return Value{Kind: Number, Text: text} }

// jsonFault is the reason why the JSON of a value is invalid.
type jsonFault byte

const (
	faultEmpty jsonFault = iota + 1
	faultNull
	faultSeveral
)

// faultMessages contains DynamoDB's error message for each fault.
var faultMessages = [...]string{
	faultEmpty:   "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
	faultNull:    "One or more parameter values were invalid: Null attribute value types must have the value of true",
	faultSeveral: "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
}

// ValueError is an error about an invalid value. DynamoDB has two wordings for the same error.
// BatchWriteItem, Scan and transactions use the older wording. All other operations use the current
// wording.
type ValueError struct{ current, older string }

// Error returns the error in the current wording.
func (e *ValueError) Error() string { return e.current }

// OlderMessage returns err in DynamoDB's older wording. If err has only one wording, OlderMessage
// returns err unchanged.
func OlderMessage(err error) error {
	if e, ok := errors.AsType[*ValueError](err); ok && e.older != "" {
		return errors.New(e.older)
	}
	return err
}

// MarshalJSONTo encodes the value.
func (v Value) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(v.AppendJSON(nil)) }

// AppendJSON appends the value to b as JSON, such as {"S":"text"}.
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

// appendText appends the content of a String, Number or Binary to b as a JSON string. It encodes
// the bytes of a Binary in base64.
func appendText(b []byte, kind Kind, text string) []byte {
	if kind == Binary {
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(text))
		return append(b, '"')
	}
	return AppendQuote(b, text)
}

// AppendQuote appends text to b as a JSON string. It replaces invalid UTF-8 with U+FFFD.
func AppendQuote(b []byte, text string) []byte {
	plain := true
	for i := 0; i < len(text) && plain; i++ {
		c := text[i]
		plain = ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\'
	}
	if plain {
		return append(append(append(b, '"'), text...), '"')
	}
	quoted, err := jsontext.AppendQuote(b, text)
	if err != nil {
		quoted, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return quoted
}

// AppendJSON appends the item to b as a JSON object. The attributes are sorted by name.
func (i Item) AppendJSON(b []byte) []byte {
	var array [32]string // avoid an allocation, because most items have fewer attributes
	names := slices.AppendSeq(array[:0], maps.Keys(i))
	slices.Sort(names)
	b = append(b, '{')
	for n, name := range names {
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

// MaxNesting is the maximum depth of a nested value. The value of a top-level attribute has depth
// 1. A list or map at the maximum depth is invalid, even if it is empty.
const MaxNesting = 32

// maxNameBytes is the maximum length of an attribute name or map key.
const maxNameBytes = 1<<16 - 1

// The errors for an item that is nested too deeply, and for an attribute with an invalid name.
var (
	errNesting   = errors.New("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit")
	errEmptyName = errors.New("Empty attribute name")
	errLongName  = fmt.Errorf("Attribute name is too large, must be less than %d bytes", maxNameBytes+1)
)

// CheckName returns an error if an attribute name or map key is empty or too long.
func CheckName(name string) error {
	switch {
	case name == "":
		return errEmptyName
	case len(name) > maxNameBytes:
		return errLongName
	}
	return nil
}

// Normalize validates the item, converts numbers to canonical notation and sorts sets. It modifies
// the item and returns the same item. If a value is invalid, Normalize returns an error with
// DynamoDB's message.
func (i Item) Normalize() (Item, error) { return i, i.normalize(1, MaxNesting) }

// normalize validates and normalizes the values of an item or map at the given depth. If several
// values are invalid, it returns the error of the alphabetically first attribute.
func (i Item) normalize(depth, limit int) error {
	if _, ok := i[""]; ok {
		return errEmptyName
	}
	first, failed := "", error(nil)
	for name, v := range i {
		normal, err := v.normalize(depth, limit)
		if len(name) > maxNameBytes {
			err = errLongName
		}
		switch {
		case err != nil && (failed == nil || name < first):
			first, failed = name, err
		case err == nil && v.Kind != String: // a String does not change
			i[name] = normal
		}
	}
	return failed
}

// Normalize is like Item.Normalize, but for one value.
func (v Value) Normalize() (Value, error) { return v.normalize(1, MaxNesting) }

// NormalizeOperand is like Normalize, but the maximum depth is MaxNesting + 1. DynamoDB allows this
// depth for expression values in a Scan or a transaction.
func (v Value) NormalizeOperand() (Value, error) { return v.normalize(1, MaxNesting+1) }

// normalize validates and normalizes a value. depth is the nesting depth of the value, and limit is
// the maximum depth.
func (v Value) normalize(depth, limit int) (_ Value, err error) {
	if v.fault != 0 {
		return v, errors.New(faultMessages[v.fault])
	}
	if depth > limit || depth == limit && (v.Kind == Map || v.Kind == List) {
		return v, errNesting
	}
	switch v.Kind {
	case Number:
		v.Text, err = canonicalNumber(v.Text)
	case Map:
		err = v.Map.normalize(depth+1, limit)
	case List:
		for i, e := range v.List {
			if v.List[i], err = e.normalize(depth+1, limit); err != nil {
				return v, err
			}
		}
	case StringSet, NumberSet, BinarySet:
		return v.normalizeSet()
	}
	return v, err
}

// normalizeSet validates a set, normalizes its numbers and sorts it.
func (v Value) normalizeSet() (_ Value, err error) {
	if len(v.Set) == 0 {
		return v, fmt.Errorf("One or more parameter values were invalid: %s", map[Kind]string{
			StringSet: "An string set  may not be empty", NumberSet: "An number set  may not be empty", BinarySet: "Binary sets should not be empty",
		}[v.Kind])
	}
	seen := make(map[string]bool, len(v.Set))
	for i, e := range v.Set {
		if v.Kind == NumberSet {
			if e, err = canonicalNumber(e); err != nil {
				return v, err
			}
			v.Set[i] = e
		}
		if seen[e] {
			return v, v.duplicateError(i)
		}
		seen[e] = true
	}
	return NewSet(v.Kind, v.Set), nil
}

// duplicateError returns the error for a set in which element i equals an earlier element.
// DynamoDB's current wording quotes the elements, and sorts the elements before element i. The
// older wording does neither.
func (v Value) duplicateError(i int) error {
	const prefix = "One or more parameter values were invalid: Input collection "
	if v.Kind == NumberSet {
		return &ValueError{prefix + "contains duplicates.", "Input collection contains duplicates"}
	}
	suffix, separator := " contains duplicates.", ", "
	text := func(e string) string { return e }
	if v.Kind == BinarySet {
		suffix, separator = "of type BS contains duplicates.", ","
		text = func(e string) string { return base64.StdEncoding.EncodeToString([]byte(e)) }
	}
	sent := make([]string, len(v.Set))
	quoted := make([]string, len(v.Set))
	for n, e := range slices.Concat(slices.Sorted(slices.Values(v.Set[:i])), v.Set[i:]) {
		sent[n] = text(v.Set[n])
		quoted[n] = strconv.Quote(text(e))
	}
	return &ValueError{
		current: prefix + "[" + strings.Join(quoted, separator) + "]" + suffix,
		older:   prefix + "[" + strings.Join(sent, ", ") + "]" + suffix,
	}
}

// NewSet sorts the elements and returns a set that contains them. It sorts numbers by value, and
// other elements by their bytes. Numbers must be in canonical notation.
func NewSet(kind Kind, elements []string) Value {
	if kind == NumberSet {
		slices.SortFunc(elements, func(a, b string) int { return parseDecimal(a).compare(parseDecimal(b)) })
	} else {
		slices.Sort(elements)
	}
	return Value{Kind: kind, Set: elements}
}

// Equal reports whether two values are equal. Two sets are equal if they have the same elements.
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

// Ordered reports whether values of this type have an order. Only such values can be keys or
// operands of "<".
func (k Kind) Ordered() bool { return k == String || k == Number || k == Binary }

// Compare compares two values of the same ordered type (see Ordered). The result is negative if v <
// w, 0 if v equals w, and positive if v > w.
func (v Value) Compare(w Value) int {
	if v.Kind == Number {
		return parseDecimal(v.Text).compare(parseDecimal(w.Text))
	}
	return strings.Compare(v.Text, w.Text)
}

// Size returns the size of the item in bytes, as DynamoDB calculates it.
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

// NewInt returns a Number with the value n.
func NewInt(n int) Value { return NewNumber(strconv.Itoa(n)) }
