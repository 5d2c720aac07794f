package commerce

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"
)

// MergeLines combines all lines of a product into one line. The products keep the order of their
// first lines.
//
// It returns InvalidInput if a combined quantity is more than MaxQuantity, or if the lines of a product
// set a custom field to different values. It also returns the
// errors of CheckLineCount.
func MergeLines(lines []OrderLine) ([]OrderLine, error) {
	indexes := make(map[SKU]int, len(lines))
	var merged []OrderLine
	for i, line := range lines {
		j, ok := indexes[line.SKU]
		if !ok {
			indexes[line.SKU] = len(merged)
			merged = append(merged, line)
			continue
		}
		if merged[j].Quantity += line.Quantity; merged[j].Quantity > MaxQuantity {
			return nil, NewInvalidInput(FieldPath("items", strconv.Itoa(i), "quantity"), "raises the total quantity of product %s to %d: use at most %d", line.SKU, merged[j].Quantity, MaxQuantity)
		}
		if name := merged[j].CustomFields.conflict(line.CustomFields); name != "" {
			return nil, NewInvalidInput(FieldPath("items", strconv.Itoa(i), name), "differs from the value in an earlier line of product %s: use the same value", line.SKU)
		}
		merged[j].CustomFields = merged[j].CustomFields.With(line.CustomFields)
	}
	return merged, CheckLineCount(len(merged))
}

// Place returns a new order with the status Pending. The parameter products must contain all
// requested products that exist.
//
// If the order cannot be placed, Place returns UserErrors. They can contain PriceChanged and the
// user errors of NewQuote.
func (c OrderRequest) Place(id OrderID, at time.Time, customer Customer, products map[SKU]*Product) (Order, error) {
	q := NewQuote(c.Lines, c.Adjustments, products)
	userErrors := UserErrors(q.UserErrors)
	if c.ExpectedTotal != nil && q.Total != nil && !q.Total.Equal(*c.ExpectedTotal) {
		userErrors = append(userErrors, NewPriceChanged(*c.ExpectedTotal, *q.Total, q.Lines))
	}
	if len(userErrors) > 0 {
		return Order{}, userErrors
	}
	items := slices.Collect(q.items())
	for i := range items {
		items[i].OrderID, items[i].CustomerID = id, customer.ID
	}
	return Order{ID: id, CustomerID: customer.ID, Status: Pending, AccountRepID: customer.AccountRepID, ShippingAddress: c.ShippingAddress, CustomFields: c.CustomFields,
		BillingAddress: c.BillingAddress, Contact: c.Contact, Adjustments: q.adjustments, ExpiresAt: c.ExpiresAt, Total: *q.Total, PlacedAt: at, UpdatedAt: at, Version: 1}.withItems(items), nil
}

// MaxOrderExpiry is the maximum time after which an order expires.
const MaxOrderExpiry = 365 * 24 * time.Hour

// CheckExpiry returns InvalidInput if an order that is placed at a time would expire before, or much later.
func (c OrderRequest) CheckExpiry(at time.Time) error {
	if c.ExpiresAt == nil || c.ExpiresAt.After(at) && !c.ExpiresAt.After(at.Add(MaxOrderExpiry)) {
		return nil
	}
	return NewInvalidInput(FieldPath("expiresAt"), "is %s: use a time in the future, at most a year from now", c.ExpiresAt.UTC().Format(time.RFC3339))
}

// withItemsAndTotal returns a copy of the order with new line items. It also sets the total and the item
// count.
//
// It returns the errors of sumOfSubtotals and withTotalOf.
func (o Order) withItemsAndTotal(items []LineItem, path []string) (Order, error) {
	subtotal, err := sumOfSubtotals(slices.Values(items), path)
	if err != nil {
		return Order{}, err
	}
	o, err = o.withTotalOf(subtotal, path)
	return o.withItems(items), err
}

// withItems returns a copy of the order with new line items. It also sets the item count.
func (o Order) withItems(items []LineItem) Order {
	items = slices.SortedFunc(slices.Values(items), func(a, b LineItem) int { return cmp.Compare(a.SKU, b.SKU) })
	n := len(items)
	// Items contains all line items, even if EmbedsItems is false.
	o.Items, o.ItemCount, o.EmbedsItems = items, &n, n <= MaxEmbeddedItems
	return o
}

