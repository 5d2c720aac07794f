package commerce

import "fmt"

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

// ParseStatus reads a status as the table spells it, in lower case.
//
// Errors: InvalidError for any other text.
func ParseStatus(s string) (Status, error) {
	for _, status := range Statuses() {
		if statusNames[status] == s {
			return status, nil
		}
	}
	return 0, Invalid("is %q, which is no status", s)
}

// String returns the status as the table spells it, in lower case.
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

// Reserves tells whether an order in this status holds stock back that has not left a warehouse yet.
func (s Status) Reserves() bool { return s == Pending || s == Confirmed }

// MarshalText writes the status as the table spells it.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
