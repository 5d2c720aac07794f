package commerce

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is the right to read or change one kind of data. The schema declares the permission
// that each field requires, and a Policy grants permissions to roles.
type Permission int

// Permissions.
const (
	// PermissionReadViewer allows reading the caller's own role and permissions.
	PermissionReadViewer Permission = iota + 1
	// PermissionReadCatalog allows reading products: names, prices and available stock.
	PermissionReadCatalog
	// PermissionReadCustomer allows reading a customer.
	PermissionReadCustomer
	// PermissionListCustomers allows listing customers, and finding customers by name or email
	// address.
	PermissionListCustomers
	// PermissionReadOrder allows reading an order with its line items and timeline, and subscribing to
	// its changes.
	PermissionReadOrder
	// PermissionListOrders allows listing the orders of several customers, and subscribing to changes
	// of these orders.
	PermissionListOrders
	// PermissionReadActor allows reading the name of the caller who caused an event of an order.
	PermissionReadActor
	// PermissionReadStock allows reading warehouses and their inventory.
	PermissionReadStock
	// PermissionReadContact allows reading the name, job title and phone numbers of the employee
	// responsible for a customer or an order.
	PermissionReadContact
	// PermissionReadStaff allows reading the fields of employees that PermissionReadContact does not
	// cover, and listing employees.
	PermissionReadStaff
	// PermissionPlaceOrder allows placing orders.
	PermissionPlaceOrder
	// PermissionChangeOrder allows changing the line items or the shipping address of an order, and
	// cancelling an order.
	PermissionChangeOrder
	// PermissionFulfilOrder allows confirming, shipping and delivering orders.
	PermissionFulfilOrder
	// PermissionCreateCustomer allows adding customers.
	PermissionCreateCustomer
	// PermissionChangeCustomer allows changing a customer's record, except for the email address.
	PermissionChangeCustomer
	// PermissionChangeEmail allows changing a customer's email address.
	PermissionChangeEmail
	// PermissionAssignRep allows assigning the employee responsible for a customer.
	PermissionAssignRep
	// PermissionChangeStock allows changing the inventory of warehouses.
	PermissionChangeStock
	// PermissionChangeCatalog allows adding and changing products.
	PermissionChangeCatalog
	// PermissionChangeWarehouses allows adding warehouses.
	PermissionChangeWarehouses
	// PermissionChangeStaff allows adding and changing employees.
	PermissionChangeStaff
	// PermissionResolveEntities allows a federation gateway to look up entities. Each entity also
	// requires the permission of its type.
	PermissionResolveEntities
	// PermissionReadSubgraph allows reading the schema of this subgraph, for schema composition.
	PermissionReadSubgraph
	// PermissionIntrospect allows introspection. Error messages then contain the names of types and
	// fields.
	PermissionIntrospect
	// PermissionExplain allows the explain output of a request.
	PermissionExplain

	permissionsEnd = iota + 1
)

var permissionNames = [permissionsEnd]string{
	PermissionReadViewer:       "READ_VIEWER",
	PermissionReadCatalog:      "READ_CATALOG",
	PermissionReadCustomer:     "READ_CUSTOMER",
	PermissionListCustomers:    "LIST_CUSTOMERS",
	PermissionReadOrder:        "READ_ORDER",
	PermissionListOrders:       "LIST_ORDERS",
	PermissionReadActor:        "READ_ACTOR",
	PermissionReadStock:        "READ_STOCK",
	PermissionReadContact:      "READ_CONTACT",
	PermissionReadStaff:        "READ_STAFF",
	PermissionPlaceOrder:       "PLACE_ORDER",
	PermissionChangeOrder:      "CHANGE_ORDER",
	PermissionFulfilOrder:      "FULFIL_ORDER",
	PermissionCreateCustomer:   "CREATE_CUSTOMER",
	PermissionChangeCustomer:   "CHANGE_CUSTOMER",
	PermissionChangeEmail:      "CHANGE_EMAIL",
	PermissionAssignRep:        "ASSIGN_REP",
	PermissionChangeStock:      "CHANGE_STOCK",
	PermissionChangeCatalog:    "CHANGE_CATALOG",
	PermissionChangeWarehouses: "CHANGE_WAREHOUSES",
	PermissionChangeStaff:      "CHANGE_STAFF",
	PermissionResolveEntities:  "RESOLVE_ENTITIES",
	PermissionReadSubgraph:     "READ_SUBGRAPH",
	PermissionIntrospect:       "INTROSPECT",
	PermissionExplain:          "EXPLAIN",
}

