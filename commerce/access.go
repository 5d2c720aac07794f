package commerce

import (
	"fmt"
	"slices"
	"strings"
)

// Permission names an action or a kind of data. The schema declares the permission of each field,
// and a Policy grants permissions to roles.
type Permission int

// Permissions.
const (
	// ReadViewer is for reading the caller's own role and permissions.
	ReadViewer Permission = iota + 1
	// ReadCatalog is for reading products: names, prices and available stock.
	ReadCatalog
	// ReadCustomer is for reading a customer.
	ReadCustomer
	// ListCustomers is for finding customers by anything but their ID.
	ListCustomers
	// ReadOrder is for reading an order with its line items and timeline, and for subscribing to it.
	ReadOrder
	// ListOrders is for listing the orders of several customers, and for subscribing to them.
	ListOrders
	// ReadActor is for reading who caused an event of an order.
	ReadActor
	// ReadStock is for reading warehouses and their inventory.
	ReadStock
	// ReadContact is for reading the name, job title and phone numbers of the account rep of a
	// customer or an order.
	ReadContact
	// ReadStaff is for reading all other fields of employees, and for finding employees.
	ReadStaff
	// PlaceOrder is for placing orders.
	PlaceOrder
	// ChangeOrder is for a customer's own changes of an order: its line items, its shipping address
	// and its cancellation.
	ChangeOrder
	// FulfilOrder is for confirming, shipping and delivering orders.
	FulfilOrder
	// CreateCustomer is for adding customers.
	CreateCustomer
	// ChangeCustomer is for changing a customer, except for the email address.
	ChangeCustomer
	// ChangeEmail is for changing a customer's email address.
	ChangeEmail
	// AssignRep is for assigning the account rep of a customer.
	AssignRep
	// ChangeStock is for changing the inventory of warehouses.
	ChangeStock
	// ChangeCatalog is for adding and changing products.
	ChangeCatalog
	// ChangeWarehouses is for adding warehouses.
	ChangeWarehouses
	// ChangeStaff is for adding and changing employees.
	ChangeStaff
	// ResolveEntities is for the entity lookups of federation gateways. Each record also needs the
	// permission of its type.
	ResolveEntities
	// ReadSubgraph is for reading the subgraph schema that a federated graph is composed of.
	ReadSubgraph
	// Introspect is for introspection, and for names of the schema in error messages.
	Introspect
	// Explain is for the explain output of a request.
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

// String returns the permission's name in the schema.
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

// ParsePermission returns the permission with a name. It returns false if no permission has the
// name.
func ParsePermission(name string) (Permission, bool) {
	i := slices.Index(permissionNames[1:], name)
	return Permission(i + 1), i >= 0
}

// Grant is the set of records that a permission covers for a role.
type Grant uint8

// Grants, from the narrowest to the widest.
const (
	// GrantNone covers no records.
	GrantNone Grant = iota
	// GrantOwn covers the records of the principal's own customer.
	GrantOwn
	// GrantAll covers all records.
	GrantAll
)

// String returns the grant's name in lower case.
func (g Grant) String() string {
	switch g {
	case GrantOwn:
		return "own"
	case GrantAll:
		return "all"
	default:
		return "none"
	}
}

// Policy maps each role and permission to a grant. It is an immutable value. The zero value grants
// nothing.
type Policy struct {
	grants [RoleService + 1][permissions]Grant
}

// StandardPolicy returns the policy that the server uses.
func StandardPolicy() Policy {
	var p Policy
	for permission, g := range map[Permission][5]Grant{
		// ANONYMOUS, CUSTOMER, STAFF, ADMIN, SERVICE
		ReadViewer:       {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		ReadCatalog:      {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		ReadCustomer:     {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		ListCustomers:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		ReadOrder:        {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		ListOrders:       {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		ReadActor:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		ReadStock:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		ReadContact:      {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		ReadStaff:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PlaceOrder:       {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		ChangeOrder:      {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		FulfilOrder:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		CreateCustomer:   {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		ChangeCustomer:   {GrantNone, GrantOwn, GrantAll, GrantAll, GrantNone},
		ChangeEmail:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		AssignRep:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		ChangeStock:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		ChangeCatalog:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		ChangeWarehouses: {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		ChangeStaff:      {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		ResolveEntities:  {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		ReadSubgraph:     {GrantNone, GrantNone, GrantNone, GrantAll, GrantAll},
		Introspect:       {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		Explain:          {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
	} {
		for i, role := range Roles() {
			p.grants[role][permission] = g[i]
		}
	}
	return p
}

// Grant returns the grant of a permission to a role. It returns None if the role or the permission
// does not exist.
func (p Policy) Grant(role Role, permission Permission) Grant {
	if role < 1 || role > RoleService || permission < 1 || permission >= permissions {
		return GrantNone
	}
	return p.grants[role][permission]
}

// WithGrant returns a copy of the policy with one grant changed. It panics if the role or the
// permission does not exist.
func (p Policy) WithGrant(role Role, permission Permission, g Grant) Policy {
	p.grants[role][permission] = g
	return p
}

// GrantedTo returns the grant of a permission to a principal. It returns None if the grant is Own
// and the principal has no customer.
func (p Policy) GrantedTo(principal Principal, permission Permission) Grant {
	g := p.Grant(principal.Role, permission)
	if g == GrantOwn && principal.Customer == "" {
		return GrantNone
	}
	return g
}

// Permissions returns the permissions of a principal whose grant is Own or All.
func (p Policy) Permissions(principal Principal) []Permission {
	return slices.DeleteFunc(Permissions(), func(permission Permission) bool { return p.GrantedTo(principal, permission) == GrantNone })
}

// CanAccess reports whether a permission gives a principal access to the records of a customer.
func (p Policy) CanAccess(principal Principal, permission Permission, owner CustomerID) bool {
	switch p.GrantedTo(principal, permission) {
	case GrantAll:
		return true
	case GrantOwn:
		return owner == principal.Customer
	default:
		return false
	}
}

// Describe describes the grants of a permission: "Access: customers (their own), staff, admins,
// services." The sentence ends the descriptions of the schema's fields.
func (p Policy) Describe(permission Permission) string {
	names := map[Role]string{RoleAnonymous: "anonymous callers", RoleCustomer: "customers", RoleStaff: "staff", RoleAdmin: "admins", RoleService: "services"}
	var granted []string
	allRoles := true
	for _, role := range Roles() {
		g := p.Grant(role, permission)
		allRoles = allRoles && g == GrantAll
		switch g {
		case GrantAll:
			granted = append(granted, names[role])
		case GrantOwn:
			granted = append(granted, names[role]+" (their own)")
		}
	}
	switch {
	case allRoles:
		return "Access: all callers."
	case len(granted) == 0:
		return "Access: no callers."
	default:
		return fmt.Sprintf("Access: %s.", strings.Join(granted, ", "))
	}
}
