package bench_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
)

// The size of the dataset. Consecutive requests read different records, and the fifty pending
// orders belong to fifty customers.
const (
	customers         = 60
	ordersPerCustomer = 10
	itemsPerOrder     = 3
	products          = 40
	pendingOrders     = 50
)

var firstOrderTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func customerID(n int) commerce.CustomerID {
	return commerce.CustomerID(fmt.Sprintf("customer-%03d", n%customers))
}

// orderID returns the ID of the n-th order.
func orderID(n int) commerce.OrderID {
	n %= customers * ordersPerCustomer
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Append(nil, n))
	copy(id[6:], hash[:])
	if err := id.SetTime(uint64(firstOrderTime.Add(time.Duration(n) * time.Minute).UnixMilli())); err != nil {
		panic(err)
	}
	return commerce.OrderID(id.String())
}

// status returns the status of the n-th order. The pending orders are distributed over all
// customers.
func status(n int) commerce.Status { return commerce.Statuses()[(n+n/customers)%5] }

// pendingOrderID returns the ID of the n-th pending order.
func pendingOrderID(n int) commerce.OrderID {
	for order := 0; ; order++ {
		if status(order) != commerce.Pending {
			continue
		}
		if n == 0 {
			return orderID(order)
		}
		n--
	}
}

func productSKU(n int) commerce.SKU {
	return commerce.SKU(fmt.Sprintf("product-%03d", n%products))
}

// newDataset returns a dataset. Its orders are distributed evenly over the customers, and every
// fifth order is pending.
func newDataset(t testing.TB) commerce.Dataset {
	t.Helper()
	dataset := commerce.Dataset{
		Warehouses: []commerce.Warehouse{{ID: "hall", Name: "Hall", Version: 1}},
		Employees:  []commerce.Employee{{ID: "rep", Name: "Riley Price", JobTitle: "Account Representative", HireDate: "2020-01-01", WarehouseID: "hall", Version: 1}},
	}
	for n := range customers {
		at := firstOrderTime.Add(time.Duration(n-customers) * time.Hour)
		dataset.Customers = append(dataset.Customers, commerce.Customer{
			ID: customerID(n), Name: fmt.Sprintf("Casey Customer %d", n), Email: fmt.Sprintf("casey.%d@example.com", n), PhoneNumbers: []string{"+1-555-0100"},
			AccountRepID: "rep", CreatedAt: at, UpdatedAt: at, Version: 1,
		})
	}
	for n := range products {
		price, err := commerce.ParseMoney(fmt.Sprintf("%d.95", n+5), "USD")
		if err != nil {
			t.Fatal(err)
		}
		sku := productSKU(n)
		dataset.Products = append(dataset.Products, commerce.Product{SKU: sku, Name: fmt.Sprintf("A Useful Thing, No. %d", n), Category: "Things", UnitPrice: price, Version: 1})
		dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: sku, WarehouseID: "hall", Quantity: 10_000, Version: 1})
	}
	for n := range customers * ordersPerCustomer {
		at := firstOrderTime.Add(time.Duration(n) * time.Minute)
		order := commerce.OrderWithItems{Order: commerce.Order{
			ID: orderID(n), CustomerID: customerID(n), Status: status(n), PlacedAt: at, UpdatedAt: at, Version: 1,
		}}
		for i := range itemsPerOrder {
			p := dataset.Products[(n+i*7)%products]
			order.Lines = append(order.Lines, commerce.LineItem{SKU: p.SKU, Name: p.Name, Quantity: 1 + i, UnitPrice: p.UnitPrice})
		}
		dataset.Orders = append(dataset.Orders, order)
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}
