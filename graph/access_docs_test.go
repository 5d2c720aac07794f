package graph

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

const accessDocs = "../docs/access.md"

// unruled returns the object types without a rule: they come with the field that gives them. The
// generated ones are connections, edges and payloads.
func unruled(t *testing.T) []string {
	names := []string{
		"Address", "Money", "PageInfo", "QuotedLine", "_Service",
		"AddressMissing", "AlreadyExists", "EmailTaken", "IdempotencyKeyReused", "InsufficientStock", "InvalidInput", "InvalidTransition", "NotFound", "PriceChanged", "ReservationLimit", "TooManyLines",
		"VersionConflict",
	}
	for _, d := range own(t) {
		for _, generated := range []string{"Connection", "Edge", "Payload"} {
			if strings.HasSuffix(d.Name, generated) {
				names = append(names, d.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// written is the permission that the schema's text gives an element, empty where it gives none.
func written(directives ast.DirectiveList) string {
	if d := directives.ForName("access"); d != nil {
		return d.Arguments.ForName("permission").Value.Raw
	}
	return ""
}

// Every field of a type has an access rule, from the field or from its type. The types of unruled
// are the exceptions. A type with rules implements no interface, which could bypass the rules.
func TestEveryFieldHasARule(t *testing.T) {
	var without []string
	for _, d := range own(t) {
		if d.Kind != ast.Object {
			if written(d.Directives) != "" {
				t.Errorf("%s has an access rule without effect, because it is not an object type", d.Name)
			}
			continue
		}
		whole, some, all := written(d.Directives), false, true
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			rule := written(f.Directives)
			some, all = some || rule != "", all && rule != ""
			if rule != "" && rule == whole {
				t.Errorf("%s.%s repeats the access rule of its type", d.Name, f.Name)
			}
		}
		switch {
		case whole == "" && !some:
			without = append(without, d.Name)
		case whole == "" && !all:
			t.Errorf("only some fields of %s have an access rule", d.Name)
		case len(d.Interfaces) > 0:
			t.Errorf("%s has access rules although it implements %v", d.Name, d.Interfaces)
		}
	}
	if want := unruled(t); !slices.Equal(without, want) {
		t.Errorf("the types without an access rule are %v, want %v", without, want)
	}
	for _, d := range own(t) {
		if d.Kind == ast.Union && d.Name != "_Entity" {
			t.Errorf("the access rules do not cover the members that the union %s returns", d.Name)
		}
	}
}

// The schema and commerce have the same permissions.
func TestPermissionsOfTheSchema(t *testing.T) {
	var names, known []string
	for _, v := range parsedSchema.Types["Permission"].EnumValues {
		names = append(names, v.Name)
	}
	for _, p := range access.Permissions() {
		known = append(known, p.String())
	}
	if !slices.Equal(names, known) {
		t.Errorf("the schema declares the permissions %v, package commerce %v", names, known)
	}
}

// lastLine matches text that belongs into the last line of a description.
var lastLine = regexp.MustCompile(`Access:|\b[AW]P\d+`)

// The description of a type ends with a line that lists the roles with access. The description of a
// field ends so if its roles differ. The line begins with the cost.
func TestDescriptionsEndWithRoles(t *testing.T) {
	policy := access.StandardPolicy()
	sentence := func(permission string) string {
		p, ok := access.ParsePermission(permission)
		if !ok {
			return ""
		}
		return policy.DescribeGrants(p)
	}
	check := func(what, description, want string) {
		text, line, _ := strings.Cut(description, "\n\n")
		line = strings.Join(strings.Fields(line), " ")
		if mentioned := lastLine.FindString(text); mentioned != "" {
			t.Errorf("%s: %q belongs into the last line of the description, after an empty line", what, mentioned)
		}
		switch {
		case want == "" && strings.Contains(line, "Access:"):
			t.Errorf("%s: the last line %q repeats the roles of the type", what, line)
		case want != "" && !strings.HasSuffix(line, want):
			t.Errorf("%s: the description ends with %q, want %q", what, line, want)
		}
	}
	for _, d := range own(t) {
		if d.Kind != ast.Object && d.Kind != ast.InputObject {
			continue
		}
		whole := sentence(written(d.Directives))
		check(d.Name, d.Description, whole)
		for _, f := range d.Fields {
			want := sentence(written(f.Directives))
			if want == whole {
				want = ""
			}
			check(d.Name+"."+f.Name, f.Description, want)
		}
	}
}

// docs/access.md shows the policy, and what needs each permission: types, and the fields whose rule
// is not their type's.
func TestGoldenAccessDocs(t *testing.T) {
	needing := map[string][]string{"INTROSPECT": {"`Query.__schema`", "`Query.__type`"}}
	need := func(permission, what string) {
		if permission != "" {
			needing[permission] = append(needing[permission], "`"+what+"`")
		}
	}
	for _, d := range own(t) {
		if d.Kind == ast.Object || d.Kind == ast.InputObject {
			need(written(d.Directives), d.Name)
			for _, f := range d.Fields {
				need(written(f.Directives), d.Name+"."+f.Name)
			}
		}
	}
	policy := access.StandardPolicy()
	header := []string{"permission"}
	for _, role := range access.Roles() {
		header = append(header, role.String())
	}
	rows := [][]string{append(header, "types and fields")}
	for _, p := range access.Permissions() {
		row := []string{"`" + p.String() + "`"}
		for _, role := range access.Roles() {
			row = append(row, strings.Replace(policy.GrantForRole(role, p).String(), "none", "–", 1))
		}
		rows = append(rows, append(row, strings.Join(needing[p.String()], " ")))
	}
	golden.CheckSection(t, accessDocs, "permissions", markdown.Table(rows))
}
