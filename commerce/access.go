package commerce

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is a name for something that somebody may do or see. The schema says of its fields
// which permission they need, and a Policy says whom it is granted to.
type Permission int

// Permissions.
const (
	// ReadViewer is for reading the caller's own role and permissions.
	ReadViewer Permission = iota + 1
	// ReadCatalog is for products: names, prices, how many can be sold.
	ReadCatalog
	// ReadCustomer is for a customer's record.
	ReadCustomer
	// ListCustomers is for finding customers other than by id.
	ListCustomers
	// ReadOrder is for an order with its items and its timeline, and for following it.
	ReadOrder
	// ListOrders is for lists of orders of more than one customer, and for following them.
	ListOrders
	// ReadActor is for who did something to an order.
	ReadActor
	// ReadStock is for warehouses and what lies in them.
	ReadStock
	// ReadContact is for how to reach the employee who looks after a customer or an order: name,
	// job and phone numbers.
	ReadContact
	// ReadStaff is for all else of employees, and for finding them.
	ReadStaff
	// PlaceOrder is for placing orders.
	PlaceOrder
	// ChangeOrder is for what those who ordered may change of an order: its items, its address,
	// calling it off.
	ChangeOrder
	// FulfilOrder is for what the shop does with an order: accepting, shipping, delivering.
	FulfilOrder
	// CreateCustomer is for adding customers.
	CreateCustomer
	// ChangeCustomer is for a customer, but not for the e-mail address.
	ChangeCustomer
	// ChangeEmail is for a customer's e-mail address.
	ChangeEmail
	// AssignRep is for naming who looks after a customer.
	AssignRep
	// ChangeStock is for what lies in warehouses.
	ChangeStock
	// ChangeCatalog is for adding and changing products.
	ChangeCatalog
	// ChangeWarehouses is for adding warehouses.
	ChangeWarehouses
	// ChangeStaff is for adding and changing employees.
	ChangeStaff
	// ResolveEntities is for looking up records as gateways do; each record then needs the
	// permission of its type.
	ResolveEntities
	// ReadSubgraph is for the schema as those who compose a federated graph want it.
	ReadSubgraph
	// Introspect is for asking for the schema, and for being told of it in error messages.
	Introspect
	// Explain is for seeing what a request read.
	Explain

	permissions = iota + 1
)

var permissionNames = [permissions]string{
	ReadViewer:       "READ_VIEWER",
	ReadCatalog:      "READ_CATALOG",
	ReadCustomer:     "READ_CUSTOMER",
	ListCustomers:    "LIST_CUSTOMERS",
	ReadOrder:        "READ_ORDER",
	ListOrders:       "LIST_ORDERS",
	ReadActor:        "READ_ACTOR",
	ReadStock:        "READ_STOCK",
	ReadContact:      "READ_CONTACT",
	ReadStaff:        "READ_STAFF",
	PlaceOrder:       "PLACE_ORDER",
	ChangeOrder:      "CHANGE_ORDER",
	FulfilOrder:      "FULFIL_ORDER",
	CreateCustomer:   "CREATE_CUSTOMER",
	ChangeCustomer:   "CHANGE_CUSTOMER",
	ChangeEmail:      "CHANGE_EMAIL",
	AssignRep:        "ASSIGN_REP",
	ChangeStock:      "CHANGE_STOCK",
	ChangeCatalog:    "CHANGE_CATALOG",
	ChangeWarehouses: "CHANGE_WAREHOUSES",
	ChangeStaff:      "CHANGE_STAFF",
	ResolveEntities:  "RESOLVE_ENTITIES",
	ReadSubgraph:     "READ_SUBGRAPH",
	Introspect:       "INTROSPECT",
	Explain:          "EXPLAIN",
}

// String is the permission's name as the schema has it.
func (p Permission) String() string {
	if p < 1 || p >= permissions {
		return "NOTHING"
	}
	return permissionNames[p]
}

// Permissions returns all permissions.
func Permissions() []Permission {
	all := make([]Permission, 0, permissions-1)
	for p := Permission(1); p < permissions; p++ {
		all = append(all, p)
	}
	return all
}

// ParsePermission returns the permission of a name, and false if there is no such permission.
func ParsePermission(name string) (Permission, bool) {
	i := slices.Index(permissionNames[1:], name)
	return Permission(i + 1), i >= 0
}

// Grant is how far a permission goes.
type Grant uint8

