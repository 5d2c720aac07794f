package commerce

import (
	"iter"
	"slices"
	"strconv"
)

// QuotedLine is a line item of a quote: a product with its quantity and current price. OrderID and
// CustomerID are empty, because the order does not exist yet.
type QuotedLine struct {
	LineItem
	// Available is the quantity in stock that is not reserved for orders.
	Available int
}

// InStock reports whether the full quantity of the line item is available.
func (l QuotedLine) InStock() bool { return l.Available >= l.Quantity }

// Quote is the current price of an order that has not been placed.
type Quote struct {
	// Lines contains one line for each requested product that exists.
	Lines []QuotedLine
	// Subtotal is what the lines cost, and Total also includes the adjustments. They are nil if a product
	// does not exist, the currencies differ, or the input is invalid.
	Subtotal, Total *Money
	// UserErrors are the reasons why the order cannot be placed.
	UserErrors []UserError
	// adjustments are the requested adjustments in the currency of the lines.
	adjustments []OrderAdjustment
}

// Pieces returns the number of units of each product.
func (q Quote) Pieces() map[SKU]int {
	pieces := make(map[SKU]int, len(q.Lines))
	for _, line := range q.Lines {
		pieces[line.SKU] += line.Quantity
	}
	return pieces
}

// NewQuote returns a quote at current prices. The parameter products must contain all requested
// products that exist.
//
// The quote can contain the user errors NotFound, InsufficientStock, InvalidInput and TooManyLines.
func NewQuote(lines []OrderLine, adjustments []OrderAdjustment, products map[SKU]*Product) Quote {
	merged, err := MergeLines(lines)
	if err != nil {
		return InvalidQuote(UserErrorsOf(err))
	}
	q := Quote{Lines: []QuotedLine{}, UserErrors: []UserError{}}
	summable := true
	for _, line := range merged {
		// If several lines request the product, errors refer to the first of these lines.
		index := strconv.Itoa(slices.IndexFunc(lines, func(l OrderLine) bool { return l.SKU == line.SKU }))
		product := products[line.SKU]
		if product == nil {
			q.UserErrors = append(q.UserErrors, NewNotFound("product", line.SKU, "items", index, "sku"))
			summable = false
			continue
		}
		if err := product.CheckSellable(FieldPath("items", index, "sku")); err != nil {
			q.UserErrors = append(q.UserErrors, UserErrorsOf(err)...)
			summable = false
			continue
		}
		item := LineItem{SKU: line.SKU, Name: product.Name, Quantity: line.Quantity, UnitPrice: product.UnitPrice, CustomFields: line.CustomFields}
		q.Lines = append(q.Lines, QuotedLine{item, max(0, product.Available)})
		if product.Available < line.Quantity {
			q.UserErrors = append(q.UserErrors, NewInsufficientStock(FieldPath("items", index, "quantity"), line.SKU, line.Quantity, product.Available, ""))
		}
		if first := q.Lines[0]; product.UnitPrice.Currency != first.UnitPrice.Currency {
			q.UserErrors = append(q.UserErrors, NewInvalidInput(FieldPath("items", index, "sku"), "has a price in %s, but product %s has a price in %s: use one currency per order", product.UnitPrice.Currency, first.SKU, first.UnitPrice.Currency))
			summable = false
		}
	}
	if !summable {
		return q
	}
	subtotal, err := sumOfSubtotals(q.items(), FieldPath("items"))
	if err != nil {
		q.UserErrors = append(q.UserErrors, UserErrorsOf(err)...)
		return q
	}
	order, err := Order{}.withAdjustments(adjustments, subtotal, func(sku SKU) bool { return products[sku] != nil })
	if err != nil {
		q.UserErrors = append(q.UserErrors, UserErrorsOf(err)...)
		return q
	}
	q.Subtotal, q.Total, q.adjustments = &subtotal, &order.Total, order.Adjustments
	return q
}

// InvalidQuote returns a quote that has user errors but no lines and no total.
func InvalidQuote(userErrors UserErrors) Quote {
	return Quote{Lines: []QuotedLine{}, UserErrors: userErrors}
}

// items returns the line items of the quote.
func (q Quote) items() iter.Seq[LineItem] {
	return func(yield func(LineItem) bool) {
		for _, line := range q.Lines {
			if !yield(line.LineItem) {
				return
			}
		}
	}
}
