package access

import "github.com/ordergraph/ordergraph/commerce"

// Scope is a set of customers. Its owner may access the records of these customers, and no records
// of other customers. The zero value contains no customer.
type Scope struct {
	all      bool
	customer commerce.CustomerID
}

// OnlyCustomer returns the scope that contains one customer. If id is empty, the scope contains all
// customers.
func OnlyCustomer(id commerce.CustomerID) Scope { return Scope{all: id == "", customer: id} }

// IsEmpty reports whether the scope contains no customer.
func (s Scope) IsEmpty() bool { return !s.all && s.customer == "" }

// All reports whether the scope contains all customers.
func (s Scope) All() bool { return s.all }

// Customer returns the only customer in the scope. If the scope contains all customers or none, it
// returns an empty ID.
func (s Scope) Customer() commerce.CustomerID { return s.customer }

// Includes reports whether the scope contains the customer who owns a record.
func (s Scope) Includes(owner commerce.CustomerID) bool {
	return s.all || s.customer != "" && s.customer == owner
}

// Viewer is the principal that reads records, with its policy. If the viewer may not read a record,
// the server responds as if the record did not exist.
type Viewer struct {
	Principal Principal
	Policy    Policy
}

// Records returns the customers whose records of an entity the viewer may read. owner is the
// entity's Owner in the model. If it is 0, no customer owns the records, so all may be read.
func (v Viewer) Records(owner Permission) Scope {
	if owner == 0 {
		return Scope{all: true}
	}
	return v.Policy.ScopeOf(v.Principal, owner)
}

// NoteVisibilityOf returns who can read the note of an event. If the event has no note, or the viewer
// may not read it, NoteVisibilityOf returns "".
func (v Viewer) NoteVisibilityOf(e *commerce.Event) commerce.NoteVisibility {
	if v.NoteOf(e) == "" {
		return ""
	}
	return e.NoteVisibility()
}

// NoteOf returns the note of an event. If the viewer may not read the note, NoteOf returns "".
func (v Viewer) NoteOf(e *commerce.Event) string {
	notes := v.Records(PermissionReadNote)
	// A customer can read the notes to a guest, because the customer has claimed the order.
	if e.ChangesItems() || notes.Includes(e.NoteCustomerID) || e.NoteCustomerID.IsGuest() && !notes.IsEmpty() {
		return e.Note
	}
	return ""
}
