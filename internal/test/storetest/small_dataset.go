package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
)

// FirstOrderTime returns the time at which the first order of SmallDataset was placed: 1 January
// 2026.
func FirstOrderTime() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// ULIDAt returns a ULID with the given time. For the same time, different values of n return
// different ULIDs.
func ULIDAt(at time.Time, n int) string {
	var id ulid.ULID
	id[14], id[15] = byte(n>>8), byte(n)
	if err := id.SetTime(uint64(at.UnixMilli())); err != nil {
		panic(err)
	}
	return id.String()
}

// The orders of SmallDataset.
const (
	// SmallOrderCount is the number of orders.
	SmallOrderCount = 5
	// BigOrderNumber is the number of the order that contains every product.
	BigOrderNumber = 4
)

// SmallOrderID returns the ID of order n of SmallDataset. The first order has the number 0.
func SmallOrderID(n int) string { return ULIDAt(FirstOrderTime().Add(time.Duration(n)*time.Hour), n) }

// SmallDataset returns a dataset with the given number of products. With 30 products, order
// BigOrderNumber has more line items than an order record can embed.
func SmallDataset(t testing.TB, products int) commerce.Dataset {
	t.Helper()
	start := FirstOrderTime()
	dataset := commerce.Dataset{
		Warehouses: []commerce.Warehouse{{ID: "w1", Name: "North", Version: 1}, {ID: "w2", Name: "South", Version: 1}},
		Employees: []commerce.Employee{
			{ID: "e1", Name: "Erin", PhoneNumbers: []string{"1"}, JobTitle: "Rep", HireDate: "2020-01-02", WarehouseID: "w1", Version: 1},
			{ID: "e2", Name: "Emil", PhoneNumbers: []string{"4"}, JobTitle: "Packer", HireDate: "2021-01-02", Version: 1},
		},
		Customers: []commerce.Customer{
			{ID: "c1", Name: "Ann", Email: "Ann@example.com", PhoneNumbers: []string{"2", "3"}, AccountRepID: "e1", CreatedAt: start, UpdatedAt: start, Version: 1},
			{ID: "c2", Name: "Bob", Email: "bob@example.com", PhoneNumbers: []string{"5"}, CreatedAt: start, UpdatedAt: start, Version: 1},
		},
	}
	for i := range products {
		sku := commerce.SKU(fmt.Sprintf("p%02d", i))
		dataset.Products = append(dataset.Products, commerce.Product{SKU: sku, Name: "Thing", Category: "Things", UnitPrice: USD("2.50"), Version: 1})
	}
	for i, id := range []commerce.WarehouseID{"w1", "w2"} {
		dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: "p00", WarehouseID: id, Quantity: 10 + i, Version: 1})
	}
	statuses := []commerce.Status{commerce.Pending, commerce.Confirmed, commerce.Shipped, commerce.Cancelled, commerce.Delivered}
	for n, status := range statuses {
		id := commerce.OrderID(SmallOrderID(n))
		at, _ := id.Time()
		customer := commerce.CustomerID([]string{"c1", "c2"}[n%2])
		o := commerce.OrderWithItems{Order: commerce.Order{ID: id, CustomerID: customer, Status: status, PlacedAt: at, UpdatedAt: at, Version: 3}}
		items := 3
		if n == BigOrderNumber {
			items = products
		} else {
			o.ShippingAddress = &commerce.Address{Recipient: "Ann", Line1: "1 Road", City: "Town", PostalCode: "1", CountryCode: "US"}
		}
		for i := range items {
			o.Lines = append(o.Lines, commerce.LineItem{SKU: commerce.SKU(fmt.Sprintf("p%02d", i)), Name: "Thing", Quantity: i + 1, UnitPrice: USD("2.50")})
		}
		if status == commerce.Shipped {
			o.Lines[2].UnitPrice = USD("0") // a gift
		}
		o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(ULIDAt(at, 1)), OrderID: id, Type: commerce.EventPlaced, To: commerce.Pending, At: at, Actor: "c"})
		if status != commerce.Pending {
			later := at.Add(time.Minute)
			o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(ULIDAt(later, 2)), OrderID: id, Type: commerce.EventType(status.String()), From: commerce.Pending, To: status, At: later, Actor: "c"})
		}
		dataset.Orders = append(dataset.Orders, o)
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

// USD returns an amount in US dollars. It panics if the amount is invalid.
func USD(amount string) commerce.Money {
	m, err := commerce.ParseMoney(amount, "USD")
	if err != nil {
		panic(err)
	}
	return m
}
