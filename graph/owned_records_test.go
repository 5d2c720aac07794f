package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// keysIn calls visit for each pair of a partition key and a sort key, or the beginning of a sort key,
// in the requests of an observation.
func keysIn(requests string, visit func(pattern string, k model.Keys)) {
	for line := range strings.Lines(requests) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,[]\n", r) })
		for i := 3; i+1 < len(fields); i++ {
			visit(fields[1], model.Keys{PK: fields[i], SK: fields[i+1]})
		}
	}
}

// ownedEntity returns the entity of a key, if its records have an owner.
func ownedEntity(k model.Keys) (*model.Entity, commerce.CustomerID) {
	for _, e := range model.Entities() {
		if e.Owner != 0 && e.PK.Matches(k.PK) && strings.HasPrefix(k.SK, e.SK.Prefix()) {
			return e, commerce.CustomerID(model.FirstPlaceholderValue(e.PK, k.PK))
		}
	}
	return nil, ""
}

// No caller causes a read of another customer's record, on any path: by key, in a list, as an entity
// of a federated graph, in a subscription or a mutation. The owners come from the model, so a new
// entity and a new access pattern are tested because they are declared. The documents of the matrix
// must read each of them.
func TestRecordsOfOtherCustomersAreNotRead(t *testing.T) {
	t.Parallel()
	rules := documentedRules(t)
	m := newMatrix(t, rules, nil, nil, schemaWithCustomFields(t), newSampleStore(t))
	policy, read := access.StandardPolicy(), map[string]bool{}
	subjects := []recordSet{ownSubject}
	for _, pair := range otherCustomerPairs {
		subjects = append(subjects, pair[0])
	}
	seen := map[string]bool{}
	for _, c := range allCells(t, rules) {
		for _, about := range subjects {
			document := about.in(c.document)
			if seen[document] {
				continue
			}
			seen[document] = true
			for _, principal := range principals() {
				keysIn(m.executeRequest(principal, about, c.document).requests, func(pattern string, k model.Keys) {
					e, owner := ownedEntity(k)
					if e == nil {
						return
					}
					read[e.Name], read[pattern] = true, true
					if scope := (access.Viewer{Principal: principal, Policy: policy}).Records(e.Owner); !scope.Includes(owner) {
						t.Errorf("%s %s, %s: %s reads %s %s", principal.Role, principal.Customer, document, pattern, k.PK, k.SK)
					}
				})
			}
		}
	}
	for _, p := range model.AccessPatterns() {
		owned := slices.Contains(p.PK.Placeholders(), "customerId")
		if owned != (p.Owner != 0) {
			t.Errorf("%s reads %s, but the Owner of its entity is %s", p.ID, p.PK, p.Owner)
		}
		if owned && !read[p.ID] {
			t.Errorf("no document of the matrix uses %s: add one to documentsByType", p.ID)
		}
	}
	for _, e := range model.Entities() {
		if e.Owner != 0 && !read[e.Name] {
			t.Errorf("no document of the matrix reads a record of the entity %s: add one to documentsByType", e.Name)
		}
	}
}

// A list in the index mixes the records of all customers, so no role may have access to only its own
// records in such a list.
func TestIndexListsAreNotLimitedToOwnRecords(t *testing.T) {
	patterns, checked := map[string]model.AccessPattern{}, 0
	for _, p := range model.AccessPatterns() {
		patterns[p.ID] = p
	}
	for name, r := range documentedRules(t) {
		typ, field, _ := strings.Cut(name, ".")
		d := parsedSchema.Types[typ]
		if d == nil || d.Fields.ForName(field) == nil {
			continue
		}
		for _, reads := range d.Fields.ForName(field).Directives.ForNames("reads") {
			if patterns[reads.Arguments.ForName("pattern").Value.Raw].Index == "" {
				continue
			}
			checked++
			permission, _ := access.ParsePermission(r.permission)
			for _, role := range access.Roles() {
				if access.StandardPolicy().GrantForRole(role, permission) == access.GrantOwn {
					t.Errorf("%s has access to its own records in %s, but the key of this list contains no owner", role, name)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d lists were checked", checked)
	}
}
