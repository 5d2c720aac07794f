package storetest

import (
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
)

// MutationDataset returns a dataset for tests of mutations. created is the time at which the
// customers were created.
func MutationDataset(t testing.TB, created time.Time) commerce.Dataset {
	t.Helper()
	price := func(amount string, c commerce.Currency) commerce.Money {
		m, err := commerce.ParseMoney(amount, c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return commerce.Dataset{
		Warehouses: []commerce.Warehouse{{ID: "north", Name: "North", Version: 1}, {ID: "south", Name: "South", Version: 1}},
		Employees: []commerce.Employee{
			{ID: "rita", Name: "Rita", JobTitle: "Account Rep", HireDate: "2020-01-01", PhoneNumbers: []string{"+1-555-0100"}, Version: 1},
			{ID: "sam", Name: "Sam", JobTitle: "Packer", HireDate: "2021-01-01", WarehouseID: "north", PhoneNumbers: []string{"+1-555-0101"}, Version: 1},
		},
		Products: []commerce.Product{
			{SKU: "mug", Name: "Mug", Category: "Kitchen", UnitPrice: price("7.50", "USD"), Version: 1},
			{SKU: "plate", Name: "Plate", Category: "Kitchen", UnitPrice: price("12.00", "USD"), Version: 1},
			// The product none has no stock.
			{SKU: "none", Name: "Nothing", Category: "Kitchen", UnitPrice: price("1.00", "USD"), Version: 1},
			{SKU: "yen", Name: "Yen", Category: "Import", UnitPrice: price("500", "JPY"), Version: 1},
		},
		Levels: []commerce.InventoryLevel{
			{SKU: "mug", WarehouseID: "north", Quantity: 100, Version: 1}, {SKU: "mug", WarehouseID: "south", Quantity: 2, Version: 1},
			{SKU: "plate", WarehouseID: "north", Quantity: 50, Version: 1}, {SKU: "yen", WarehouseID: "north", Quantity: 10, Version: 1},
		},
		Customers: []commerce.Customer{
			{ID: "ann", Name: "Ann", Email: "Ann@example.com", PhoneNumbers: []string{"+1-555-0001"}, AccountRepID: "rita", CreatedAt: created, UpdatedAt: created, Version: 1},
			{ID: "bob", Name: "Bob", Email: "bob@example.com", CreatedAt: created, UpdatedAt: created, Version: 1},
		},
	}
}
