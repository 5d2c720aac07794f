package commerce

import "slices"

// Role is what somebody who asks may do in general. The zero value may do nothing.
type Role int

// Roles.
const (
	// RoleCustomer is for somebody who buys, and sees the own records.
	RoleCustomer Role = iota + 1
	// RoleStaff is for those who work on orders and stock.
	RoleStaff
	// RoleAdmin is for those who run the shop.
	RoleAdmin
	// RoleService is for other programs: a gateway, a payment provider's webhook.
	RoleService
)

// Roles returns all roles.
func Roles() []Role { return []Role{RoleCustomer, RoleStaff, RoleAdmin, RoleService} }

var roleNames = [...]string{RoleCustomer: "CUSTOMER", RoleStaff: "STAFF", RoleAdmin: "ADMIN", RoleService: "SERVICE"}

// String is the role's name as tokens have it.
func (r Role) String() string {
	if r < RoleCustomer || r > RoleService {
		return "NOBODY"
	}
	return roleNames[r]
}

// ParseRole returns the role of a name, false where there is none.
func ParseRole(name string) (Role, bool) {
	i := slices.Index(roleNames[1:], name)
	return Role(i + 1), i >= 0
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

// Anonymous is who makes a request where nobody is asked who they are: everything is open to them.
func Anonymous() Principal { return Principal{ID: "anonymous", Name: "anonymous", Role: RoleAdmin} }
