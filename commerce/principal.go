package commerce

// Role is what somebody who asks may do in general. The zero value may do nothing.
type Role int

// Roles.
const (
	// RoleAnonymous is for requests without a token, on a server that accepts them.
	RoleAnonymous Role = iota + 1
	// RoleCustomer is for somebody who buys, and sees the own records.
	RoleCustomer
	// RoleStaff is for those who work on orders and stock.
	RoleStaff
	// RoleAdmin is for those who run the shop.
	RoleAdmin
	// RoleService is for other programs: a gateway, a payment provider's webhook.
	RoleService
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleAnonymous, RoleCustomer, RoleStaff, RoleAdmin, RoleService}
}

var roleNames = [...]string{RoleAnonymous: "ANONYMOUS", RoleCustomer: "CUSTOMER", RoleStaff: "STAFF", RoleAdmin: "ADMIN", RoleService: "SERVICE"}

// String is the role's name as tokens and the schema have it.
func (r Role) String() string {
	if r < RoleAnonymous || r > RoleService {
		return "NOBODY"
	}
	return roleNames[r]
}

// TokenRoles returns the roles that tokens can have.
func TokenRoles() []Role { return Roles()[1:] }

// ParseRole returns the role that a token names, and false if there is no such role.
func ParseRole(name string) (Role, bool) {
	for _, role := range TokenRoles() {
		if role.String() == name {
			return role, true
		}
	}
	return 0, false
}

// Principal is who makes a request. The zero value is nobody.
type Principal struct {
	// ID identifies the principal: its rate limit and its idempotency keys belong to this ID.
	// Tokens of another issuer, subject or customer have another ID. It holds no '#'.
	ID string
	// Name is the actor in the events of orders: the subject of the token. Principals with
	// different IDs can share a name.
	Name string
	// Role is what the principal may do.
	Role Role
	// Customer is the own record of a principal of RoleCustomer, else empty.
	Customer CustomerID
}

// Everybody is the principal of all requests to a server without authentication: everything is open
// to them.
func Everybody() Principal { return Principal{ID: "anonymous", Name: "anonymous", Role: RoleAdmin} }
