package commerce

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is the right to read or change one kind of data. The GraphQL schema declares the
// permission that each field requires. A Policy grants permissions to roles.
type Permission int

// Permissions.
const (
	// PermissionReadViewer allows reading the caller's own role and permissions.
	PermissionReadViewer Permission = iota + 1
	// PermissionReadCatalog allows reading products: names, prices and available stock.
	PermissionReadCatalog
	// PermissionReadCustomer allows reading a customer.
	PermissionReadCustomer
	// PermissionListCustomers allows listing all customers, and finding customers by name or email
	// address.
	PermissionListCustomers
	// PermissionReadOrder allows reading an order with its line items and timeline. It also allows
	// subscribing to the changes of this order.
	PermissionReadOrder
	// PermissionListOrders allows listing the orders of all customers. It also allows subscribing to
	// the status changes of all orders.
	PermissionListOrders
	// PermissionReadActor allows reading the name of the caller who caused an event in an order's
	// timeline.
	PermissionReadActor
	// PermissionReadNote allows reading the notes in an order's timeline. GrantOwn covers only the notes
	// that the caller's own customer account wrote.
	PermissionReadNote
	// PermissionReadStock allows reading warehouses and their inventory.
	PermissionReadStock
	// PermissionReadContact allows reading the name, job title and phone numbers of an employee who is
	// responsible for a customer or an order.
	PermissionReadContact
	// PermissionReadStaff allows listing employees. It also allows reading all fields of an employee
	// that do not require PermissionReadContact.
	PermissionReadStaff
	// PermissionPlaceOrder allows placing orders.
	PermissionPlaceOrder
	// PermissionChangeOrder allows cancelling an order, and changing its line items or shipping
	// address.
	PermissionChangeOrder
	// PermissionFulfilOrder allows confirming, shipping and delivering orders.
	PermissionFulfilOrder
	// PermissionCreateCustomer allows adding customers.
	PermissionCreateCustomer
	// PermissionChangeCustomer allows changing a customer's record, but not the email address.
	PermissionChangeCustomer
	// PermissionChangeEmail allows changing a customer's email address.
	PermissionChangeEmail
	// PermissionAssignRep allows choosing the employee who is responsible for a customer.
	PermissionAssignRep
	// PermissionChangeStock allows changing the inventory of warehouses.
	PermissionChangeStock
	// PermissionChangeCatalog allows adding and changing products.
	PermissionChangeCatalog
	// PermissionChangeWarehouses allows adding warehouses.
	PermissionChangeWarehouses
	// PermissionChangeStaff allows adding and changing employees.
	PermissionChangeStaff
	// PermissionResolveEntities allows a GraphQL federation gateway to look up entities by key. To
	// read an entity, a caller also needs the permission of the entity's type.
	PermissionResolveEntities
	// PermissionReadSubgraph allows reading the schema of this federation subgraph.
	PermissionReadSubgraph
	// PermissionIntrospect allows introspection. Without this permission, error messages contain the
	// name of a type or field only if the request contains it.
	PermissionIntrospect
	// PermissionExplain allows requesting the explain output, which lists the DynamoDB requests of an
	// operation.
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
	PermissionReadNote:         "READ_NOTE",
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

// String returns the permission's name in the GraphQL schema, such as READ_ORDER. It returns
// NOTHING if the permission does not exist.
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

// ParsePermission returns the permission with the given name. It returns false if no permission has
// this name.
func ParsePermission(name string) (Permission, bool) {
	i := slices.Index(permissionNames[1:], name)
	return Permission(i + 1), i >= 0
}

// GrantScope is the set of records that a permission covers for one role.
type GrantScope uint8

// The scopes, from the narrowest to the widest.
const (
	// GrantNone covers no records.
	GrantNone GrantScope = iota
	// GrantOwn covers only the records of the caller's own customer account.
	GrantOwn
	// GrantAll covers all records.
	GrantAll
)

// String returns the name of the scope in lower case, such as "own".
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
		// The columns are the roles ANONYMOUS, CUSTOMER, STAFF, ADMIN and SERVICE.
		PermissionReadViewer:       {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		PermissionReadCatalog:      {GrantAll, GrantAll, GrantAll, GrantAll, GrantAll},
		PermissionReadCustomer:     {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionListCustomers:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadOrder:        {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionListOrders:       {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadActor:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionReadNote:         {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
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

// GrantForRole returns the scope of a role's permission. If the role or the permission does not
// exist, GrantForRole returns GrantNone.
func (p Policy) GrantForRole(role Role, permission Permission) GrantScope {
	if role < 1 || role > RoleService || permission < 1 || permission >= permissionsEnd {
		return GrantNone
	}
	return p.grants[role][permission]
}

// WithGrant returns a copy of the policy in which the permission of the given role has the scope g.
// The role and the permission must exist.
func (p Policy) WithGrant(role Role, permission Permission, g GrantScope) Policy {
	p.grants[role][permission] = g
	return p
}

// GrantForPrincipal returns the scope of a principal's permission. A principal without a customer
// account gets GrantNone instead of GrantOwn.
func (p Policy) GrantForPrincipal(principal Principal, permission Permission) GrantScope {
	g := p.GrantForRole(principal.Role, permission)
	if g == GrantOwn && principal.Customer == "" {
		return GrantNone
	}
	return g
}

// Permissions returns the permissions that a principal has, either for all records or for its own
// records only.
func (p Policy) Permissions(principal Principal) []Permission {
	return slices.DeleteFunc(Permissions(), func(permission Permission) bool { return p.GrantForPrincipal(principal, permission) == GrantNone })
}

// CanAccess reports whether the permission gives the principal access to the records of a customer.
// owner is the ID of this customer.
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

// DescribeGrants returns a sentence that lists the roles with a permission, such as "Access:
// customers (their own), staff, admins, services." In the GraphQL schema, the description of a
// field ends with such a sentence.
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
