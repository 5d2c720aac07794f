package access_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
)

func TestPermissionsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range access.Permissions() {
		if back, ok := access.ParsePermission(p.String()); !ok || back != p || seen[p.String()] {
			t.Errorf("permission %d has the name %s, which parses to %d", p, p, back)
		}
		seen[p.String()] = true
	}
	for _, name := range []string{"", "NOTHING", "read_order", access.Permission(0).String(), access.Permission(999).String()} {
		if p, ok := access.ParsePermission(name); ok {
			t.Errorf("ParsePermission(%q) = %s, want no permission", name, p)
		}
	}
}

// Callers without a token have access to the catalog, to their own role and permissions, and to
// entity lookups. Customers also have access to their own records. Only admins have all
// permissions.
func TestStandardPolicy(t *testing.T) {
	policy := access.StandardPolicy()
	own := map[access.Permission]bool{
		access.PermissionReadCustomer: true, access.PermissionReadOrder: true, access.PermissionReadNote: true, access.PermissionReadContact: true, access.PermissionPlaceOrder: true, access.PermissionChangeOrder: true, access.PermissionChangeCustomer: true,
	}
	for _, p := range access.Permissions() {
		want := access.GrantNone
		switch {
		case own[p]:
			want = access.GrantOwn
		case p == access.PermissionReadViewer, p == access.PermissionReadCatalog, p == access.PermissionResolveEntities:
			want = access.GrantAll
		}
		if got := policy.GrantForRole(access.RoleCustomer, p); got != want {
			t.Errorf("customers are granted %s of %s, want %s", got, p, want)
		}
		if got := policy.GrantForRole(access.RoleAnonymous, p); (got == access.GrantAll) != (want == access.GrantAll) || got == access.GrantOwn {
			t.Errorf("callers without a token are granted %s of %s", got, p)
		}
		for _, role := range []access.Role{access.RoleStaff, access.RoleService} {
			if policy.GrantForRole(role, p) == access.GrantOwn {
				t.Errorf("%s has no customer, but is granted its own records with %s", role, p)
			}
		}
		if got := policy.GrantForRole(access.RoleAdmin, p); got != access.GrantAll {
			t.Errorf("admins are granted %s of %s", got, p)
		}
		for _, unknown := range []access.Role{0, -1, 99} {
			if got := policy.GrantForRole(unknown, p); got != access.GrantNone {
				t.Errorf("role %d is granted %s of %s", unknown, got, p)
			}
		}
	}
	everything := policy.WithGrant(access.RoleAdmin, 0, access.GrantAll).WithGrant(0, access.PermissionReadOrder, access.GrantAll)
	for _, p := range []access.Permission{-1, 0, 999} {
		if got := everything.GrantForRole(access.RoleAdmin, p); got != access.GrantNone {
			t.Errorf("permission %d, which does not exist, is granted: %s", p, got)
		}
	}
	if got := everything.GrantForRole(0, access.PermissionReadOrder); got != access.GrantNone {
		t.Errorf("role 0 is granted %s", got)
	}
}

func TestSentences(t *testing.T) {
	policy := access.StandardPolicy()
	for p, want := range map[access.Permission]string{
		access.PermissionReadCatalog:    "Access: all callers.",
		access.PermissionReadOrder:      "Access: customers (their own), staff, admins, services.",
		access.PermissionChangeCustomer: "Access: customers (their own), staff, admins, services.",
		access.PermissionChangeStaff:    "Access: admins.",
	} {
		if got := policy.DescribeGrants(p); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	if got := (access.Policy{}).DescribeGrants(access.PermissionReadOrder); got != "Access: no callers." {
		t.Errorf("the empty policy: %q", got)
	}
}

// With changes one grant and leaves the others as they are. ScopeOf agrees with the grant.
func TestPolicies(t *testing.T) {
	roles := rapid.SampledFrom(access.Roles())
	grants := rapid.SampledFrom([]access.GrantScope{access.GrantNone, access.GrantOwn, access.GrantAll})
	permissions := rapid.SampledFrom(access.Permissions())
	customers := rapid.SampledFrom([]commerce.CustomerID{"", "ann", "bob"})
	rapid.Check(t, func(t *rapid.T) {
		before := access.StandardPolicy()
		role, permission, grant := roles.Draw(t, "role"), permissions.Draw(t, "permission"), grants.Draw(t, "grant")
		after := before.WithGrant(role, permission, grant)
		for _, r := range append(access.Roles(), 0) {
			for _, p := range access.Permissions() {
				want := before.GrantForRole(r, p)
				if r == role && p == permission {
					want = grant
				}
				if got := after.GrantForRole(r, p); got != want {
					t.Fatalf("%s of %s for %s, want %s", got, p, r, want)
				}
			}
		}
		principal := access.Principal{ID: "x", Role: role, Customer: customers.Draw(t, "own")}
		owner := customers.Draw(t, "owner")
		want := grant == access.GrantAll || grant == access.GrantOwn && principal.Customer != "" && owner == principal.Customer
		scope := after.ScopeOf(principal, permission)
		if got := scope.Includes(owner); got != want {
			t.Fatalf("%+v with the grant %s has access to the records of customer %q: %v", principal, grant, owner, got)
		}
		if scope.IsEmpty() == scope.Includes(principal.Customer) || scope.All() != (grant == access.GrantAll) {
			t.Fatalf("%+v with the grant %s has the scope %+v", principal, grant, scope)
		}
	})
}