// sumOfSubtotals returns the total of the line items. There must be at least one line item.
//
// If the total has too many digits or the currencies differ, it returns InvalidInput.
func sumOfSubtotals(items iter.Seq[LineItem], path []string) (total Money, err error) {
	for item := range items {
		if total.Currency == "" {
			total.Currency = item.UnitPrice.Currency
		}
		if item.UnitPrice.Currency != total.Currency {
			return Money{}, NewInvalidInput(path, "leads to an order with prices in %s and %s: use one currency per order", total.Currency, item.UnitPrice.Currency)
		}
		subtotal, err := item.Subtotal()
		if err == nil {
			total, err = total.Plus(subtotal)
		}
		if err != nil || !total.withinPriceDigits() {
			return Money{}, NewInvalidInput(path, "leads to a total of more than %d digits: split the order", MaxPriceDigits)
		}
	}
	return total, nil
}

// WithStatus returns a copy of the order with the new status. Cancelling ends a hold.
//
// It returns InvalidTransition if the order cannot change to the new status, has fulfillments, or is on hold
// and would be shipped, or cancelled by its customer. It returns
// AddressMissing if an order without a complete shipping address would be shipped, unless c.WithoutAddress
// is true.
func (o Order) WithStatus(c OrderStatusChange, byCustomer bool) (Order, error) {
	if !slices.Contains(o.Status.Transitions(), c.To) {
		return Order{}, NewInvalidTransition(o.Status, c.To)
	}
	if o.Fulfilled != nil {
		return Order{}, NewHasFulfillments(o.Status, c.To)
	}
	return o.withStatus(c, byCustomer)
}

// withStatus is WithStatus for a possible change of the status. The order can have fulfillments.
func (o Order) withStatus(c OrderStatusChange, byCustomer bool) (Order, error) {
	if o.Hold != nil && (c.To == Shipped || c.To == Cancelled && byCustomer) {
		return Order{}, NewHeld(o, c.To)
	}
	if c.To == Shipped && o.ShippingAddress == nil && !c.WithoutAddress {
		return Order{}, NewAddressMissing()
	}
	if c.To == Shipped && o.ShippingAddress != nil && !c.WithoutAddress {
		if field := o.ShippingAddress.missingField(); field != "" || o.ShippingAddress.Malformed {
			return Order{}, NewAddressIncomplete(field)
		}
	}
	if c.To == Cancelled {
		o.Hold = nil
	}
	o.Status, o.TrackingNumber, o.Carrier = c.To, cmp.Or(c.TrackingNumber, o.TrackingNumber), cmp.Or(c.Carrier, o.Carrier)
	return o, nil
}

