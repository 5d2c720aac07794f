package commerce

// Role determines the permissions of a principal. The zero value has no permissions.
type Role int

// Roles.
const (
	// RoleAnonymous is for requests without a token, if the server accepts requests without a token.
	RoleAnonymous Role = iota + 1
	// RoleCustomer is for customers, who have access to their own records.
	RoleCustomer
	// RoleStaff is for employees who work on orders and stock.
	RoleStaff
	// RoleAdmin is for administrators.
	RoleAdmin
	// RoleService is for other programs, such as a gateway or a payment provider's webhook.
	RoleService
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleAnonymous, RoleCustomer, RoleStaff, RoleAdmin, RoleService}
}

var roleNames = [...]string{RoleAnonymous: "ANONYMOUS", RoleCustomer: "CUSTOMER", RoleStaff: "STAFF", RoleAdmin: "ADMIN", RoleService: "SERVICE"}

// String returns the role's name in tokens and in the schema.
func (r Role) String() string {
	if r < RoleAnonymous || r > RoleService {
		return "NOBODY"
	}
	return roleNames[r]
}

// RolesAllowedInTokens returns the roles that tokens can have.
func RolesAllowedInTokens() []Role { return Roles()[1:] }

// ParseRole returns the role that a token names. It returns false if the name is not a role that
// tokens can have.
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
	// ID identifies the principal in rate limits and idempotency keys. Tokens with different issuers,
	// subjects or customers have different IDs. The ID does not contain '#'.
	ID string
	// Name is the subject of the token. Events of orders store this name as the actor. Principals with
	// different IDs can have the same name.
	Name string
	// Role is the role of the principal.
	Role Role
	// Customer is the ID of the principal's own customer record. It is empty unless Role is
	// RoleCustomer.
	Customer CustomerID
}

// AnonymousAdmin returns the principal of all requests to a server without authentication. The
// principal has the role of an administrator.
func AnonymousAdmin() Principal {
	return Principal{ID: "anonymous", Name: "anonymous", Role: RoleAdmin}
}
