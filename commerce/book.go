package commerce

import "fmt"

// Book is a whole order book at one moment, small enough to be held in memory, such as sample data.
type Book struct {
	Employees  []Employee
	Warehouses []Warehouse
	Products   []Product
	Levels     []InventoryLevel
	Customers  []Customer
	Orders     []OrderWithItems
}

// OrderWithItems is an order with all of its items, also where it is too large to carry them, and its events.
type OrderWithItems struct {
	Order
	Lines  []LineItem
	Events []Event
}

// Settle works out what follows from the rest of the book: orders' totals, counts, account reps and times, customers'
// order counts, products' stock.
//
// Errors: InvalidError where an order refers to a customer or product that is not in the book, mixes currencies, or has
// no items.
func (b *Book) Settle() error {
	products := map[SKU]*Product{}
	for i := range b.Products {
		p := &b.Products[i]
		p.TotalInventory, p.Available = 0, 0
		products[p.SKU] = p
	}
	for _, l := range b.Levels {
		p := products[l.SKU]
		if p == nil {
			return Invalid("inventory of %s in %s: there is no such product", l.SKU, l.WarehouseID)
		}
		p.TotalInventory += l.Quantity
		p.Available += l.Quantity
	}
	customers := map[CustomerID]*Customer{}
	for i := range b.Customers {
		c := &b.Customers[i]
		c.OrderCount = new(int)
		customers[c.ID] = c
	}
	for i := range b.Orders {
		if err := b.Orders[i].settle(customers, products); err != nil {
			return fmt.Errorf("order %s: %w", b.Orders[i].ID, err)
		}
	}
	return nil
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
	return nil
}
