package commerce

import "time"

// Customer is someone who buys.
type Customer struct {
	// ID is made where a new customer has none.
	ID           CustomerID `json:",omitempty"`
	Name         string
	Email        string
	PhoneNumbers []string `json:",omitempty"`
	// AccountRepID is the employee who looks after the customer.
	AccountRepID EmployeeID `json:",omitempty"`
	// OrderCount is how many orders the customer has placed; nil where the record that was read
	// keeps no count.
	OrderCount *int `json:"-"`
	// SpendingComplete reports whether all orders of the customer are in the records of the
	// customer's spending. Edges do not tell.
	SpendingComplete bool      `json:"-"`
	CreatedAt        time.Time `json:"-"`
	UpdatedAt        time.Time `json:"-"`
	// Version goes up with every change; 0 where other software wrote the record.
	Version int `json:"-"`
}
