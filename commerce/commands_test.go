package commerce_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// The JSON form identifies a request that is repeated with an idempotency key, even after an update
// of the server. It must not change.
func TestTheJSONFormOfRecordsThatAreCommands(t *testing.T) {
	price, err := commerce.ParsePrice("29.99", "USD")
	if err != nil {
		t.Fatal(err)
	}
	n, at := 3, time.Date(2026, 2, 1, 9, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		command any
		form    string
	}{
		{commerce.Customer{Name: "N", Email: "n@example.com"}, `{"Name":"N","Email":"n@example.com"}`},
		{commerce.Customer{ID: "c1", Name: "N", Email: "n@example.com", PhoneNumbers: []string{"1"}, AccountRepID: "e1", OrderCount: &n, CreatedAt: at, UpdatedAt: at, Version: 7},
			`{"ID":"c1","Name":"N","Email":"n@example.com","PhoneNumbers":["1"],"AccountRepID":"e1"}`},
		{commerce.Product{SKU: "p1", Name: "N", Category: "C", UnitPrice: price, TotalInventory: 1, Available: 2, Version: 3},
			`{"SKU":"p1","Name":"N","Category":"C","UnitPrice":{"Amount":"29.99","Currency":"USD"}}`},
		{commerce.Warehouse{ID: "w1", Name: "N", Version: 1}, `{"ID":"w1","Name":"N"}`},
		{commerce.Employee{Name: "N", JobTitle: "J", HireDate: "2026-01-01"}, `{"Name":"N","JobTitle":"J","HireDate":"2026-01-01"}`},
		{commerce.Employee{ID: "e1", Name: "N", JobTitle: "J", HireDate: "2026-01-01", WarehouseID: "w1", PhoneNumbers: []string{"1"}, Version: 2},
			`{"ID":"e1","Name":"N","JobTitle":"J","HireDate":"2026-01-01","WarehouseID":"w1","PhoneNumbers":["1"]}`},
	} {
		form, err := json.Marshal(c.command)
		if err != nil || string(form) != c.form {
			t.Errorf("%+v has the form %s, %v; want %s", c.command, form, err, c.form)
		}
	}
}
