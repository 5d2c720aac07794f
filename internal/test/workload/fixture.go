package workload

import (
	"fmt"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
)

// Fixture describes a small dataset without orders. The customers have the IDs c0, c1 and so on.
// The IDs of products begin with p, the IDs of warehouses with w, and the IDs of employees with e.
// Every warehouse has Stock units of every product, and its stock is low below ReorderPoint units.
type Fixture struct{ Customers, Products, Warehouses, Employees, Stock, ReorderPoint int }

// Dataset returns the dataset that the Fixture describes.
func (w Fixture) Dataset(t testing.TB) commerce.Dataset {
	t.Helper()
	var b commerce.Dataset
	for i := range w.Warehouses {
		b.Warehouses = append(b.Warehouses, commerce.Warehouse{ID: commerce.WarehouseID(fmt.Sprintf("w%d", i)), Name: fmt.Sprintf("Warehouse %d", i), Version: 1})
	}
	for i := range w.Employees {
		e := commerce.Employee{ID: commerce.EmployeeID(fmt.Sprintf("e%d", i)), Name: fmt.Sprintf("Employee %d", i), JobTitle: "Clerk", HireDate: "2024-01-02", Version: 1}
		if i < w.Warehouses {
			e.WarehouseID = b.Warehouses[i].ID
		}
		b.Employees = append(b.Employees, e)
	}
	for i := range w.Products {
		price, err := commerce.ParsePrice(fmt.Sprintf("%d.50", i+1), "USD")
		if err != nil {
			t.Fatal(err)
		}
		b.Products = append(b.Products, commerce.Product{SKU: commerce.SKU(fmt.Sprintf("p%d", i)), Name: fmt.Sprintf("Product %d", i), Category: "Things", UnitPrice: price, Version: 1})
		for _, at := range b.Warehouses {
			b.Levels = append(b.Levels, commerce.InventoryLevel{SKU: b.Products[i].SKU, WarehouseID: at.ID, Quantity: w.Stock, ReorderPoint: w.ReorderPoint, Version: 1})
		}
	}
	for i := range w.Customers {
		c := commerce.Customer{ID: commerce.CustomerID(fmt.Sprintf("c%d", i)), Name: fmt.Sprintf("Customer %d", i), Email: fmt.Sprintf("c%d@example.com", i), Version: 1}
		if i > 0 && w.Employees > 0 {
			c.AccountRepID = b.Employees[i%w.Employees].ID
		}
		b.Customers = append(b.Customers, c)
	}
	if err := derive.Complete(&b); err != nil {
		t.Fatal(err)
	}
	return b
}
