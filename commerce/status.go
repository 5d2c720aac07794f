package commerce

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// ParseStatus parses the name of a status in lower case, such as "pending". The table stores
// statuses in this form.
//
// ParseStatus returns an InvalidError if s is not such a name.
func ParseStatus(s string) (Status, error) {
	if i := slices.Index(statusNames[1:], s); i >= 0 {
		return Status(i + 1), nil
	}
	return 0, NewInvalidError("is %q, which is not a status: use a lower-case status such as pending", s)
}

// String returns the form in which the table stores the status, such as "pending".
func (s Status) String() string {
	if s < Pending || s > Cancelled {
		return fmt.Sprintf("status(%d)", int(s))
	}
	return statusNames[s]
}

// enumNames returns the names of stored values in the GraphQL API, as in "PENDING or CONFIRMED".
func enumNames[T any](stored ...T) string {
	names := make([]string, len(stored))
	for i, s := range stored {
		names[i] = strings.ToUpper(fmt.Sprint(s))
	}
	return strings.Join(names, " or ")
}

// countPieces returns a number of pieces as text, such as "1 piece".
func countPieces(n int) string {
	if n == 1 {
		return "1 piece"
	}
	return strconv.Itoa(n) + " pieces"
}

// Transitions returns the statuses to which an order with the status s can change. It returns nil
// if s is a final status.
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

// StatusCounts contains the number of orders in each status. The index of an element is the status.
// Element 0 is not used, because the statuses start at 1.
type StatusCounts [Cancelled + 1]int

// StatusCount is the number of orders in one status.
type StatusCount struct {
	Status Status
	Count  int
}

// SumOrderCounts returns the number of orders in each status. The parameter parts must contain all
// counter records, because each one counts only some of the orders. complete is the number of
// counter records with the field Complete.
func SumOrderCounts(parts []*OrderCounts) (sum []*StatusCount, complete int) {
	for _, s := range Statuses() {
		sum = append(sum, &StatusCount{Status: s})
	}
	for _, part := range parts {
		for _, s := range sum {
			s.Count += part.ByStatus[s.Status]
		}
		if part.Complete {
			complete++
		}
	}
	return sum, complete
}

// OrderCounts is a counter record. It counts some of the orders, by status. The table has several
// counter records, so that fewer transactions conflict.
type OrderCounts struct {
	// Part is the number of the counter record, as text. Shard is its shard, or empty.
	Part, Shard string
	// Complete reports whether the counter record includes every order that it must count. If Complete
	// is false in a record that every table has, the counts must not be used. Other counter records
	// exist only since an order was counted in them, and do not have this field.
	Complete bool
	ByStatus StatusCounts
}

// RepOrderCount is a counter record that counts some of an account rep's orders. The sum of all
// counter records of the rep is the number of the rep's orders.
type RepOrderCount struct {
	EmployeeID EmployeeID
	// Part is the number of the counter record, as text.
	Part string
	// Complete is true if the rep's counter records together include all orders of the rep. It is set
	// only in the counter record with Part "0".
	Complete bool
	Orders   int
}

// SumRepOrderCounts returns the sum of an account rep's counter records. complete reports whether
// these records include all orders of the rep.
func SumRepOrderCounts(parts []*RepOrderCount) (sum int, complete bool) {
	for _, part := range parts {
		sum, complete = sum+part.Orders, complete || part.Complete
	}
	return sum, complete
}

// GroupStatusesByLifecycle divides statuses into groups, in lifecycle order. If an order can change
// from status A to status B, directly or through other statuses, B is in a later group than A.
func GroupStatusesByLifecycle(statuses []Status) [][]Status {
	var groups [][]Status
	for len(statuses) > 0 {
		var group, later []Status
		for _, s := range statuses {
			if slices.ContainsFunc(statuses, func(from Status) bool { return from.canReach(s) }) {
				later = append(later, s)
			} else {
				group = append(group, s)
			}
		}
		groups, statuses = append(groups, group), later
	}
	return groups
}

// canReach reports whether an order can change from s to other, directly or through other statuses.
// The recursion ends, because an order never returns to an earlier status.
func (s Status) canReach(other Status) bool {
	return slices.ContainsFunc(s.Transitions(), func(next Status) bool { return next == other || next.canReach(other) })
}

// ReservesStock reports whether an order with this status reserves stock. The stock is reserved
// until the order is shipped or cancelled.
func (s Status) ReservesStock() bool { return s == Pending || s == Confirmed }

// MarshalText returns the form in which the table stores the status, such as "pending".
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