// WithItem returns a copy of the order in which one line item is added, changed or removed. o.Items
// must contain all line items. The result reserved is the number of additional units to reserve. A
// negative number releases units.
//
// Added units have the product's current price. A line item has only one price, so if units are added
// to it, all its units get the current price (docs/adr/0042-prices-of-added-units.md). If fewer units
// remain, they keep their price.
//
// The adjustments remain, but the adjustments of a removed line item are removed. A customer could keep a
// discount and remove almost all line items. So customers cannot change an order with adjustments.
//
// Errors: InvalidTransition, InvalidInput, NotFound, TooManyLines, InsufficientStock, PriceChanged.
func (o Order) WithItem(c OrderItemChange, product *Product, byCustomer bool) (changed Order, reserved int, err error) {
	if o.Status != Pending {
		return Order{}, 0, NewLateEdit(o.Status, "line items", Pending)
	}
	if byCustomer && len(o.Adjustments) > 0 {
		return Order{}, 0, NewInvalidInput(FieldPath("orderId"), "has adjustments, such as a discount or tax: ask the shop to change the line items")
	}
	items := slices.Clone(o.Items)
	i := slices.IndexFunc(items, func(item LineItem) bool { return item.SKU == c.SKU })
	repriced := i >= 0 && product != nil && c.Quantity > items[i].Quantity && !product.UnitPrice.Equal(items[i].UnitPrice)
	switch {
	case i < 0 && c.Quantity == 0:
		return Order{}, 0, NotFound{newErrorDetails(CodeNotFound, FieldPath("sku"), "Product %s is not in the order.", c.SKU)}
	case c.Quantity == 0 && len(items) == 1:
		return Order{}, 0, NewInvalidInput(FieldPath("sku"), "is the only product of the order: cancel the order instead of removing the product")
	case c.Quantity == 0:
		reserved = -items[i].Quantity // negative, because the change releases units
		items = slices.Delete(items, i, i+1)
		o.Adjustments = slices.DeleteFunc(slices.Clone(o.Adjustments), func(a OrderAdjustment) bool { return a.Line == c.SKU })
	case i >= 0 && !repriced:
		reserved = c.Quantity - items[i].Quantity
		items[i].Quantity = c.Quantity
	case product == nil:
		return Order{}, 0, NewNotFound("product", c.SKU, "sku")
	case !repriced && len(items) >= MaxLines:
		return Order{}, 0, NewTooManyLines(FieldPath("sku"), len(items)+1, MaxLines)
	case product.UnitPrice.Currency != o.Total.Currency:
		return Order{}, 0, NewInvalidInput(FieldPath("sku"), "has a price in %s, but the order has prices in %s: use one currency per order", product.UnitPrice.Currency, o.Total.Currency)
	case repriced:
		reserved = c.Quantity - items[i].Quantity
		items[i].Quantity, items[i].UnitPrice = c.Quantity, product.UnitPrice
	default:
		reserved = c.Quantity
		items = append(items, LineItem{OrderID: o.ID, CustomerID: o.CustomerID, SKU: c.SKU, Name: product.Name, Quantity: c.Quantity, UnitPrice: product.UnitPrice})
	}
	if reserved > 0 && product != nil {
		if err := product.CheckSellable(FieldPath("sku")); err != nil {
			return Order{}, 0, err
		}
	}
	if reserved > 0 && (product == nil || product.Available < reserved) {
		available := 0
		if product != nil {
			available = product.Available
		}
		return Order{}, 0, NewInsufficientStock(FieldPath("quantity"), c.SKU, reserved, available, " beyond the units that the order already reserves")
	}
	if i < 0 && c.Quantity > 0 {
		i = len(items) - 1
	}
	if c.Quantity > 0 {
		items[i].CustomFields = items[i].CustomFields.With(c.CustomFields)
	}
	if changed, err = o.withItemsAndTotal(items, FieldPath("quantity")); err != nil {
		return Order{}, 0, err
	}
	if c.ExpectedTotal == nil && repriced || c.ExpectedTotal != nil && !changed.Total.Equal(*c.ExpectedTotal) {
		return Order{}, 0, newItemPriceChanged(c, changed.Total, product)
	}
	return changed, reserved, nil
}

// newItemPriceChanged returns the user error for a change of a line item that leads to another total
// than the client expects, or that needs an expected total. product is nil if it no longer exists.
func newItemPriceChanged(c OrderItemChange, total Money, product *Product) PriceChanged {
	lines := []QuotedLine{}
	if product != nil && c.Quantity > 0 {
		lines = append(lines, QuotedLine{LineItem{SKU: c.SKU, Name: product.Name, Quantity: c.Quantity, UnitPrice: product.UnitPrice}, max(0, product.Available)})
	}
	if c.ExpectedTotal == nil {
		return NewUnexpectedPrice(c.SKU, product.UnitPrice, total, lines)
	}
	return NewPriceChanged(*c.ExpectedTotal, total, lines)
}

