package commerce

import (
	"fmt"
	"slices"
)

// Status is the status of an order. The zero value is invalid.
type Status int

// Statuses, in lifecycle order.
const (
	Pending Status = iota + 1
	Confirmed
	Shipped
	Delivered
	Cancelled
)

var statusNames = [...]string{Pending: "pending", Confirmed: "confirmed", Shipped: "shipped", Delivered: "delivered", Cancelled: "cancelled"}

// Statuses returns all statuses in lifecycle order.
func Statuses() []Status { return []Status{Pending, Confirmed, Shipped, Delivered, Cancelled} }

// ParseStatus parses the stored form of a status.
//
// It returns an InvalidError if s is not the name of a status in lower case.
func ParseStatus(s string) (Status, error) {
	if i := slices.Index(statusNames[1:], s); i >= 0 {
		return Status(i + 1), nil
	}
	return 0, NewInvalidError("is %q, which is not a status: use a lower-case status such as pending", s)
}

// String returns the stored form of the status, in lower case.
func (s Status) String() string {
	if s < Pending || s > Cancelled {
		return fmt.Sprintf("status(%d)", int(s))
	}
	return statusNames[s]
}

// Transitions returns the statuses to which an order with status s can change. It returns nil if s
// is final.
func (s Status) Transitions() []Status {
	switch s {
	case Pending:
		return []Status{Confirmed, Cancelled}
	case Confirmed:
		return []Status{Shipped, Cancelled}
	case Shipped:
		return []Status{Delivered}
	default:
		return nil
	}
}

// StatusCounts contains the number of orders of each status, with the status as the index. Element
// 0 is not used, because statuses start at 1.
type StatusCounts [Cancelled + 1]int

// StatusCount is the number of orders in one status.
type StatusCount struct {
	Status Status
	Count  int
}

// SumOrderCounts adds up the numbers of orders by status in all counter records. It returns false
// if a counter record is incomplete.
func SumOrderCounts(parts []*OrderCounts) ([]*StatusCount, bool) {
	var sum []*StatusCount
	for _, s := range Statuses() {
		n := 0
		for _, part := range parts {
			if !part.Complete {
				return nil, false
			}
			n += part.ByStatus[s]
		}
		sum = append(sum, &StatusCount{s, n})
	}
	return sum, true
}

// OrderCounts is one of several counter records, which together contain the number of orders in
// each status. Each counter record covers a part of all orders. With a single record, transactions
// would often conflict.
type OrderCounts struct {
	// Part is the name of the counter record.
	Part string
	// Complete reports whether the counter record includes all its orders. If Complete is false,
	// ByStatus must not be used.
	Complete bool
	ByStatus StatusCounts
}

// RepOrderCount is one of several counter records of an account rep. The counts in all these records
// add up to the number of the rep's orders.
type RepOrderCount struct {
	EmployeeID EmployeeID
	// Part is the name of the counter record.
	Part string
	// Complete is set only in the counter record "0". It reports whether the rep's counter records
	// include all orders. If it is false, none of the rep's counter records may be used.
	Complete bool
	Orders   int
}

// SumRepOrderCounts returns the sum of an account rep's counter records, and whether they include all
// orders.
func SumRepOrderCounts(parts []*RepOrderCount) (sum int, complete bool) {
	for _, part := range parts {
		sum, complete = sum+part.Orders, complete || part.Complete
	}
	return sum, complete
}

// GroupStatusesByLifecycle divides statuses into groups, in lifecycle order. If an order can change from one
// status to another, directly or through other statuses, the later status is in a later group.
func GroupStatusesByLifecycle(statuses []Status) [][]Status {
	var levels [][]Status
	for len(statuses) > 0 {
		var level, later []Status
		for _, s := range statuses {
			if slices.ContainsFunc(statuses, func(from Status) bool { return from.canReach(s) }) {
				later = append(later, s)
			} else {
				level = append(level, s)
			}
		}
		levels, statuses = append(levels, level), later
	}
	return levels
}

// canReach reports whether an order can change from s to other, directly or through other statuses.
// An order never returns to an earlier status.
func (s Status) canReach(other Status) bool {
	return slices.ContainsFunc(s.Transitions(), func(next Status) bool { return next == other || next.canReach(other) })
}

// ReservesStock reports whether an order with this status reserves stock that has not yet been
// shipped.
func (s Status) ReservesStock() bool { return s == Pending || s == Confirmed }

// MarshalText returns the stored form of the status.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
