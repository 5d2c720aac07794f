package commerce

import (
	"cmp"
	"slices"
	"time"
)

// MaxSpendingEntries is the maximum number of entries in a response with a customer's spending.
// Each entry is the spending in one month and one currency.
const MaxSpendingEntries = 120

// Spending is the total of the orders that a customer placed in one month and in one currency.
// Cancelled orders are not included.
type Spending struct {
	CustomerID CustomerID
	// Month is the month in which the orders were placed, in UTC, such as "2026-04".
	Month string
	Total Money
	// Orders is the number of orders in the total.
	Orders int
}

// SpendingKey identifies one entry of a customer's spending.
type SpendingKey struct {
	Month    string
	Currency Currency
}

// Spending returns the amount by which the order increases the customer's spending. For a cancelled
// order, the amount is 0.
func (o Order) Spending() Spending {
	s := Spending{CustomerID: o.CustomerID, Month: MonthOf(o.PlacedAt), Total: Money{Currency: o.Total.Currency}}
	if o.Status != Cancelled {
		s.Total, s.Orders = o.Total, 1
	}
	return s
}

// MonthOf returns the month of a time in UTC, such as "2026-04".
func MonthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// Spendings is the spending of one customer, by month and currency.
type Spendings map[SpendingKey]Spending

// Add adds an order to the entry with the order's month and currency.
//
// Add returns an error if the sum has more than 19 digits.
func (all Spendings) Add(o Order) error {
	s := o.Spending()
	key := SpendingKey{s.Month, s.Total.Currency}
	if before, ok := all[key]; ok {
		var err error
		if s.Total, err = s.Total.Plus(before.Total); err != nil {
			return err
		}
		s.Orders += before.Orders
	}
	all[key] = s
	return nil
}

// Sorted returns the entries, sorted by month and then by currency.
func (all Spendings) Sorted() []Spending {
	var sorted []Spending
	for _, s := range all {
		sorted = append(sorted, s)
	}
	slices.SortFunc(sorted, func(a, b Spending) int {
		return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.Total.Currency, b.Total.Currency))
	})
	return sorted
}
