package commerce

import (
	"cmp"
	"fmt"
	"maps"
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

// Spending returns the amount by which the order increases the customer's spending. For a cancelled
// order, the amount is 0.
func (o Order) Spending() Spending {
	s := Spending{CustomerID: o.CustomerID, Month: MonthOf(o.PlacedAt), Total: Money{Currency: o.Total.Currency}}
	if o.Status != Cancelled {
		s.Total, s.Orders = o.Total, 1
	}
	return s
}

// MaxSalesDays is the maximum number of days whose sales a response contains.
const MaxSalesDays = 31

// DailySales is the total of the orders placed on one day and in one currency. Cancelled orders are not
// included. The table divides each day among several records, so that fewer transactions conflict.
type DailySales struct {
	// Day is in the time zone of the table.
	Day Date
	// Part is the number of the record, as text. Shard is its shard, or empty.
	Part, Shard string
	Total       Money
	// Orders is the number of orders in the total.
	Orders int
}

// DailySales returns the amount by which the order increases the sales of the day that the function dayOf
// returns for its time. For a cancelled order, the amount is 0.
func (o Order) DailySales(dayOf func(time.Time) Date) DailySales {
	s, placed := o.Spending(), o.PlacedAt
	if at, ok := o.ID.Time(); ok { // the time in the ID never changes
		placed = at
	}
	return DailySales{Day: dayOf(placed), Total: s.Total, Orders: s.Orders}
}

// SumDailySales returns the sales of each day, the earliest day first. The parameter parts must contain all
// records of these days, in one currency.
//
// Errors: an error that wraps ErrMalformed if a total has more than 19 digits.
func SumDailySales(parts []*DailySales) ([]*DailySales, error) {
	days := map[Date]*DailySales{}
	for _, part := range parts {
		day := days[part.Day]
		if day == nil {
			day = &DailySales{Day: part.Day, Total: Money{Currency: part.Total.Currency}}
			days[part.Day] = day
		}
		total, err := day.Total.Plus(part.Total)
		if err != nil {
			return nil, fmt.Errorf("%w: sales of %s: %w", ErrMalformed, part.Day, err)
		}
		day.Total, day.Orders = total, day.Orders+part.Orders
	}
	all := slices.AppendSeq(make([]*DailySales, 0, len(days)), maps.Values(days))
	slices.SortFunc(all, func(a, b *DailySales) int { return cmp.Compare(a.Day, b.Day) })
	return all, nil
}

// MonthOf returns the month of a time in UTC, such as "2026-04".
func MonthOf(t time.Time) string { return t.UTC().Format("2006-01") }
