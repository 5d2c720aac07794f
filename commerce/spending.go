package commerce

import (
	"cmp"
	"slices"
	"time"
)

// MaxSpending is how many months, times currencies, a list of a customer's spending has at most.
const MaxSpending = 120

// Spending is what a customer's orders of one month cost in one currency, without cancelled orders.
type Spending struct {
	CustomerID CustomerID
	// Month is the month in UTC in which the orders were placed, such as 2026-04.
	Month string
	Total Money
	// Orders is the number of the orders.
	Orders int
}

// SpendingKey names the spending of a customer in a month and currency.
type SpendingKey struct {
	Month    string
	Currency Currency
}

// Spent returns what the order adds to its customer's spending: nothing if it is cancelled.
func (o Order) Spent() Spending {
	s := Spending{CustomerID: o.CustomerID, Month: MonthOf(o.PlacedAt), Total: Money{Currency: o.Total.Currency}}
	if o.Status != Cancelled {
		s.Total, s.Orders = o.Total, 1
	}
	return s
}

// MonthOf returns the month of a time in UTC, such as 2026-04.
func MonthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// Minus returns by how much this spending is more than another one of the same month and currency.
//
// Errors: one that says so where an amount has more than 19 digits.
func (s Spending) Minus(other Spending) (Spending, error) {
	other.Total.Amount = other.Total.Amount.Neg()
	var err error
	s.Total, err = s.Total.Plus(other.Total)
	s.Orders -= other.Orders
	return s, err
}

// Spendings are what a customer has spent, by month and currency.
type Spendings map[SpendingKey]Spending

// Add adds what an order costs.
//
// Errors: one that says so where an amount has more than 19 digits.
func (all Spendings) Add(o Order) error {
	s := o.Spent()
	k := SpendingKey{s.Month, s.Total.Currency}
	if before, ok := all[k]; ok {
		var err error
		if s.Total, err = s.Total.Plus(before.Total); err != nil {
			return err
		}
		s.Orders += before.Orders
	}
	all[k] = s
	return nil
}

// Sorted returns the spending of each month, the first month first.
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
