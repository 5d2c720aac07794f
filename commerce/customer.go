package commerce

import "time"

// Customer is someone who buys.
type Customer struct {
	ID           CustomerID
	Name         string
	Email        string
	PhoneNumbers []string
	// AccountRepID is the employee who looks after the customer.
	AccountRepID EmployeeID
	// OrderCount is how many orders the customer has placed; nil where the record that was read
	// keeps no count.
	OrderCount *int
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Version goes up with every change; 0 where other software wrote the record.
	Version int
}
