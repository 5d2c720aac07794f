package access

import "github.com/ordergraph/ordergraph/commerce"

// Role determines the permissions of a principal. The zero value has no permissions.
type Role int

// Roles.
const (
	// RoleAnonymous is the role of requests without a token. The server rejects such requests unless
	// it is configured to accept them.
	RoleAnonymous Role = iota + 1
	// RoleCustomer is for customers. They have access only to their own records.
	RoleCustomer
	// RoleStaff is for employees who work on orders and stock.
	RoleStaff
	// RoleAdmin is for administrators.
	RoleAdmin
	// RoleService is for other programs, such as a payment provider's webhook.
	RoleService
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleAnonymous, RoleCustomer, RoleStaff, RoleAdmin, RoleService}
}

var roleNames = [...]string{RoleAnonymous: "ANONYMOUS", RoleCustomer: "CUSTOMER", RoleStaff: "STAFF", RoleAdmin: "ADMIN", RoleService: "SERVICE"}

// String returns the name of the role, as it appears in tokens and in the GraphQL schema.
func (r Role) String() string {
	if r < RoleAnonymous || r > RoleService {
		return "NOBODY"
	}
	return roleNames[r]
}

// RolesAllowedInTokens returns the roles that a token can contain.
func RolesAllowedInTokens() []Role { return Roles()[1:] }

// ParseRole returns the role with the given name. It returns false if RolesAllowedInTokens does not
// contain such a role.
func ParseRole(name string) (Role, bool) {
	for _, role := range RolesAllowedInTokens() {
		if role.String() == name {
			return role, true
		}
	}
	return 0, false
}

// Principal is the authenticated identity of a request. The zero value has no permissions.
type Principal struct {
	// ID identifies the principal by its issuer, subject and customer. It becomes part of DynamoDB
	// keys, so it must not contain '#'.
	ID string
	// Name is the subject of the token. The events of an order store this name as the actor.
	// Principals with different IDs can have the same name.
	Name string
	// Role is the role of the principal.
	Role Role
	// Customer is the ID of the principal's own customer record. It is empty unless Role is
	// RoleCustomer.
	Customer commerce.CustomerID
}

// AnonymousAdmin returns the principal that a server without authentication uses for all requests.
// This principal has the role of an administrator.
func AnonymousAdmin() Principal {
	return Principal{ID: "anonymous", Name: "anonymous", Role: RoleAdmin}
}
