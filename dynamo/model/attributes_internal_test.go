package model

import (
	"reflect"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Every field of a commerce type needs a declared attribute. Otherwise the field would be lost when
// its record is written.
func TestEveryFieldHasAnAttribute(t *testing.T) {
	codec := &Codec{Currency: "USD", Shards: 1}
	testFieldsHaveAttributes(t, customerAttributes, codec.DecodeCustomer)
	testFieldsHaveAttributes(t, productAttributes, codec.DecodeProduct)
	testFieldsHaveAttributes(t, inventoryLevelAttributes, DecodeInventoryLevel)
	testFieldsHaveAttributes(t, warehouseAttributes, DecodeWarehouse)
	testFieldsHaveAttributes(t, employeeAttributes, DecodeEmployee)
	testFieldsHaveAttributes(t, eventAttributes, DecodeEvent)
	testFieldsHaveAttributes(t, func(a *attributeVisitor, i *commerce.LineItem) {
		if orderItemAttributes(a, i); a.mode == modeMaximizing {
			i.Quantity = 1 // the subtotal must not have too many digits
		}
	}, codec.DecodeOrderItem)
	testFieldsHaveAttributes(t, func(a *attributeVisitor, o *commerce.Order) {
		parts := orderWithOptionalFields{order: *o}
		orderAttributes(a, &parts)
		*o = parts.order
		for i := range o.Items {
			o.Items[i].Quantity = min(o.Items[i].Quantity, 1)
		}
	}, codec.DecodeOrder)
	testFieldsHaveAttributes(t, addressAttributes, func(r Reader) (*commerce.Address, error) {
		a, v := attributeVisitor{Reader: r}, &commerce.Address{}
		addressAttributes(&a, v)
		return v, a.Err()
	})
	type flagged struct{ Flag bool }
	declare := func(a *attributeVisitor, v *flagged) { a.flag("flag", &v.Flag) }
	testFieldsHaveAttributes(t, declare, func(r Reader) (*flagged, error) {
		a, v := attributeVisitor{Reader: r}, &flagged{}
		declare(&a, v)
		return v, a.Err()
	})
}

func testFieldsHaveAttributes[V any](t *testing.T, declare func(*attributeVisitor, *V), decode func(Reader) (*V, error)) {
	t.Helper()
	v := largestValue(declare)
	for field, value := range reflect.ValueOf(&v).Elem().Fields() {
		if at, ok := value.Addr().Interface().(*time.Time); ok {
			*at = time.Date(2026, 2, 1, 9, 30, 0, 0, time.UTC)
		} else if value.IsZero() && field.Name != "Partial" && field.Name != "Malformed" { // these describe a record that was read
			t.Errorf("%T.%s has no declared attribute", v, field.Name)
		}
	}
	record := encode(declare, v)
	decoded, err := decode(Reader{Record: record})
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	// The items of an order repeat its order ID and customer ID.
	if o, ok := any(decoded).(*commerce.Order); ok {
		for i := range o.Items {
			o.Items[i].OrderID, o.Items[i].CustomerID = "", ""
		}
	}
	if !reflect.DeepEqual(*decoded, v) {
		t.Errorf("%T is decoded to\n%+v\nwant the encoded value\n%+v", v, *decoded, v)
	}
	for _, a := range describeAttributes(declare) {
		if record[a.Name] == nil {
			t.Errorf("%T: the largest record lacks the attribute %s", v, a.Name)
		}
	}
}
