package commerce

import (
	"fmt"
	"slices"
)

// Status is where an order stands. The zero Status is none of them.
type Status int

// The statuses in the order of an order's life.
const (
	Pending Status = iota + 1
	Confirmed
	Shipped
	Delivered
	Cancelled
)

var statusNames = [...]string{Pending: "pending", Confirmed: "confirmed", Shipped: "shipped", Delivered: "delivered", Cancelled: "cancelled"}

// Statuses returns all statuses in the order of an order's life.
func Statuses() []Status { return []Status{Pending, Confirmed, Shipped, Delivered, Cancelled} }

// ParseStatus reads a status as it is stored, in lower case.
//
// Errors: InvalidError for any other text.
func ParseStatus(s string) (Status, error) {
	if i := slices.Index(statusNames[1:], s); i >= 0 {
		return Status(i + 1), nil
	}
	return 0, Invalid("is %q, which is no status", s)
}

// String returns the status as it is stored, in lower case.
func (s Status) String() string {
	if s < Pending || s > Cancelled {
		return fmt.Sprintf("status(%d)", int(s))
	}
	return statusNames[s]
}

// Transitions returns the statuses that an order can move to from s, none where s is final.
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

// StatusCounts is a number of orders for each status. The element 0 is not used.
type StatusCounts [Cancelled + 1]int

// StatusCount is the number of orders in one status.
type StatusCount struct {
	Status Status
	Count  int
}

// SumOrderCounts adds up the parts of a count. It returns false if a part is not complete.
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

// OrderCounts is how many orders are in each status, of one part of all orders.
type OrderCounts struct {
	// Part is the name of the part.
	Part string
	// Complete reports whether all orders of the part are counted. Otherwise ByStatus counts only
	// some changes, and means nothing.
	Complete bool
	ByStatus StatusCounts
}

// RepOrders is the number of orders of an account rep, of one part of these orders.
type RepOrders struct {
	EmployeeID EmployeeID
	// Part is the name of the part.
	Part string
	// Complete reports, in the part "0", whether all orders of all parts are counted. Otherwise the
	// numbers count only some orders, and mean nothing.
	Complete bool
	Orders   int
}

// SumRepOrders adds up the parts of a count. It returns false if the count is not complete.
func SumRepOrders(parts []*RepOrders) (sum int, complete bool) {
	for _, part := range parts {
		sum, complete = sum+part.Orders, complete || part.Complete
	}
	return sum, complete
}

// Levels groups statuses in lifecycle order: an order that moves from one of them to another,
// directly or through other statuses, moves to a later level.
func Levels(statuses []Status) [][]Status {
	var levels [][]Status
	for len(statuses) > 0 {
		var level, later []Status
		for _, s := range statuses {
			if slices.ContainsFunc(statuses, func(from Status) bool { return from.leadsTo(s) }) {
				later = append(later, s)
			} else {
				level = append(level, s)
			}
		}
		levels, statuses = append(levels, level), later
	}
	return levels
}

// leadsTo reports whether an order can move from s to other, directly or through other statuses. An
// order never returns to a status it has left.
func (s Status) leadsTo(other Status) bool {
	return slices.ContainsFunc(s.Transitions(), func(next Status) bool { return next == other || next.leadsTo(other) })
}

// Reserves reports whether an order in this status holds stock back that has not left a warehouse
// yet.
func (s Status) Reserves() bool { return s == Pending || s == Confirmed }

// MarshalText writes the status as it is stored.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
