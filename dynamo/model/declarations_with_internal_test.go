package model

import (
	"maps"
	"reflect"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
)

// The sizes and the load with custom fields are the same if the process declares the fields.
func TestDeclarationsWith(t *testing.T) { //nolint:paralleltest // it declares custom fields
	fields := map[string][]commerce.CustomField{
		"Order":     {{Name: "channel", Type: commerce.CustomString, MaxLength: 20, ListQuery: "ordersByChannel"}, {Name: "gift", Type: commerce.CustomBoolean}},
		"OrderItem": {{Name: "engraving", Type: commerce.CustomString, MaxLength: 100}},
		"Customer":  {{Name: "vatId", Type: commerce.CustomString, MaxLength: 20, LookupQuery: "customerByVatId"}},
		"Product":   {{Name: "brand", Type: commerce.CustomString, MaxLength: 50, ListQuery: "productsByBrand"}},
	}
	before := DeclaredInProcess()
	with := DeclarationsWith(fields)
	sizes, load := with.MaxRecordSizes(), with.OrderLoad(nil)
	if maps.Equal(sizes, before.MaxRecordSizes()) || sizes["orderList.channel"] == 0 || sizes["order"] < before.MaxRecordSizes()["order"]+commerce.MaxEmbeddedItems*100 {
		t.Errorf("custom fields do not change the sizes: %v", sizes)
	}
	restore := DeclareCustomFields(fields)
	t.Cleanup(func() { restore() })
	declared := DeclaredInProcess()
	if got := declared.MaxRecordSizes(); !maps.Equal(got, sizes) {
		t.Errorf("sizes %v, want %v", sizes, got)
	}
	if got := declared.OrderLoad(nil); len(got) != len(load) {
		t.Errorf("load %v, want %v", load, got)
	}
	without := DeclarationsWith(nil)
	if got, want := without.MaxRecordSizes(), before.MaxRecordSizes(); !maps.Equal(got, want) {
		t.Errorf("sizes without fields %v, want %v", got, want)
	}
	for i, e := range without.Entities {
		got, _ := without.AttributesOf(e)
		want, _ := before.AttributesOf(before.Entities[i])
		if !reflect.DeepEqual(got, want) {
			t.Errorf("attributes of %s: %v, want %v", e.Name, got, want)
		}
	}
}