// Grants, from the least to the most.
const (
	// None is no permission at all.
	None Grant = iota
	// Own is for the records of the principal's own customer.
	Own
	// All is for all records.
	All
)

// String is a word for the grant.
func (g Grant) String() string {
	switch g {
	case Own:
		return "own"
	case All:
		return "all"
	default:
		return "none"
	}
}

// Policy says which role is granted what. It is a value: With makes another one. The zero value
// grants nothing.
type Policy struct {
	grants [RoleService + 1][permissions]Grant
}

// StandardPolicy is the policy of the shop.
func StandardPolicy() Policy {
	var p Policy
	for permission, g := range map[Permission][5]Grant{
		// ANONYMOUS, CUSTOMER, STAFF, ADMIN, SERVICE
		ReadViewer:       {All, All, All, All, All},
		ReadCatalog:      {All, All, All, All, All},
		ReadCustomer:     {None, Own, All, All, All},
		ListCustomers:    {None, None, All, All, All},
		ReadOrder:        {None, Own, All, All, All},
		ListOrders:       {None, None, All, All, All},
		ReadActor:        {None, None, All, All, All},
		ReadStock:        {None, None, All, All, All},
		ReadContact:      {None, Own, All, All, All},
		ReadStaff:        {None, None, All, All, All},
		PlaceOrder:       {None, Own, All, All, All},
		ChangeOrder:      {None, Own, All, All, All},
		FulfilOrder:      {None, None, All, All, All},
		CreateCustomer:   {None, None, All, All, All},
		ChangeCustomer:   {None, Own, All, All, None},
		ChangeEmail:      {None, None, All, All, None},
		AssignRep:        {None, None, All, All, None},
		ChangeStock:      {None, None, All, All, All},
		ChangeCatalog:    {None, None, All, All, None},
		ChangeWarehouses: {None, None, None, All, None},
		ChangeStaff:      {None, None, None, All, None},
		ResolveEntities:  {All, All, All, All, All},
		ReadSubgraph:     {None, None, None, All, All},
		Introspect:       {None, None, All, All, All},
		Explain:          {None, None, All, All, None},
	} {
		for i, role := range Roles() {
			p.grants[role][permission] = g[i]
		}
	}
	return p
}

// Grant is what a role is granted of a permission; None of one that does not exist.
func (p Policy) Grant(role Role, permission Permission) Grant {
	if role < 1 || role > RoleService || permission < 1 || permission >= permissions {
		return None
	}
	return p.grants[role][permission]
}

// With is the policy with one grant changed. It panics where the role or the permission does not
// exist.
func (p Policy) With(role Role, permission Permission, g Grant) Policy {
	p.grants[role][permission] = g
	return p
}

// Granted is what a principal is granted of a permission. Somebody who is granted the own records
// and has none is granted None.
func (p Policy) Granted(to Principal, permission Permission) Grant {
	g := p.Grant(to.Role, permission)
	if g == Own && to.Customer == "" {
		return None
	}
	return g
}

// Permissions returns the permissions of a principal, for all records or only for their own.
func (p Policy) Permissions(of Principal) []Permission {
	return slices.DeleteFunc(Permissions(), func(permission Permission) bool { return p.Granted(of, permission) == None })
}

// Sees reports whether a permission lets a principal at what belongs to a customer.
func (p Policy) Sees(who Principal, permission Permission, owner CustomerID) bool {
	switch p.Granted(who, permission) {
	case All:
		return true
	case Own:
		return owner == who.Customer
	default:
		return false
	}
}

// Sentence says who is granted a permission: "Access: customers (their own), staff, admins,
// services." It ends the descriptions of the schema.
func (p Policy) Sentence(permission Permission) string {
	names := map[Role]string{RoleAnonymous: "anonymous callers", RoleCustomer: "customers", RoleStaff: "staff", RoleAdmin: "admins", RoleService: "services"}
	var who []string
	everybody := true
	for _, role := range Roles() {
		g := p.Grant(role, permission)
		everybody = everybody && g == All
		switch g {
		case All:
			who = append(who, names[role])
		case Own:
			who = append(who, names[role]+" (their own)")
		}
	}
	switch {
	case everybody:
		return "Access: all callers."
	case len(who) == 0:
		return "Access: no role."
	default:
		return fmt.Sprintf("Access: %s.", strings.Join(who, ", "))
	}
}
