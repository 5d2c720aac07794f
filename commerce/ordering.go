package commerce

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"
)

// Merged adds up the lines of one product; the products stand in the order in which they came
// first.
//
// Errors: InvalidInput where a sum is more than MaxQuantity; those of CheckLines.
func Merged(lines []OrderLine) ([]OrderLine, error) {
	at := make(map[SKU]int, len(lines))
	var merged []OrderLine
	for i, line := range lines {
		j, ok := at[line.SKU]
		if !ok {
			at[line.SKU] = len(merged)
			merged = append(merged, line)
			continue
		}
		if merged[j].Quantity += line.Quantity; merged[j].Quantity > MaxQuantity {
			return nil, Refuse(Path("items", strconv.Itoa(i), "quantity"), "makes %d pieces of product %s: an order has at most %d", merged[j].Quantity, line.SKU, MaxQuantity)
		}
	}
	return merged, CheckLines(len(merged))
}

// Place makes a pending order of lines of different products. products are those that exist, in
// stock or not. Fields that a refusal names are those of the first line of that product in the
// command.
//
// Errors: Refusals of NotFound, InsufficientStock, InvalidInput, TooManyLines and PriceChanged.
func (c NewOrder) Place(id OrderID, at time.Time, customer Customer, products map[SKU]*Product) (Order, error) {
	q := NewQuote(c.Lines, products)
	refusals := Refusals(q.UserErrors)
	if c.ExpectedTotal != nil && q.Total != nil && !q.Total.Equal(*c.ExpectedTotal) {
		refusals = append(refusals, NoSuchTotal(*c.ExpectedTotal, *q.Total, q.Lines))
	}
	if len(refusals) > 0 {
		return Order{}, refusals
	}
	items := slices.Collect(q.items())
	for i := range items {
		items[i].OrderID, items[i].CustomerID = id, customer.ID
	}
	return Order{ID: id, CustomerID: customer.ID, Status: Pending, AccountRepID: customer.AccountRepID, ShippingAddress: c.ShippingAddress,
		PlacedAt: at, UpdatedAt: at, Version: 1}.holding(items, *q.Total), nil
}

// withItems returns the order with these items, and with the total and count that follow. All of
// them stand in Items, also where there are too many to be embedded.
//
// Errors: InvalidInput, at path, where the total is too large.
func (o Order) withItems(items []LineItem, path []string) (Order, error) {
	total, err := totalOf(slices.Values(items), path)
	if err != nil {
		return Order{}, err
	}
	return o.holding(items, total), nil
}

// holding returns the order with these items, whose total is known.
func (o Order) holding(items []LineItem, total Money) Order {
	items = slices.SortedFunc(slices.Values(items), func(a, b LineItem) int { return cmp.Compare(a.SKU, b.SKU) })
	n := len(items)
	o.Items, o.ItemCount, o.Total, o.EmbedsItems = items, &n, total, n <= MaxEmbeddedItems
	return o
}

// totalOf adds up the subtotals of items, of which there is at least one.
//
// Errors: InvalidInput, at path, where the currencies differ or the total is too large.
func totalOf(items iter.Seq[LineItem], path []string) (total Money, err error) {
	for item := range items {
		if total.Currency == "" {
			total.Currency = item.UnitPrice.Currency
		}
		if item.UnitPrice.Currency != total.Currency {
			return Money{}, Refuse(path, "leaves items in %s and %s: an order has one currency", total.Currency, item.UnitPrice.Currency)
		}
		subtotal, err := item.Subtotal()
		if err == nil {
			total, err = total.Plus(subtotal)
		}
		if err != nil || !total.writable() {
			return Money{}, Refuse(path, "makes a total of more than %d digits: split the order", MaxPriceDigits)
		}
	}
	return total, nil
}

// Moved returns the order in another status.
//
// Errors: InvalidTransition, AddressMissing.
func (o Order) Moved(c OrderMove) (Order, error) {
	if !slices.Contains(o.Status.Transitions(), c.To) {
		return Order{}, NoTransition(o.Status, c.To)
	}
	if c.To == Shipped && o.ShippingAddress == nil && !c.WithoutAddress {
		return Order{}, NoAddress()
	}
	o.Status, o.TrackingNumber, o.Carrier = c.To, cmp.Or(c.TrackingNumber, o.TrackingNumber), cmp.Or(c.Carrier, o.Carrier)
	return o, nil
}

// WithItem returns a pending order, given with all its items, with so many pieces of a product:
// none takes it off. product is what a product that is new in the order is sold as, nil where there
// is no such product. by is how many pieces more than before are reserved.
//
// Errors: InvalidInput, NotFound, TooManyLines, InsufficientStock.
func (o Order) WithItem(c OrderItemChange, product *Product) (changed Order, by int, err error) {
	if o.Status != Pending {
		return Order{}, 0, Refuse(Path("orderId"), "names an order that is %s: its items can change only while it is pending", o.Status)
	}
	items := slices.Clone(o.Items)
	i := slices.IndexFunc(items, func(item LineItem) bool { return item.SKU == c.SKU })
	switch {
	case i < 0 && c.Quantity == 0:
		return Order{}, 0, NotFound{because(CodeNotFound, Path("sku"), "Product %s is not in the order.", c.SKU)}
	case c.Quantity == 0 && len(items) == 1:
		return Order{}, 0, Refuse(Path("sku"), "names the only product of the order: cancel the order instead")
	case c.Quantity == 0:
		by = -items[i].Quantity
		items = slices.Delete(items, i, i+1)
	case i >= 0:
		by = c.Quantity - items[i].Quantity
		items[i].Quantity = c.Quantity
	case product == nil:
		return Order{}, 0, Unknown("product", c.SKU, "sku")
	case len(items) >= MaxLines:
		return Order{}, 0, TooLong(Path("sku"), len(items)+1, MaxLines)
	case product.UnitPrice.Currency != o.Total.Currency:
		return Order{}, 0, Refuse(Path("sku"), "is sold in %s, the order is in %s: an order has one currency", product.UnitPrice.Currency, o.Total.Currency)
	default:
		by = c.Quantity
		items = append(items, LineItem{OrderID: o.ID, CustomerID: o.CustomerID, SKU: c.SKU, Name: product.Name, Quantity: c.Quantity, UnitPrice: product.UnitPrice})
	}
	if by > 0 && (product == nil || product.Available < by) {
		available := 0
		if product != nil {
			available = product.Available
		}
		return Order{}, 0, TooFew(Path("quantity"), c.SKU, by, available, " beyond what the order has")
	}
	changed, err = o.withItems(items, Path("quantity"))
	return changed, by, err
}

// CanGoElsewhere reports whether the order's shipping address can change: before it is shipped.
//
// Errors: InvalidInput.
func (o Order) CanGoElsewhere() error {
	if !o.Status.Reserves() {
		return Refuse(Path("orderId"), "names an order that is %s: its shipping address can change only before it is shipped", o.Status)
	}
	return nil
}
