package access

import (
	"fmt"
	"slices"
	"strings"
)

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
	// roles contains the roles with each permission that WithRoles has added.
	roles [][]Role
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
		PermissionAdjustOrder:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionFulfilOrder:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionRecordPayment:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionRefundFreely:     {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionCreateCustomer:   {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionChangeCustomer:   {GrantNone, GrantOwn, GrantAll, GrantAll, GrantAll},
		PermissionEraseCustomer:    {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		PermissionChangeEmail:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionAssignRep:        {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionChangeStock:      {GrantNone, GrantNone, GrantAll, GrantAll, GrantAll},
		PermissionChangeCatalog:    {GrantNone, GrantNone, GrantAll, GrantAll, GrantNone},
		PermissionChangeWarehouses: {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		PermissionChangeStaff:      {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
		PermissionManageWebhooks:   {GrantNone, GrantNone, GrantNone, GrantAll, GrantNone},
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
	if added := int(permission) - permissionsEnd; added >= 0 && added < len(p.roles) && slices.Contains(p.roles[added], role) {
		return GrantAll
	}
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

// WithRoles returns a copy of the policy with a new permission, which the given roles have for all
// records.
func (p Policy) WithRoles(roles []Role) (Policy, Permission) {
	p.roles = append(slices.Clone(p.roles), roles)
	return p, Permission(permissionsEnd + len(p.roles) - 1)
}

// Permissions returns the permissions that a principal has, either for all records or for its own
// records only.
func (p Policy) Permissions(principal Principal) []Permission {
	return slices.DeleteFunc(Permissions(), func(permission Permission) bool { return p.ScopeOf(principal, permission).IsEmpty() })
}

// ScopeOf returns the customers whose records a permission allows the principal to access.
func (p Policy) ScopeOf(principal Principal, permission Permission) Scope {
	switch p.GrantForRole(principal.Role, permission) {
	case GrantAll:
		return Scope{all: true}
	case GrantOwn:
		return Scope{customer: principal.Customer}
	default:
		return Scope{}
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
