package commerce_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

func TestPermissionsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range commerce.Permissions() {
		if back, ok := commerce.ParsePermission(p.String()); !ok || back != p || seen[p.String()] {
			t.Errorf("permission %d has the name %s, which parses to %d", p, p, back)
		}
		seen[p.String()] = true
	}
	for _, name := range []string{"", "NOTHING", "read_order", commerce.Permission(0).String(), commerce.Permission(999).String()} {
		if p, ok := commerce.ParsePermission(name); ok {
			t.Errorf("ParsePermission(%q) = %s, want no permission", name, p)
		}
	}
}

// Callers without a token have access to the catalog, to their own role and permissions, and to
// entity lookups. Customers also have access to their own records. Only admins have all
// permissions.
func TestStandardPolicy(t *testing.T) {
	policy := commerce.StandardPolicy()
	own := map[commerce.Permission]bool{
		commerce.PermissionReadCustomer: true, commerce.PermissionReadOrder: true, commerce.PermissionReadNote: true, commerce.PermissionReadContact: true, commerce.PermissionPlaceOrder: true, commerce.PermissionChangeOrder: true, commerce.PermissionChangeCustomer: true,
	}
	for _, p := range commerce.Permissions() {
		want := commerce.GrantNone
		switch {
		case own[p]:
			want = commerce.GrantOwn
		case p == commerce.PermissionReadViewer, p == commerce.PermissionReadCatalog, p == commerce.PermissionResolveEntities:
			want = commerce.GrantAll
		}
		if got := policy.GrantForRole(commerce.RoleCustomer, p); got != want {
			t.Errorf("customers are granted %s of %s, want %s", got, p, want)
		}
		if got := policy.GrantForRole(commerce.RoleAnonymous, p); (got == commerce.GrantAll) != (want == commerce.GrantAll) || got == commerce.GrantOwn {
			t.Errorf("callers without a token are granted %s of %s", got, p)
		}
		for _, role := range []commerce.Role{commerce.RoleStaff, commerce.RoleService} {
			if policy.GrantForRole(role, p) == commerce.GrantOwn {
				t.Errorf("%s has no customer, but is granted its own records with %s", role, p)
			}
		}
		if got := policy.GrantForRole(commerce.RoleAdmin, p); got != commerce.GrantAll {
			t.Errorf("admins are granted %s of %s", got, p)
		}
		for _, unknown := range []commerce.Role{0, -1, 99} {
			if got := policy.GrantForRole(unknown, p); got != commerce.GrantNone {
				t.Errorf("role %d is granted %s of %s", unknown, got, p)
			}
		}
	}
	everything := policy.WithGrant(commerce.RoleAdmin, 0, commerce.GrantAll).WithGrant(0, commerce.PermissionReadOrder, commerce.GrantAll)
	for _, p := range []commerce.Permission{-1, 0, 999} {
		if got := everything.GrantForRole(commerce.RoleAdmin, p); got != commerce.GrantNone {
			t.Errorf("permission %d, which does not exist, is granted: %s", p, got)
		}
	}
	if got := everything.GrantForRole(0, commerce.PermissionReadOrder); got != commerce.GrantNone {
		t.Errorf("role 0 is granted %s", got)
	}
}

func TestSentences(t *testing.T) {
	policy := commerce.StandardPolicy()
	for p, want := range map[commerce.Permission]string{
		commerce.PermissionReadCatalog:    "Access: all callers.",
		commerce.PermissionReadOrder:      "Access: customers (their own), staff, admins, services.",
		commerce.PermissionChangeCustomer: "Access: customers (their own), staff, admins.",
		commerce.PermissionChangeStaff:    "Access: admins.",
	} {
		if got := policy.DescribeGrants(p); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	if got := (commerce.Policy{}).DescribeGrants(commerce.PermissionReadOrder); got != "Access: no callers." {
		t.Errorf("the empty policy: %q", got)
	}
}

// With changes one grant and leaves the others as they are. Sees and Granted agree with the grant.
func TestPolicies(t *testing.T) {
	roles := rapid.SampledFrom(commerce.Roles())
	grants := rapid.SampledFrom([]commerce.GrantScope{commerce.GrantNone, commerce.GrantOwn, commerce.GrantAll})
	permissions := rapid.SampledFrom(commerce.Permissions())
	customers := rapid.SampledFrom([]commerce.CustomerID{"", "ann", "bob"})
	rapid.Check(t, func(t *rapid.T) {
		before := commerce.StandardPolicy()
		role, permission, grant := roles.Draw(t, "role"), permissions.Draw(t, "permission"), grants.Draw(t, "grant")
		after := before.WithGrant(role, permission, grant)
		for _, r := range append(commerce.Roles(), 0) {
			for _, p := range commerce.Permissions() {
				want := before.GrantForRole(r, p)
				if r == role && p == permission {
					want = grant
				}
				if got := after.GrantForRole(r, p); got != want {
					t.Fatalf("%s of %s for %s, want %s", got, p, r, want)
				}
			}
		}
		principal := commerce.Principal{ID: "x", Role: role, Customer: customers.Draw(t, "own")}
		owner := customers.Draw(t, "owner")
		want := grant == commerce.GrantAll || grant == commerce.GrantOwn && principal.Customer != "" && owner == principal.Customer
		if got := after.CanAccess(principal, permission, owner); got != want {
			t.Fatalf("%+v with the grant %s has access to the records of customer %q: %v", principal, grant, owner, got)
		}
		if (after.GrantForPrincipal(principal, permission) == commerce.GrantNone) == (after.CanAccess(principal, permission, principal.Customer)) {
			t.Fatalf("%+v is granted %s, but access to its own records is %v", principal, after.GrantForPrincipal(principal, permission), after.CanAccess(principal, permission, principal.Customer))
		}
	})
}
