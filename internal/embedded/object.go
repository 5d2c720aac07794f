package embedded

import (
	"bytes"
	"context"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

// decoded returns an operation that decodes its request's JSON. The request's type has the names of
// DynamoDB's parameters.
func decoded[In any](operation func(*Store, context.Context, *In) ([]byte, error)) func(*Store, context.Context, []byte) ([]byte, error) {
	return func(s *Store, ctx context.Context, request []byte) ([]byte, error) {
		in := new(In)
		if err := json.UnmarshalRead(bytes.NewBuffer(request), in, jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, &failure{kind: codeSerialized, message: err.Error()}
		}
		return operation(s, ctx, in)
	}
}

// object builds the JSON of a response. Stored items are copied into it without being decoded.
type object struct {
	b     []byte
	comma bool // comma reports whether a comma precedes the next member or element
}

// newObject returns an object whose first brace is open.
func newObject() *object {
	o := &object{b: make([]byte, 0, 512)}
	o.open()
	return o
}

// done closes the object and returns its JSON.
func (o *object) done() []byte {
	o.close()
	return o.b
}

// open begins an object.
func (o *object) open() {
	o.separate()
	o.b = append(o.b, '{')
	o.comma = false
}

// close ends an object.
func (o *object) close() {
	o.b = append(o.b, '}')
	o.comma = true
}

func (o *object) separate() {
	if o.comma {
		o.b = append(o.b, ',')
	}
	o.comma = true
}

// name begins a member.
func (o *object) name(name string) {
	o.separate()
	o.b = append(attr.AppendQuote(o.b, name), ':')
	o.comma = false
}

func (o *object) text(name, value string) {
	o.name(name)
	o.b = attr.AppendQuote(o.b, value)
	o.comma = true
}

func (o *object) int(name string, value int) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, int64(value), 10)
	o.comma = true
}

func (o *object) float(name string, value float64) {
	o.name(name)
	o.b = strconv.AppendFloat(o.b, value, 'f', -1, 64)
	o.comma = true
}

func (o *object) bool(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
	o.comma = true
}

// raw adds a member whose value is JSON.
func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.b = append(o.b, value...)
	o.comma = true
}

func (o *object) item(name string, value attr.Item) {
	o.name(name)
	o.b = value.AppendJSON(o.b)
	o.comma = true
}

// element adds an element that is JSON to a list.
func (o *object) element(value []byte) {
	o.separate()
	o.b = append(o.b, value...)
}

// nested adds a member that is an object.
func (o *object) nested(name string, members func()) {
	o.name(name)
	o.open()
	members()
	o.close()
}

// list adds a member that is a list. element adds each element.
func (o *object) list(name string, n int, element func(i int)) {
	o.name(name)
	o.b = append(o.b, '[')
	o.comma = false
	for i := range n {
		element(i)
	}
	o.b = append(o.b, ']')
	o.comma = true
}

// value adds a member that is encoded by reflection.
func (o *object) value(name string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // the types of responses can be encoded
	}
	o.raw(name, encoded)
}
