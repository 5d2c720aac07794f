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
	// Erasure is the state of the erasure of the customer's personal data. It is empty if only the
	// customer's record was deleted.
	Erasure Erasure
	// ErasedTo is the position that an incomplete erasure has reached: the ID of the last order, with a
	// space and the sort key of its last record if further records of this order follow.
	ErasedTo string
}

// Erasure is the state of an erasure.
type Erasure string

// States of an erasure.
const (
	ErasureIncomplete Erasure = "incomplete"
	ErasureComplete   Erasure = "complete"
)

// Erased reports whether the customer's personal data is erased.
func (c DeletedCustomer) Erased() bool { return c.Erasure == ErasureComplete }

// GuestOrdersClaim is the command to make an order of a guest an order of the customer with the guest's email
// address.
type GuestOrdersClaim struct{ CustomerID CustomerID }

// CustomerErasure is the command to erase the personal data of a customer.
type CustomerErasure struct{ CustomerID CustomerID }
