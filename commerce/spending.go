package commerce

import "time"

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
