package commerce

import (
	"iter"
	"slices"
	"strconv"
)

// QuotedLine is a product and its quantity at today's price. Its item belongs to no order yet.
type QuotedLine struct {
	LineItem
	// Available is the number of pieces that can still be sold.
	Available int
}

// InStock reports whether the whole quantity can be sold.
func (l QuotedLine) InStock() bool { return l.Available >= l.Quantity }

// Quote is the price of an order that has not been placed.
type Quote struct {
	// Lines are the products that exist, one line for each product.
	Lines []QuotedLine
	// Total is nil if a product does not exist or the currencies differ.
	Total *Money
	// UserErrors are the reasons why the order cannot be placed.
	UserErrors []Refusal
}

// NewQuote returns the price of an order of these lines. products are the products that exist, in
// stock or not. The path of a user error names the first line of the product.
//
// User errors: NotFound, InsufficientStock, InvalidInput, TooManyLines.
func NewQuote(lines []OrderLine, products map[SKU]*Product) Quote {
	merged, err := Merged(lines)
	if err != nil {
		return RefusedQuote(RefusalsOf(err))
	}
	q := Quote{Lines: []QuotedLine{}, UserErrors: []Refusal{}}
	addable := true
	for _, line := range merged {
		index := strconv.Itoa(slices.IndexFunc(lines, func(l OrderLine) bool { return l.SKU == line.SKU }))
		product := products[line.SKU]
		if product == nil {
			q.UserErrors = append(q.UserErrors, Unknown("product", line.SKU, "items", index, "sku"))
			addable = false
			continue
		}
		item := LineItem{SKU: line.SKU, Name: product.Name, Quantity: line.Quantity, UnitPrice: product.UnitPrice}
		q.Lines = append(q.Lines, QuotedLine{item, max(0, product.Available)})
		if product.Available < line.Quantity {
			q.UserErrors = append(q.UserErrors, TooFew(Path("items", index, "quantity"), line.SKU, line.Quantity, product.Available, ""))
		}
		if first := q.Lines[0]; product.UnitPrice.Currency != first.UnitPrice.Currency {
			q.UserErrors = append(q.UserErrors, Refuse(Path("items", index, "sku"), "is sold in %s, %s in %s: an order has one currency", product.UnitPrice.Currency, first.SKU, first.UnitPrice.Currency))
			addable = false
		}
	}
	if !addable {
		return q
	}
	total, err := totalOf(q.items(), Path("items"))
	if err != nil {
		q.UserErrors = append(q.UserErrors, RefusalsOf(err)...)
		return q
	}
	q.Total = &total
	return q
}

// RefusedQuote returns the quote of an invalid input.
func RefusedQuote(reasons Refusals) Quote {
	return Quote{Lines: []QuotedLine{}, UserErrors: reasons}
}

// items are the items of the lines.
func (q Quote) items() iter.Seq[LineItem] {
	return func(yield func(LineItem) bool) {
		for _, line := range q.Lines {
			if !yield(line.LineItem) {
				return
			}
		}
	}
}
