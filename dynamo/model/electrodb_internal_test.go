package model

import "testing"

func TestParseElectroDB(t *testing.T) {
	m, ok := ParseElectroDB("1,order=2,customerOrder=Order:3")
	if !ok {
		t.Fatal("the text is invalid")
	}
	for e, want := range map[*Entity][2]string{&EntityCustomer: {"customer", "1"}, &EntityOrder: {"order", "2"}, &EntityCustomerOrder: {"Order", "3"}} {
		if r := m.identify(e, Record{}); TextOf(r, "__edb_e__") != want[0] || TextOf(r, "__edb_v__") != want[1] {
			t.Errorf("%s is %v, want %v", e.Name, r, want)
		}
	}
	for _, text := range []string{"", ",order=1", "order=1", "1,", "1,order", "1,order=", "1,order=:1", "1,order=Order:", "1,cart=1", "Order:1"} {
		if _, ok := ParseElectroDB(text); ok {
			t.Errorf("%q is valid", text)
		}
	}
}
