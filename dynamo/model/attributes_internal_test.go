package model

import (
	"reflect"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// Every field of a commerce type needs a declared attribute. Otherwise the field would be lost when
// its record is written.
func TestEveryFieldIsInItsRecord(t *testing.T) {
	codec := &Codec{Currency: "USD", Shards: 1}
	everyFieldIsInItsRecord(t, customerAttributes, codec.DecodeCustomer)
	everyFieldIsInItsRecord(t, productAttributes, codec.DecodeProduct)
	everyFieldIsInItsRecord(t, inventoryLevelAttributes, DecodeInventoryLevel)
	everyFieldIsInItsRecord(t, warehouseAttributes, DecodeWarehouse)
	everyFieldIsInItsRecord(t, employeeAttributes, DecodeEmployee)
	everyFieldIsInItsRecord(t, eventAttributes, DecodeEvent)
	everyFieldIsInItsRecord(t, orderItemAttributes, codec.DecodeOrderItem)
	everyFieldIsInItsRecord(t, func(a *attributes, o *commerce.Order) {
		parts := orderParts{order: *o}
		orderAttributes(a, &parts)
		*o = parts.order
	}, codec.DecodeOrder)
	everyFieldIsInItsRecord(t, addressAttributes, func(r Reader) (*commerce.Address, error) {
		a, v := attributes{Reader: r}, &commerce.Address{}
		addressAttributes(&a, v)
		return v, a.Err()
	})
	type flagged struct{ Flag bool }
	declare := func(a *attributes, v *flagged) { a.flag("flag", &v.Flag) }
	everyFieldIsInItsRecord(t, declare, func(r Reader) (*flagged, error) {
		a, v := attributes{Reader: r}, &flagged{}
		declare(&a, v)
		return v, a.Err()
	})
}

func everyFieldIsInItsRecord[V any](t *testing.T, declare func(*attributes, *V), decode func(Reader) (*V, error)) {
	t.Helper()
	v := largest(declare)
	for field, value := range reflect.ValueOf(&v).Elem().Fields() {
		if at, ok := value.Addr().Interface().(*time.Time); ok {
			*at = time.Date(2026, 2, 1, 9, 30, 0, 0, time.UTC)
		} else if value.IsZero() && field.Name != "Partial" { // Partial describes a record that was read
			t.Errorf("%T.%s has no declared attribute", v, field.Name)
		}
	}
	record := written(declare, v)
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
		t.Errorf("%T is read as\n%+v\nand was written as\n%+v", v, *decoded, v)
	}
	for _, a := range described(declare) {
		if record[a.Name] == nil {
			t.Errorf("%T: the largest record lacks the attribute %s", v, a.Name)
		}
	}
}
