package operation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// AccessChecker checks whether a caller may use the fields of an operation. @access in the schema
// declares the permission of a field.
type AccessChecker struct {
	// Policy grants permissions to roles. It can limit a permission to the caller's own records.
	// access.Scope then hides all other records.
	Policy access.Policy
	// fields maps a field to the permission that its own @access declares, or else the @access of
	// its type. If both are missing, the field requires undeclaredPermission. Except for root
	// types, types without any @access are omitted.
	fields map[*ast.FieldDefinition]access.Permission
	// TypePermissions maps the name of a type to the permission that its @access declares.
	TypePermissions map[string]access.Permission
	// inputs maps each input field with @access to the permission that callers need to set it. The
	// permission of the mutation, not of the input field, decides which records the caller may
	// change.
	inputs map[*ast.FieldDefinition]access.Permission
	schema *ast.Schema
	// introspection is true if introspection is enabled on the server.
	introspection bool
}

// undeclaredPermission is the permission of a field whose @access was forgotten. No policy grants
// it.
const undeclaredPermission access.Permission = 0

// accessDirective is the name of the directive that declares permissions in the schema.
const accessDirective = "access"

// NewAccessChecker returns an AccessChecker for the permissions that a schema declares. If policy
// is nil, access.StandardPolicy applies. introspection is true if introspection is enabled.
func NewAccessChecker(schema *ast.Schema, policy *access.Policy, introspection bool) AccessChecker {
	a := AccessChecker{
		fields: map[*ast.FieldDefinition]access.Permission{}, TypePermissions: map[string]access.Permission{},
		inputs: map[*ast.FieldDefinition]access.Permission{}, schema: schema, introspection: introspection,
	}
	if a.Policy = access.StandardPolicy(); policy != nil {
		a.Policy = *policy
	}
	roots := []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription}
	for name, d := range schema.Types {
		if d.Kind == ast.InputObject {
			for _, f := range d.Fields {
				if permission, ok := declaredPermission(f.Directives); ok {
					a.inputs[f] = permission
				}
			}
		}
		if d.Kind != ast.Object || d.BuiltIn {
			continue
		}
		typePermission, guarded := declaredPermission(d.Directives)
		if guarded {
			a.TypePermissions[name] = typePermission
		}
		for _, root := range roots {
			guarded = guarded || d == root
		}
		for _, f := range d.Fields {
			_, declared := declaredPermission(f.Directives)
			guarded = guarded || declared
		}
		if !guarded {
			continue // fields that return this type require the permission instead
		}
		for _, f := range d.Fields {
			switch permission, declared := declaredPermission(f.Directives); {
			case declared:
				a.fields[f] = permission
			case strings.HasPrefix(f.Name, "__"): // GraphQL reserves such names for introspection
				a.fields[f] = access.PermissionIntrospect
			default:
				a.fields[f] = typePermission
			}
		}
	}
	return a
}

// RequireRoles restricts a field of an object or of an input to callers with one of the given roles.
func (a *AccessChecker) RequireRoles(f *ast.FieldDefinition, roles []access.Role) {
	var permission access.Permission
	a.Policy, permission = a.Policy.WithRoles(roles)
	if _, guarded := a.fields[f]; guarded {
		a.fields[f] = permission
	} else {
		a.inputs[f] = permission
	}
}

// declaredPermission returns the permission in the @access directive. If there is no such
// directive, it returns false.
func declaredPermission(directives ast.DirectiveList) (access.Permission, bool) {
	d := directives.ForName(accessDirective)
	if d == nil {
		return undeclaredPermission, false
	}
	p, _ := access.ParsePermission(d.Arguments.ForName("permission").Value.Raw)
	return p, true
}

// HidesSchema reports whether the principal may not see the schema. Errors may then mention a
// schema name only if the request contains it.
func (a AccessChecker) HidesSchema(principal access.Principal) bool {
	return !a.introspection || a.Policy.ScopeOf(principal, access.PermissionIntrospect).IsEmpty()
}

// MaySelect reports whether the principal may select a field of an object, at least for some records.
func (a AccessChecker) MaySelect(principal access.Principal, f *ast.FieldDefinition) bool {
	permission, guarded := a.fields[f]
	return !guarded || !a.Policy.ScopeOf(principal, permission).IsEmpty()
}

// Check returns an error if the operation selects fields or sets input fields that the caller may
// not use. It returns only one error, because the caller needs another token for all of them. The
// variables must already be coerced.
func (a AccessChecker) Check(principal access.Principal, operation *Prepared, variables map[string]any) *gqlerror.Error {
	forbidden := func(p access.Permission) bool { return a.Policy.ScopeOf(principal, p).IsEmpty() }
	if !slices.ContainsFunc(operation.permissions, forbidden) {
		return nil
	}
	c := accessCheck{AccessChecker: a, principal: principal, forbidden: forbidden, variables: variables}
	operation.Root.each(func(f *Field) {
		if f.guarded && forbidden(f.Permission) {
			c.fields.add(f.Name, f.Position)
		}
		for _, argument := range f.Field.Arguments {
			c.literal(f.Definition.Arguments.ForName(argument.Name).Type, argument.Value)
		}
	})
	return c.err()
}

