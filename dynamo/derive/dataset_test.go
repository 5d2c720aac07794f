package derive_test

import (
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
)

func money(t testing.TB, amount string, c commerce.Currency) commerce.Money {
	m, err := commerce.ParseMoney(amount, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// smallDataset returns a dataset of two products, three customers, one of them with an account rep,
// and an order in every status. Each order has 2 mugs at 4.50 and 1 lamp at 20.05.
func smallDataset(t testing.TB) commerce.Dataset {
	b := commerce.Dataset{
		Products:  []commerce.Product{{SKU: "mug", UnitPrice: money(t, "5", "USD")}, {SKU: "lamp", UnitPrice: money(t, "20", "USD")}},
		Levels:    []commerce.InventoryLevel{{SKU: "mug", WarehouseID: "w1", Quantity: 10}, {SKU: "mug", WarehouseID: "w2", Quantity: 5}, {SKU: "lamp", WarehouseID: "w1", Quantity: 3}},
		Customers: []commerce.Customer{{ID: "c1", Email: "c1@example.com", AccountRepID: "rep"}, {ID: "c2", Email: "c2@example.com"}, {ID: "c3", Email: "c3@example.com"}},

		Warehouses: []commerce.Warehouse{{ID: "w1"}, {ID: "w2"}},
		Employees:  []commerce.Employee{{ID: "rep", WarehouseID: "w1"}},
	}
	for i, status := range commerce.Statuses() {
		o := commerce.OrderWithItems{Order: commerce.Order{ID: commerce.OrderID("o" + status.String()), CustomerID: "c1", Status: status}}
		if i > 2 {
			o.CustomerID = "c2"
		}
		o.Lines = []commerce.LineItem{{SKU: "mug", Quantity: 2, UnitPrice: money(t, "4.50", "USD")}, {SKU: "lamp", Quantity: 1, UnitPrice: money(t, "20.05", "USD")}}
		b.Orders = append(b.Orders, o)
	}
	return b
}

func TestComplete(t *testing.T) {
	b := smallDataset(t)
	// Previous values of derived fields are ignored.
	b.Products[0].TotalInventory, b.Products[0].Available = 99, 99
	b.Customers[0].OrderCount = new(42)
	for range 2 { // the second call changes nothing
		if err := derive.Complete(&b); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{3, 2, 0} {
			if got := b.Customers[i].OrderCount; got == nil || *got != want {
				t.Errorf("customer %s has %v orders, want %d", b.Customers[i].ID, got, want)
			}
		}
		// The pending and the confirmed order each reserve 2 mugs and 1 lamp.
		for i, want := range [][2]int{{15, 11}, {3, 1}} {
			if got := [2]int{b.Products[i].TotalInventory, b.Products[i].Available}; got != want {
				t.Errorf("%s: total and available quantity %v, want %v", b.Products[i].SKU, got, want)
			}
		}
		for _, o := range b.Orders {
			if o.Total.Decimal() != "29.05" || o.Total.Currency != "USD" {
				t.Errorf("order %s: total %s %s, want 29.05 USD", o.ID, o.Total.Decimal(), o.Total.Currency)
			}
			if o.ItemCount == nil || *o.ItemCount != 2 {
				t.Errorf("order %s: item count %v, want 2", o.ID, o.ItemCount)
			}
			if want := map[commerce.CustomerID]commerce.EmployeeID{"c1": "rep"}[o.CustomerID]; o.AccountRepID != want {
				t.Errorf("order %s of %s: account rep %q, want %q", o.ID, o.CustomerID, o.AccountRepID, want)
			}
			for _, line := range o.Lines {
				if line.OrderID != o.ID || line.CustomerID != o.CustomerID {
					t.Errorf("order %s: item %s belongs to order %q of %q", o.ID, line.SKU, line.OrderID, line.CustomerID)
				}
			}
		}
	}
}

func TestCompleteRejects(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*commerce.Dataset, *commerce.OrderWithItems)
		says  []string
	}{
		{"stock of an unknown product", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Levels[2].SKU = "vase" }, []string{"vase", "w1", "not in the dataset"}},
		{"stock in an unknown warehouse", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Levels[2].WarehouseID = "w9" }, []string{"warehouse w9", "not in the dataset"}},
		{"negative stock", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Levels[2].Quantity = -1 }, []string{"lamp", "negative"}},
		{"a negative price", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Products[0].UnitPrice = money(t, "-1", "USD") }, []string{"mug", "negative"}},
		{"an item of a negative price", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines[0].UnitPrice = money(t, "-1", "USD") }, []string{"oconfirmed", "mug", "negative"}},
		{"an unknown account rep", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Customers[1].AccountRepID = "nobody" }, []string{"c2", "employee nobody"}},
		{"an employee of an unknown warehouse", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Employees[0].WarehouseID = "w9" }, []string{"rep", "warehouse w9"}},
		{"one id twice", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Customers[1].ID = "c1" }, []string{"customer c1", "twice"}},
		{"one email address twice", func(b *commerce.Dataset, _ *commerce.OrderWithItems) { b.Customers[1].Email = "C1@example.com" }, []string{"customer c1 and c2", "c1@example.com"}},
		{"unknown customer", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.CustomerID = "nobody" }, []string{"oconfirmed", "customer nobody"}},
		{"no items", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines = nil }, []string{"oconfirmed", "no items"}},
		{"unknown product", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines[1].SKU = "vase" }, []string{"oconfirmed", "product vase"}},
		{"a product in two items", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines[1].SKU = "mug" }, []string{"oconfirmed", "mug", "two line items"}},
		{"quantity of 0", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines[1].Quantity = 0 }, []string{"oconfirmed", "lamp", "quantity of 0"}},
		{"negative quantity", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines[0].Quantity = -1 }, []string{"oconfirmed", "mug", "quantity of -1"}},
		{"two currencies", func(_ *commerce.Dataset, o *commerce.OrderWithItems) { o.Lines[1].UnitPrice = money(t, "1", "EUR") }, []string{"oconfirmed", "USD", "EUR"}},
		{"a subtotal that is too large", func(_ *commerce.Dataset, o *commerce.OrderWithItems) {
			o.Lines[0].UnitPrice = money(t, "9999999999999999999", "USD")
		}, []string{"oconfirmed", "multiply"}},
		{"a total that is too large", func(_ *commerce.Dataset, o *commerce.OrderWithItems) {
			o.Lines[0].Quantity, o.Lines[0].UnitPrice = 1, money(t, "9999999999999999999", "USD")
		}, []string{"oconfirmed", "add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := smallDataset(t)
			c.spoil(&b, &b.Orders[1])
			err := derive.Complete(&b)
			if err == nil {
				t.Fatal("Complete returned no error")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}
