package wire

import (
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// ObjectWriter builds the JSON object of a response. It copies the JSON of stored items without
// decoding it.
type ObjectWriter struct {
	b     []byte
	comma bool // comma reports whether the next member or element needs a comma before it
}

// NewObjectWriter returns a writer that has already opened the object.
func NewObjectWriter() *ObjectWriter {
	o := &ObjectWriter{b: make([]byte, 0, 512)}
	o.Open()
	return o
}

// Done closes the object of the response and returns its JSON.
func (o *ObjectWriter) Done() []byte {
	o.Close()
	return o.b
}

// Open writes the opening brace of an object.
func (o *ObjectWriter) Open() {
	o.separate()
	o.b = append(o.b, '{')
	o.comma = false
}

// Close writes the closing brace of an object.
func (o *ObjectWriter) Close() {
	o.b = append(o.b, '}')
	o.comma = true
}

func (o *ObjectWriter) separate() {
	if o.comma {
		o.b = append(o.b, ',')
	}
	o.comma = true
}

// BeginMember writes the name of a member. The caller must then write the value.
func (o *ObjectWriter) BeginMember(name string) {
	o.separate()
	o.b = append(attr.AppendQuote(o.b, name), ':')
	o.comma = false
}

// Text adds a member that is a string.
func (o *ObjectWriter) Text(name, value string) {
	o.BeginMember(name)
	o.b = attr.AppendQuote(o.b, value)
	o.comma = true
}

// Int adds a member that is an integer.
func (o *ObjectWriter) Int(name string, value int) {
	o.BeginMember(name)
	o.b = strconv.AppendInt(o.b, int64(value), 10)
	o.comma = true
}

// Float adds a member that is a number.
func (o *ObjectWriter) Float(name string, value float64) {
	o.BeginMember(name)
	o.b = strconv.AppendFloat(o.b, value, 'f', -1, 64)
	o.comma = true
}

// Bool adds a member that is a boolean.
func (o *ObjectWriter) Bool(name string, value bool) {
	o.BeginMember(name)
	o.b = strconv.AppendBool(o.b, value)
	o.comma = true
}

// Raw adds a member whose value is already encoded as JSON.
func (o *ObjectWriter) Raw(name string, value []byte) {
	o.BeginMember(name)
	o.b = append(o.b, value...)
	o.comma = true
}

// Item adds a member that is an item.
func (o *ObjectWriter) Item(name string, value attr.Item) {
	o.BeginMember(name)
	o.b = value.AppendJSON(o.b)
	o.comma = true
}

// Element adds an element to the current list. value is the JSON of the element.
func (o *ObjectWriter) Element(value []byte) {
	o.separate()
	o.b = append(o.b, value...)
}

// Nested adds a member that is an object. It calls members, which must write the members of this
// object.
func (o *ObjectWriter) Nested(name string, members func()) {
	o.BeginMember(name)
	o.Open()
	members()
	o.Close()
}

// List adds a member that is a list of n elements. It calls element for each index, and element
// must write the list element with this index.
func (o *ObjectWriter) List(name string, n int, element func(i int)) {
	o.BeginMember(name)
	o.b = append(o.b, '[')
	o.comma = false
	for i := range n {
		element(i)
	}
	o.b = append(o.b, ']')
	o.comma = true
}

// Value adds a member and encodes its value with json.Marshal.
func (o *ObjectWriter) Value(name string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // json.Marshal fails only for types that no response contains
	}
	o.Raw(name, encoded)
}