// WithoutPieces returns a copy of the order in which pieces are cancelled that are not shipped yet. If no piece
// is open any more, the copy is shipped, or delivered if all its parcels have arrived. o.Items must contain all
// line items. The adjustments of a line item without any piece are removed.
//
// Errors: InvalidTransition, NotFound, InvalidInput.
func (o Order) WithoutPieces(lines []FulfillmentLine) (Order, error) {
	if o.Status != Confirmed {
		return Order{}, NewLateEdit(o.Status, "cancelled line items", Confirmed)
	}
	items := slices.Clone(o.Items)
	for n, line := range lines {
		at := slices.IndexFunc(items, func(i LineItem) bool { return i.SKU == line.SKU })
		if at < 0 {
			return Order{}, NotFound{newErrorDetails(CodeNotFound, FieldPath("lines", strconv.Itoa(n), "sku"), "Product %s is not in the order.", line.SKU)}
		}
		item := &items[at]
		if open := item.Quantity - o.shipped(line.SKU); line.Quantity > open {
			return Order{}, NewInvalidInput(FieldPath("lines", strconv.Itoa(n), "quantity"), "is too high: only %s of product %s can still be cancelled", countPieces(open), line.SKU)
		}
		item.Quantity, item.Cancelled = item.Quantity-line.Quantity, item.Cancelled+line.Quantity
		if item.Quantity == 0 {
			o.Adjustments = slices.DeleteFunc(slices.Clone(o.Adjustments), func(a OrderAdjustment) bool { return a.Line == line.SKU })
		}
	}
	open := 0
	for _, item := range items {
		open += item.Quantity - o.shipped(item.SKU)
	}
	switch {
	case open > 0:
	case o.Fulfilled == nil:
		return Order{}, NewInvalidInput(FieldPath("lines"), "contains all units of the order: cancel the order instead")
	case o.Fulfilled.Undelivered > 0:
		o.Status = Shipped
	default:
		o.Status = Delivered
	}
	return o.withItemsAndTotal(items, FieldPath("lines"))
}

// WithCustomFields returns a copy of the order with changed custom fields. o.Items must contain all line
// items.
//
// It returns NotFound if the order has no line item of a product in c.Items.
func (o Order) WithCustomFields(c CustomFieldsChange) (Order, error) {
	o.CustomFields, o.Items = o.CustomFields.With(c.CustomFields), slices.Clone(o.Items)
	for n, change := range c.Items {
		i := slices.IndexFunc(o.Items, func(item LineItem) bool { return item.SKU == change.SKU })
		if i < 0 {
			return Order{}, NotFound{newErrorDetails(CodeNotFound, FieldPath("items", strconv.Itoa(n), "sku"), "Product %s is not in the order.", change.SKU)}
		}
		o.Items[i].CustomFields = o.Items[i].CustomFields.With(change.CustomFields)
	}
	return o, nil
}

// WithTags returns a copy of the order with changed tags.
//
// It returns InvalidInput if the order would have too many tags.
func (o Order) WithTags(c TagsChange) (Order, error) {
	o.Tags = slices.DeleteFunc(slices.Clone(o.Tags), func(tag string) bool { return slices.Contains(c.Remove, tag) })
	o.Tags = append(o.Tags, c.Add...)
	slices.Sort(o.Tags)
	if o.Tags = slices.Compact(o.Tags); len(o.Tags) > MaxTags {
		return Order{}, NewInvalidInput(FieldPath("add"), "would give the order %d tags: use at most %d", len(o.Tags), MaxTags)
	}
	return o, nil
}

// WithHold returns a copy of the order that is on hold. If it was on hold before, only the reason changes.
//
// It returns InvalidTransition if the order has been shipped or cancelled.
func (o Order) WithHold(reason string, at time.Time) (Order, error) {
	if !o.Status.ReservesStock() {
		return Order{}, NewLateEdit(o.Status, "hold", Pending, Confirmed)
	}
	if o.Hold != nil {
		at = o.Hold.Since
	}
	o.Hold = &OrderHold{Reason: reason, Since: at}
	return o, nil
}

// CheckGuest returns InvalidInput if the email address of a guest's order has changed. The order could be claimed
// with the earlier address.
func (o Order) CheckGuest() error {
	if !o.CustomerID.IsGuest() || o.Contact == nil {
		return nil
	}
	if id, err := GuestID(o.Contact.Email); err != nil || id != o.CustomerID {
		return NewInvalidInput(FieldPath("contact", "email"), "differs from the address in the order of the guest: use the same address")
	}
	return nil
}

// CheckAddressChange returns InvalidTransition if an address or the contact of the order cannot change.
// part names what would change. Only pending and confirmed orders can change it.
func (o Order) CheckAddressChange(part string) error {
	if !o.Status.ReservesStock() {
		return NewLateEdit(o.Status, part, Pending, Confirmed)
	}
	return nil
}
