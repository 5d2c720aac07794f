package commerce

import "time"

// Customer is a person or company that places orders.
type Customer struct {
	// ID is the customer's ID. If the ID of a new customer is empty, the server generates an ID.
	ID           CustomerID `json:",omitempty"`
	Name         string
	Email        string
	PhoneNumbers []string `json:",omitempty"`
	// AccountRepID is the employee responsible for the customer.
	AccountRepID EmployeeID `json:",omitempty"`
	// OrderCount is the number of orders that the customer has placed. It is nil if the stored record
	// has no count.
	OrderCount *int `json:"-"`
	// SpendingComplete reports whether the spending records of the customer include all orders. It is
	// always false in a customer read from an edge, which is a copy of the record for one list.
	SpendingComplete bool      `json:"-"`
	CreatedAt        time.Time `json:"-"`
	UpdatedAt        time.Time `json:"-"`
	// Version is incremented by every change. It is 0 in records written by other software.
	Version int `json:"-"`
}
