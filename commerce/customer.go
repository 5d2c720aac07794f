package commerce

import "time"

// Customer is a person or company that places orders.
type Customer struct {
	// ID is generated for a new customer without an ID.
	ID           CustomerID `json:",omitempty"`
	Name         string
	Email        string
	PhoneNumbers []string `json:",omitempty"`
	// AccountRepID is the employee responsible for the customer.
	AccountRepID EmployeeID `json:",omitempty"`
	// OrderCount is the number of orders that the customer has placed. It is nil if the record that
	// was read has no count.
	OrderCount *int `json:"-"`
	// SpendingComplete reports whether the spending records of the customer include all orders. It is
	// always false in customers read from an edge.
	SpendingComplete bool      `json:"-"`
	CreatedAt        time.Time `json:"-"`
	UpdatedAt        time.Time `json:"-"`
	// Version is incremented by every change. It is 0 in external records.
	Version int `json:"-"`
}
