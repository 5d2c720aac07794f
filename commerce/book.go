package commerce

import (
	"fmt"
	"strings"
)

// Book is a whole order book at one moment, small enough to be held in memory, such as sample data.
type Book struct {
	Employees  []Employee
	Warehouses []Warehouse
	Products   []Product
	Levels     []InventoryLevel
	Customers  []Customer
	Orders     []OrderWithItems
	// Spending follows from the orders.
	Spending []Spending
}

// OrderWithItems is an order with all of its items, also where it is too large to carry them, and
// its events.
type OrderWithItems struct {
	Order
	Lines  []LineItem
	Events []Event
}

// Settle works out what follows from the rest of the book: orders' totals, counts, account reps and
// times, customers' order counts and spending, products' stock.
//
// Errors: one around an InvalidError where two records have one id or two customers one e-mail
// address, where a record refers to one that is not in the book, where a quantity or price is
// negative, or where an order mixes currencies or has no items.
func (b *Book) Settle() error {
	if err := b.check(); err != nil {
		return err
	}
	products := map[SKU]*Product{}
	for i := range b.Products {
		p := &b.Products[i]
		p.TotalInventory, p.Available = 0, 0
		products[p.SKU] = p
	}
	for _, l := range b.Levels {
		p := products[l.SKU]
		p.TotalInventory += l.Quantity
		p.Available += l.Quantity
	}
	customers := map[CustomerID]*Customer{}
	for i := range b.Customers {
		c := &b.Customers[i]
		c.OrderCount, c.SpendingComplete = new(int), true
		customers[c.ID] = c
	}
	spent := map[CustomerID]Spendings{}
	for i := range b.Orders {
		o := &b.Orders[i]
		err := o.settle(customers, products)
		if err == nil {
			if spent[o.CustomerID] == nil {
				spent[o.CustomerID] = Spendings{}
			}
			err = spent[o.CustomerID].Add(o.Order)
		}
		if err != nil {
			return fmt.Errorf("order %s: %w", o.ID, err)
		}
	}
	b.Spending = nil
	for _, c := range b.Customers {
		b.Spending = append(b.Spending, spent[c.ID].Sorted()...)
	}
	return nil
}

// check returns an error if an ID is used twice or a reference has no target.
func (b *Book) check() error {
	seen := map[string]bool{}
	var problem error
	once := func(kind, id string) {
		if seen[kind+" "+id] && problem == nil {
			problem = fmt.Errorf("%s %s: %w", kind, id, Invalid("stands in the book twice"))
		}
		seen[kind+" "+id] = true
	}
	refer := func(from, kind, id string) {
		if !seen[kind+" "+id] && problem == nil {
			problem = fmt.Errorf("%s: %w", from, Invalid("refers to %s %s, which is not in the book", kind, id))
		}
	}
	notNegative := func(from string, negative bool) {
		if negative && problem == nil {
			problem = fmt.Errorf("%s: %w", from, Invalid("is negative"))
		}
	}
	for _, w := range b.Warehouses {
		once("warehouse", string(w.ID))
	}
	for _, e := range b.Employees {
		once("employee", string(e.ID))
		if e.WarehouseID != "" {
			refer("employee "+string(e.ID), "warehouse", string(e.WarehouseID))
		}
	}
	for _, p := range b.Products {
		once("product", string(p.SKU))
		notNegative("price of product "+string(p.SKU), p.UnitPrice.Amount.IsNeg())
	}
	for _, l := range b.Levels {
		of := fmt.Sprintf("inventory of product %s in warehouse %s", l.SKU, l.WarehouseID)
		refer(of, "product", string(l.SKU))
		refer(of, "warehouse", string(l.WarehouseID))
		notNegative(of, l.Quantity < 0)
	}
	for _, c := range b.Customers {
		once("customer", string(c.ID))
		once("e-mail address", strings.ToLower(c.Email))
		if c.AccountRepID != "" {
			refer("customer "+string(c.ID), "employee", string(c.AccountRepID))
		}
	}
	for _, o := range b.Orders {
		once("order", string(o.ID))
	}
	return problem
}

func (o *OrderWithItems) settle(customers map[CustomerID]*Customer, products map[SKU]*Product) error {
	customer := customers[o.CustomerID]
	if customer == nil {
		return Invalid("customer %s is not in the book", o.CustomerID)
	}
	if len(o.Lines) == 0 {
		return Invalid("has no items")
	}
	*customer.OrderCount++
	o.AccountRepID = customer.AccountRepID
	o.Total = Money{Currency: o.Lines[0].UnitPrice.Currency}
	seen := map[SKU]bool{}
	for i := range o.Lines {
		line := &o.Lines[i]
		product := products[line.SKU]
		if product == nil {
			return Invalid("product %s is not in the book", line.SKU)
		}
		if seen[line.SKU] {
			return Invalid("product %s stands in two items", line.SKU)
		}
		if line.Quantity < 1 {
			return Invalid("item %s has a quantity of %d", line.SKU, line.Quantity)
		}
		if line.UnitPrice.Amount.IsNeg() {
			return Invalid("item %s has a negative price", line.SKU)
		}
		if line.UnitPrice.Currency != o.Total.Currency {
			return Invalid("item %s is in %s, the first in %s: an order has one currency", line.SKU, line.UnitPrice.Currency, o.Total.Currency)
		}
		seen[line.SKU] = true
		line.OrderID, line.CustomerID = o.ID, o.CustomerID
		subtotal, err := line.Subtotal()
		if err != nil {
			return err
		}
		if o.Total, err = o.Total.Plus(subtotal); err != nil {
			return err
		}
		if o.Status.Reserves() {
			product.Available -= line.Quantity
		}
	}
	n := len(o.Lines)
	o.ItemCount = &n
	for _, event := range o.Events {
		if event.At.After(o.UpdatedAt) {
			o.UpdatedAt = event.At // every event is a change of the order
		}
	}
	return nil
}
