package commerce

import (
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

// Dataset holds a complete order book in memory, such as the sample data. The fields are lists of
// values that loading encodes as records.
type Dataset struct {
	Employees  []Employee
	Warehouses []Warehouse
	Products   []Product
	Levels     []InventoryLevel
	Customers  []Customer
	Orders     []OrderWithItems
	// Spending is computed from the orders by derive.Complete.
	Spending []Spending
}

// OrderWithItems is an order with all its line items, events, payments, returns and fulfillments. The line
// items are in Lines, not in Order.Items.
type OrderWithItems struct {
	Order
	Lines        []LineItem
	Events       []Event
	Payments     []Payment
	Returns      []Return
	Fulfillments []Fulfillment
}

// CompleteOrders computes the fields of orders that depend on their line items, events and customers,
// such as the total.
//
// If the dataset is inconsistent, it returns an error that wraps an InvalidError.
func (b *Dataset) CompleteOrders() error {
	err := b.validate()
	if err != nil {
		return err
	}
	b.CompleteEachOrder(func(i int, problem error) {
		if err == nil {
			err = fmt.Errorf("order %s: %w", b.Orders[i].ID, problem)
		}
	})
	return err
}

// CompleteEachOrder is like CompleteOrders, but checks only orders. It calls reject with the index of
// each inconsistent order and an error that wraps an InvalidError.
func (b *Dataset) CompleteEachOrder(reject func(i int, problem error)) {
	products := map[SKU]bool{}
	for _, p := range b.Products {
		products[p.SKU] = true
	}
	customers := map[CustomerID]*Customer{}
	for i := range b.Customers {
		customers[b.Customers[i].ID] = &b.Customers[i]
	}
	for i := range b.Orders {
		if err := b.Orders[i].complete(customers, products); err != nil {
			reject(i, err)
		}
	}
}

// validate returns an error for a duplicate ID or unique value, a reference to a missing record,
// or a negative number. It checks only the IDs of orders. OrderWithItems.complete
// checks the rest.
func (b *Dataset) validate() error {
	seen := map[string]bool{}
	var firstErr error
	once := func(kind, id string) {
		if seen[kind+" "+id] && firstErr == nil {
			firstErr = fmt.Errorf("%s %s: %w", kind, id, NewInvalidError("is in the dataset twice"))
		}
		seen[kind+" "+id] = true
	}
	unique := map[string]string{}
	claim := func(kind, id, field, value string) {
		key := kind + " " + field + " " + value
		if other := unique[key]; other != "" && firstErr == nil {
			firstErr = fmt.Errorf("%s %s and %s: %w", kind, other, id, NewInvalidError("have the %s %s, but it must be unique", field, value))
		}
		unique[key] = id
	}
	claimCustom := func(recordType, id string, values CustomValues) {
		for _, f := range CustomFieldsOf(recordType) {
			if value, err := f.Value(values); f.LookupQuery != "" && err == nil && value != nil {
				claim(strings.ToLower(recordType), id, f.Name, TextOfKey(f.KeyText(value)))
			}
		}
	}
	refer := func(from, kind, id string) {
		if !seen[kind+" "+id] && firstErr == nil {
			firstErr = fmt.Errorf("%s: %w", from, NewInvalidError("refers to %s %s, which is not in the dataset", kind, id))
		}
	}
	notNegative := func(from string, negative bool) {
		if negative && firstErr == nil {
			firstErr = fmt.Errorf("%s: %w", from, NewInvalidError("is negative"))
		}
	}
	for _, w := range b.Warehouses {
		once("warehouse", string(w.ID))
		claimCustom("Warehouse", string(w.ID), w.CustomFields)
	}
	for _, e := range b.Employees {
		once("employee", string(e.ID))
		claimCustom("Employee", string(e.ID), e.CustomFields)
		if e.WarehouseID != "" {
			refer("employee "+string(e.ID), "warehouse", string(e.WarehouseID))
		}
	}
	for _, p := range b.Products {
		once("product", string(p.SKU))
		claimCustom("Product", string(p.SKU), p.CustomFields)
		notNegative("price of product "+string(p.SKU), p.UnitPrice.Amount.IsNeg())
	}
	for _, l := range b.Levels {
		once("inventory of product "+string(l.SKU)+" in warehouse", string(l.WarehouseID))
		name := fmt.Sprintf("inventory of product %s in warehouse %s", l.SKU, l.WarehouseID)
		refer(name, "product", string(l.SKU))
		refer(name, "warehouse", string(l.WarehouseID))
		notNegative(name, l.Quantity < 0)
	}
	for _, c := range b.Customers {
		once("customer", string(c.ID))
		claim("customer", string(c.ID), "email address", strings.ToLower(c.Email))
		claimCustom("Customer", string(c.ID), c.CustomFields)
		if c.AccountRepID != "" {
			refer("customer "+string(c.ID), "employee", string(c.AccountRepID))
		}
	}
	for _, o := range b.Orders {
		once("order", string(o.ID))
		claimCustom("Order", string(o.ID), o.CustomFields)
	}
	return firstErr
}

func (o *OrderWithItems) complete(customers map[CustomerID]*Customer, products map[SKU]bool) error {
	customer := customers[o.CustomerID]
	if o.CustomerID.IsGuest() {
		customer = &Customer{ID: o.CustomerID}
	}
	if customer == nil {
		return NewInvalidError("customer %s is not in the dataset", o.CustomerID)
	}
	if len(o.Lines) == 0 {
		return NewInvalidError("has no items")
	}
	o.AccountRepID = customer.AccountRepID
	o.Total = Money{Currency: o.Lines[0].UnitPrice.Currency}
	seen := map[SKU]bool{}
	for i := range o.Lines {
		line := &o.Lines[i]
		if !products[line.SKU] {
			return NewInvalidError("product %s is not in the dataset", line.SKU)
		}
		if seen[line.SKU] {
			return NewInvalidError("product %s is in two line items: merge the line items", line.SKU)
		}
		if line.Quantity < 1 {
			return NewInvalidError("line item %s has a quantity of %d: use at least 1", line.SKU, line.Quantity)
		}
		if line.UnitPrice.Amount.IsNeg() {
			return NewInvalidError("line item %s has a negative price", line.SKU)
		}
		if line.UnitPrice.Currency != o.Total.Currency {
			return NewInvalidError("line item %s has a price in %s, but the first line item has a price in %s: use one currency per order", line.SKU, line.UnitPrice.Currency, o.Total.Currency)
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
	}
	var err error
	if o.Total, err = o.TotalOf(o.Total); err != nil {
		return err
	}
	if o.Total.Amount.IsNeg() {
		return NewInvalidError("has a negative total")
	}
	itemCount := len(o.Lines)
	o.ItemCount = &itemCount
	for _, event := range o.Events {
		if event.At.After(o.UpdatedAt) {
			o.UpdatedAt = event.At // the last event is the last update of the order
		}
	}
	return nil
}

// ImportedEvent returns the event of an imported order. Its ID depends only on the order's ID, so
// importing the order again does not create a second event.
func ImportedEvent(o Order, note string) Event {
	id, _ := ulid.ParseStrict(string(o.ID))
	return Event{ID: EventID(withHash(id, "imported "+string(o.ID))), OrderID: o.ID, Type: EventImported, To: o.Status, At: o.PlacedAt, Actor: "import", Note: note, Version: o.Version}
}