// String returns the permission's name in the schema.
func (p Permission) String() string {
	if p < 1 || p >= permissionsEnd {
		return "NOTHING"
	}
	return permissionNames[p]
}

// Permissions returns all permissions.
func Permissions() []Permission {
	all := make([]Permission, 0, permissionsEnd-1)
	for p := Permission(1); p < permissionsEnd; p++ {
		all = append(all, p)
	}
	return all
}

// ParsePermission returns the permission with this name. It returns false if the name is unknown.
func ParsePermission(name string) (Permission, bool) {
	i := slices.Index(permissionNames[1:], name)
	return Permission(i + 1), i >= 0
}

// GrantScope is the set of records that a permission covers for a role.
type GrantScope uint8

// Grants, from the narrowest to the widest.
const (
	// GrantNone covers no records.
	GrantNone GrantScope = iota
	// GrantOwn covers the records of the principal's own customer.
	GrantOwn
	// GrantAll covers all records.
	GrantAll
)

// String returns the grant's name in lower case.
func (g GrantScope) String() string {
	switch g {
	case GrantOwn:
		return "own"
	case GrantAll:
		return "all"
	default:
		return "none"
	}
}

// Policy grants permissions to roles. A Policy is immutable. The zero value grants no permission.
type Policy struct {
	grants [RoleService + 1][permissionsEnd]GrantScope
}

// StandardPolicy returns the policy that the server uses.
func StandardPolicy() Policy {
	var p Policy
	for permission, g := range map[Permission][5]GrantScope{
		// ANONYMOUS, CUSTOMER, STAFF, ADMIN, SERVICE
		PermissionReadViewer:       {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		PermissionReadCatalog:      {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		PermissionReadCustomer:     {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionListCustomers:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadOrder:        {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionListOrders:       {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadActor:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadStock:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadContact:      {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionReadStaff:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionPlaceOrder:       {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionChangeOrder:      {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionFulfilOrder:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionCreateCustomer:   {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionChangeCustomer:   {GrantNone, GrantOwn, GrantAll, GrantAll, GrantNone},
		PermissionChangeEmail:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionAssignRep:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionChangeStock:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionChangeCatalog:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionChangeWarehouses: {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		PermissionChangeStaff:      {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		PermissionResolveEntities:  {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		PermissionReadSubgraph:     {GrantNone, GrantNone, GrantNone, GrantAll, GrantAll},
		PermissionIntrospect:       {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionExplain:          {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
	} {
		for i, role := range Roles() {
			p.grants[role][permission] = g[i]
		}
	}
	return p
}

// GrantForRole returns the grant of a permission to a role. It returns GrantNone if the role or the
// permission does not exist.
func (p Policy) GrantForRole(role Role, permission Permission) GrantScope {
	if role < 1 || role > RoleService || permission < 1 || permission >= permissionsEnd {
		return GrantNone
	}
	return p.grants[role][permission]
}

// WithGrant returns a copy of the policy with one grant changed. It panics if the role or the
// permission does not exist.
func (p Policy) WithGrant(role Role, permission Permission, g GrantScope) Policy {
	p.grants[role][permission] = g
	return p
}

// GrantForPrincipal returns the grant of a permission to a principal. It returns GrantNone if the role has
// GrantOwn, but the principal has no customer.
func (p Policy) GrantForPrincipal(principal Principal, permission Permission) GrantScope {
	g := p.GrantForRole(principal.Role, permission)
	if g == GrantOwn && principal.Customer == "" {
		return GrantNone
	}
	return g
}

// Permissions returns the permissions that a principal has for its own records or for all records.
func (p Policy) Permissions(principal Principal) []Permission {
	return slices.DeleteFunc(Permissions(), func(permission Permission) bool { return p.GrantForPrincipal(principal, permission) == GrantNone })
}

// CanAccess reports whether a permission gives a principal access to the records of a customer.
func (p Policy) CanAccess(principal Principal, permission Permission, owner CustomerID) bool {
	switch p.GrantForPrincipal(principal, permission) {
	case GrantAll:
		return true
	case GrantOwn:
		return owner == principal.Customer
	default:
		return false
	}
}

// DescribeGrants returns a sentence that lists the roles with a permission, such as "Access: customers
// (their own), staff, admins, services." This sentence ends the description of a field.
func (p Policy) DescribeGrants(permission Permission) string {
	names := map[Role]string{RoleAnonymous: "anonymous callers", RoleCustomer: "customers", RoleStaff: "staff", RoleAdmin: "admins", RoleService: "services"}
	var granted []string
	allRoles := true
	for _, role := range Roles() {
		g := p.GrantForRole(role, permission)
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
