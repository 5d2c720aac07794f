package model

import (
	"reflect"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Every field of a Go type needs a declared attribute. Otherwise the field would be lost when its
// record is written.
func TestEveryFieldHasAnAttribute(t *testing.T) {
	codecs := []recordCodec{codecFor[commerce.Address](addressAttributes)}
	for _, e := range Entities() {
		if e.codec != nil {
			codecs = append(codecs, e.codec)
		}
	}
	for _, c := range codecs {
		v := c.largest()
		for field, value := range reflect.ValueOf(v).Elem().Fields() {
			switch at := value; {
			case field.Type == reflect.TypeFor[time.Time]():
				at.Set(reflect.ValueOf(time.Date(2026, 2, 1, 9, 30, 0, 0, time.UTC)))
			case field.Type == reflect.TypeFor[commerce.CustomValues]():
				// e2e/customfields tests custom fields.
			case field.Name == "Secret" && field.Type.Kind() == reflect.String: // it is stored only in encrypted form
			case at.IsZero() && field.Name != "Partial" && field.Name != "Malformed": // these describe a record that was read
				t.Errorf("%T.%s has no declared attribute", v, field.Name)
			}
		}
		var lines []commerce.LineItem
		switch v := v.(type) { // a subtotal must not have too many digits, and times are in UTC
		case *commerce.Order:
			lines = v.Items
		case *commerce.LineItem:
			v.Quantity = 1
		case *lastEvent:
			v.At = time.Date(2026, 2, 1, 9, 30, 0, 0, time.UTC)
		}
		for i := range lines {
			lines[i].Quantity = 1
		}
		record := c.encode(v)
		decoded, err := c.decode(&Codec{Currency: "USD"}, Reader{Record: record})
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		if o, ok := decoded.(*commerce.Order); ok { // the items repeat the order ID and the customer ID
			for i := range o.Items {
				o.Items[i].OrderID, o.Items[i].CustomerID, o.Items[i].CustomFields = "", "", commerce.CustomValues{}
			}
		}
		if !reflect.DeepEqual(decoded, v) {
			t.Errorf("%T is decoded to\n%+v\nwant the encoded value\n%+v", v, decoded, v)
		}
		for _, a := range c.describe() {
			if record[a.Name] == nil {
				t.Errorf("%T: the largest record lacks the attribute %s", v, a.Name)
			}
		}
	}
}
