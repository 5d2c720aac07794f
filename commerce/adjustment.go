package commerce

import (
	"fmt"
	"slices"
	"strconv"
)

// AdjustmentKind is the kind of an OrderAdjustment, in lower case, as it is stored.
type AdjustmentKind string

// Kinds of adjustments.
const (
	AdjustmentShipping AdjustmentKind = "shipping"
	AdjustmentTax      AdjustmentKind = "tax"
	AdjustmentDiscount AdjustmentKind = "discount"
	AdjustmentFee      AdjustmentKind = "fee"
)

// ParseAdjustmentKind validates s and returns it as a kind of adjustment.
//
// ParseAdjustmentKind returns an InvalidError if s is not a kind of adjustment.
func ParseAdjustmentKind(s string) (AdjustmentKind, error) {
	switch k := AdjustmentKind(s); k {
	case AdjustmentShipping, AdjustmentTax, AdjustmentDiscount, AdjustmentFee:
		return k, nil
	}
	return "", NewInvalidError("is %q, which is not a kind of adjustment", s)
}

// OrderAdjustment is a part of what an order costs that is not the price of a product.
type OrderAdjustment struct {
	Kind AdjustmentKind
	// Label is a text for the customer.
	Label string
	// Amount is not negative, except in a discount, where it is not positive. In a command, it has no
	// currency.
	Amount Money
	// Line is the SKU of the line item to which the adjustment belongs. It is empty if the adjustment
	// belongs to no line item.
	Line SKU `json:",omitempty"`
	// Included is true for a tax that the prices already contain. It does not change the total.
	Included bool `json:",omitempty"`
}

// Validate returns an InvalidError if the sign of the amount does not fit the kind of the adjustment, or
// if the adjustment is no tax, but is included.
func (a OrderAdjustment) Validate() error {
	switch {
	case a.Kind == AdjustmentDiscount && a.Amount.Amount.IsPos():
		return NewInvalidError("is a discount of %s: the amount of a discount is negative", a.Amount.Amount)
	case a.Kind != AdjustmentDiscount && a.Amount.Amount.IsNeg():
		return NewInvalidError("has the amount %s: only the amount of a discount is negative", a.Amount.Amount)
	case a.Included && a.Kind != AdjustmentTax:
		return NewInvalidError("is included in the prices: only a tax can be included")
	}
	return nil
}

// addedAdjustments returns the sum of the adjustments that change the total.
func (o Order) addedAdjustments() (Money, error) {
	sum := Money{Currency: o.Total.Currency}
	for _, a := range o.Adjustments {
		if !a.Included {
			var err error
			if sum, err = sum.Plus(a.Amount); err != nil {
				return Money{}, err
			}
		}
	}
	return sum, nil
}

// TotalOf returns what the order costs if its line items cost subtotal. The result can be negative.
//
// It returns an error if an amount has too many digits or another currency.
func (o Order) TotalOf(subtotal Money) (Money, error) {
	o.Total.Currency = subtotal.Currency
	added, err := o.addedAdjustments()
	if err != nil {
		return Money{}, err
	}
	return subtotal.Plus(added)
}

// Subtotal returns what the line items cost, which is the total without adjustments. So the line items
// need not be known.
//
// It returns an error that wraps ErrMalformed if an amount has too many digits.
func (o Order) Subtotal() (Money, error) {
	added, err := o.addedAdjustments()
	if err == nil {
		added.Amount = added.Amount.Neg()
		added, err = o.Total.Plus(added)
	}
	if err != nil {
		return Money{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return added, nil
}

// withAdjustments returns a copy of the order with new adjustments, whose line items cost subtotal. has
// reports whether the order has a line item of a product.
//
// It returns UserErrors with InvalidInput if an amount has too many digits or decimal places, if the order
// does not have the line item of an adjustment, or if the total would be negative.
func (o Order) withAdjustments(adjustments []OrderAdjustment, subtotal Money, has func(SKU) bool) (Order, error) {
	var problems UserErrors
	o.Adjustments = slices.Clone(adjustments)
	for i := range o.Adjustments {
		a, path := &o.Adjustments[i], FieldPath("adjustments", strconv.Itoa(i))
		a.Amount = Money{withCurrencyDigits(a.Amount.Amount, subtotal.Currency), subtotal.Currency}
		if err := a.Amount.checkDigits(); err != nil {
			problems = append(problems, NewInvalidInput(append(path, "amount"), "%s", err))
		}
		if a.Line != "" && !has(a.Line) {
			problems = append(problems, NewInvalidInput(append(path, "line"), "is %s, but the order has no line item of this product", a.Line))
		}
	}
	if len(problems) > 0 {
		return Order{}, problems
	}
	return o.withTotalOf(subtotal, FieldPath("adjustments"))
}

// withTotalOf returns a copy of the order whose line items cost subtotal. path is the path of the input
// that causes the change.
//
// It returns InvalidInput if the total would be negative or would have too many digits.
func (o Order) withTotalOf(subtotal Money, path []string) (Order, error) {
	total, err := o.TotalOf(subtotal)
	switch {
	case err != nil || !total.withinPriceDigits():
		return Order{}, NewInvalidInput(path, "leads to a total of more than %d digits: split the order", MaxPriceDigits)
	case total.Amount.IsNeg():
		return Order{}, NewInvalidInput(path, "leads to a total of %s %s: the discounts must not exceed the other amounts", total.Decimal(), total.Currency)
	}
	o.Total = total
	return o, nil
}

// WithAdjustments returns a copy of the order with other adjustments. o.Items must contain all line items
// if an adjustment belongs to a line item.
//
// Errors: InvalidTransition if the order has been shipped or cancelled, UserErrors (InvalidInput), and
// ErrMalformed.
func (o Order) WithAdjustments(adjustments []OrderAdjustment) (Order, error) {
	if !o.Status.ReservesStock() {
		return Order{}, NewLateEdit(o.Status, "adjustments", Pending, Confirmed)
	}
	subtotal, err := o.Subtotal()
	if err != nil {
		return Order{}, err
	}
	return o.withAdjustments(adjustments, subtotal, func(sku SKU) bool {
		return slices.ContainsFunc(o.Items, func(i LineItem) bool { return i.SKU == sku })
	})
}