// FieldPermissions returns the permissions that the fields of an operation require. It ignores the
// fields with @skip or @include, and the permissions of input fields.
func (p *Prepared) FieldPermissions() (permissions []access.Permission) {
	p.Root.each(func(f *Field) {
		if f.guarded && !f.Optional && !slices.Contains(permissions, f.Permission) {
			permissions = append(permissions, f.Permission)
		}
	})
	return permissions
}

// accessCheck collects the fields and the input fields of an operation that the principal may not
// use.
type accessCheck struct {
	AccessChecker
	principal           access.Principal
	forbidden           func(access.Permission) bool
	variables           map[string]any
	fields, inputFields forbiddenNames
}

// forbiddenNames contains the different names of forbidden fields in the order of the document, and
// their positions. There are at most errcode.MaxErrors positions.
type forbiddenNames struct {
	names     []string
	positions []*ast.Position
}

func (f *forbiddenNames) add(name string, position *ast.Position) {
	if !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
	if len(f.positions) < errcode.MaxErrors && !slices.Contains(f.positions, position) {
		f.positions = append(f.positions, position)
	}
}

// maxListedNames is the maximum number of names in the message of an error.
const maxListedNames = 5

// list returns the names after a noun, such as `fields "a", "b" and 3 more`.
func (f *forbiddenNames) list(noun string) string {
	if len(f.names) == 1 {
		return fmt.Sprintf("%s %q", noun, f.names[0])
	}
	quoted := make([]string, 0, maxListedNames)
	for _, name := range f.names[:min(len(f.names), maxListedNames)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	last := len(quoted) - 1
	if more := len(f.names) - len(quoted); more > 0 {
		return fmt.Sprintf("%ss %s and %d more", noun, strings.Join(quoted, ", "), more)
	}
	return fmt.Sprintf("%ss %s and %s", noun, strings.Join(quoted[:last], ", "), quoted[last])
}

// err returns the error for the collected fields, or nil if there are none.
func (c *accessCheck) err() *gqlerror.Error {
	var actions []string
	if len(c.fields.names) > 0 {
		actions = append(actions, "use the "+c.fields.list("field"))
	}
	if len(c.inputFields.names) > 0 {
		actions = append(actions, "set the "+c.inputFields.list("input field"))
	}
	positions := slices.Concat(c.fields.positions, c.inputFields.positions)
	if len(positions) == 0 {
		return nil
	}
	err := PermissionError(positions[0], c.principal, strings.Join(actions, " or "))
	for _, p := range positions[1:] {
		err.Locations = append(err.Locations, gqlerror.Location{Line: p.Line, Column: p.Column})
	}
	return err
}

// literal checks the input fields of a value in the document. t is the type of the value.
func (c *accessCheck) literal(t *ast.Type, v *ast.Value) {
	switch v.Kind {
	case ast.Variable:
		c.value(t, c.variables[v.Raw], v.Position)
	case ast.ListValue:
		for _, child := range v.Children {
			c.literal(t, child.Value)
		}
	case ast.ObjectValue:
		definition := c.schema.Types[t.Name()]
		for _, child := range v.Children {
			f := definition.Fields.ForName(child.Name)
			if f == nil {
				continue // the object is the value of a custom scalar
			}
			if child.Value.Kind != ast.NullValue && (child.Value.Kind != ast.Variable || c.variables[child.Value.Raw] != nil) {
				c.input(f, child.Position)
			}
			c.literal(f.Type, child.Value)
		}
	}
}

// value checks the input fields of a variable's coerced value. t is the type of the value, and
// position is the position of the variable in the document.
func (c *accessCheck) value(t *ast.Type, value any, position *ast.Position) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			c.value(t, element, position)
		}
	case map[string]any:
		for _, f := range c.schema.Types[t.Name()].Fields {
			if given := value[f.Name]; given != nil {
				c.input(f, position)
				c.value(f.Type, given, position)
			}
		}
	}
}

// input records the input field f if the principal's role may not set it.
func (c *accessCheck) input(f *ast.FieldDefinition, position *ast.Position) {
	if permission, guarded := c.inputs[f]; guarded && c.forbidden(permission) {
		c.inputFields.add(f.Name, position)
	}
}

// PermissionError returns UNAUTHENTICATED for a caller without a token, otherwise FORBIDDEN. action
// is a verb phrase, such as "use this mutation".
func PermissionError(position *ast.Position, principal access.Principal, action string) *gqlerror.Error {
	if principal.Role == access.RoleAnonymous {
		return errcode.New(position, errcode.Unauthenticated, "a request without a token may not %s: send a token as Authorization: Bearer TOKEN, or remove this part of the request", action)
	}
	return errcode.New(position, errcode.Forbidden, "%s may not %s: remove this part of the request, or use a token with this permission", principal.Role, action)
}
