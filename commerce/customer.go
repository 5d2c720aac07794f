package commerce

import "time"

// Customer is a person or company that places orders.
type Customer struct {
	// ID is the customer's ID. If the ID of a new customer is empty, the server generates an ID.
	ID           CustomerID `json:",omitempty"`
	Name         string
	Email        string
	PhoneNumbers []string `json:",omitempty"`
	// AccountRepID is the ID of the employee who is responsible for the customer. It may be empty.
	AccountRepID EmployeeID `json:",omitempty"`
	// OrderCount is the number of orders that the customer has placed. It is nil if the stored record
	// has no count.
	OrderCount *int `json:"-"`
	// SpendingComplete is true if the customer's spending records include all orders of the customer.
	// If the customer was read from a list that omits this attribute, it is always false.
	SpendingComplete bool         `json:"-"`
	CustomFields     CustomValues `json:",omitzero"`
	CreatedAt        time.Time    `json:"-"`
	UpdatedAt        time.Time    `json:"-"`
	// Version increases with every change. It is 0 if the record was written by other software.
	Version int `json:"-"`
}

// DeletedCustomer is a customer whose record was deleted. The customer's orders remain.
type DeletedCustomer struct {
	ID        CustomerID
	DeletedAt time.Time
}
