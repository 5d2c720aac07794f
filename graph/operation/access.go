package operation

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// AccessChecker checks whether a caller may use the fields of an operation. The @access directive in the
// schema declares the permission that a field requires. The policy grants permissions to roles.
//
// Check rejects a field before anything is read if the caller's role does not have the permission.
// A role can also have a permission only for the caller's own records. All other records then look
// like missing records. They are hidden by the loaders (loaders.Viewer), by changes (change.Caller)
// and by subscriptions (visibleChanges in package graph).
//
// An input field can require a permission in addition to the mutation's permission. Only the
// mutation's permission decides which records the caller may change.
type AccessChecker struct {
	Policy commerce.Policy
	// fields maps each field to the permission that it requires. A field without @access requires the
	// permission of its type. If the type has no permission, but is a root type or has other fields
	// with @access, the field requires undeclaredPermission. A forgotten @access therefore denies access.
	fields map[*ast.FieldDefinition]commerce.Permission
	// TypePermissions are the permissions of types.
	TypePermissions map[string]commerce.Permission
	// inputs maps each input field to the permission that it requires, if there is one.
	inputs map[*ast.FieldDefinition]commerce.Permission
	schema *ast.Schema
	// introspection reports whether introspection is enabled.
	introspection bool
}

// undeclaredPermission is the permission of a field with a forgotten @access. No policy grants it.
const undeclaredPermission commerce.Permission = 0

// accessDirective is the directive that declares permissions in the schema.
const accessDirective = "access"

// NewAccessChecker reads the required permissions from a schema. A nil policy means
// commerce.StandardPolicy.
func NewAccessChecker(schema *ast.Schema, policy *commerce.Policy, introspection bool) AccessChecker {
	a := AccessChecker{
		fields: map[*ast.FieldDefinition]commerce.Permission{}, TypePermissions: map[string]commerce.Permission{},
		inputs: map[*ast.FieldDefinition]commerce.Permission{}, schema: schema, introspection: introspection,
	}
	if a.Policy = commerce.StandardPolicy(); policy != nil {
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
			continue // the field that returns the type requires the permission
		}
		for _, f := range d.Fields {
			switch permission, declared := declaredPermission(f.Directives); {
			case declared:
				a.fields[f] = permission
			case f.Name == "__schema" || f.Name == "__type":
				a.fields[f] = commerce.PermissionIntrospect
			default:
				a.fields[f] = typePermission
			}
		}
	}
	return a
}

// declaredPermission returns the permission in @access. It returns false if there is no @access.
func declaredPermission(directives ast.DirectiveList) (commerce.Permission, bool) {
	d := directives.ForName(accessDirective)
	if d == nil {
		return undeclaredPermission, false
	}
	p, _ := commerce.ParsePermission(d.Arguments.ForName("permission").Value.Raw)
	return p, true
}

// HidesSchema reports whether the principal may not use introspection. Messages for such a
// principal must not mention parts of the schema that the request does not contain.
func (a AccessChecker) HidesSchema(principal commerce.Principal) bool {
	return !a.introspection || a.Policy.GrantForPrincipal(principal, commerce.PermissionIntrospect) == commerce.GrantNone
}

// Check returns an error for each selected field that the caller's role may not use, and for each
// input field with a value that the role may not set. It returns at most errcode.MaxErrors errors.
// The variables must be coerced. The result does not depend on the IDs in the arguments.
func (a AccessChecker) Check(principal commerce.Principal, operation *Prepared, variables map[string]any) gqlerror.List {
	allowed := func(p commerce.Permission) bool {
		return a.Policy.GrantForPrincipal(principal, p) != commerce.GrantNone
	}
	if !slices.ContainsFunc(operation.permissions, func(p commerce.Permission) bool { return !allowed(p) }) {
		return nil
	}
	c := accessCheck{AccessChecker: a, principal: principal, variables: variables}
	operation.Root.each(func(f *Field) {
		if f.guarded && !allowed(f.Permission) {
			c.addError(f.Position, fmt.Sprintf("use the field %q", f.Name))
		}
		for _, argument := range f.Field.Arguments {
			c.literal(f.Definition.Arguments.ForName(argument.Name).Type, argument.Value)
		}
	})
	return c.errs
}

// accessCheck collects errors for fields of an operation that the principal may not use.
type accessCheck struct {
	AccessChecker
	principal commerce.Principal
	variables map[string]any
	errs      gqlerror.List
}

// literal checks a value in the document.
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
				continue // part of a custom scalar
			}
			if child.Value.Kind != ast.NullValue && (child.Value.Kind != ast.Variable || c.variables[child.Value.Raw] != nil) {
				c.input(f, child.Position)
			}
			c.literal(f.Type, child.Value)
		}
	}
}

// value checks the coerced value of a variable.
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

// input adds an error if the principal's role may not set an input field.
func (c *accessCheck) input(f *ast.FieldDefinition, position *ast.Position) {
	if permission, guarded := c.inputs[f]; guarded && c.Policy.GrantForPrincipal(c.principal, permission) == commerce.GrantNone {
		c.addError(position, fmt.Sprintf("set the input field %q", f.Name))
	}
}

func (c *accessCheck) addError(position *ast.Position, action string) {
	if len(c.errs) < errcode.MaxErrors {
		c.errs = append(c.errs, PermissionError(position, c.principal, action))
	}
}

// PermissionError returns the error for a caller with a role that lacks a permission. action is a
// verb phrase, such as "use the field \"orders\"". For a caller without a token, the code is
// UNAUTHENTICATED, because clients then ask the user to log in. Otherwise the code is FORBIDDEN.
func PermissionError(position *ast.Position, principal commerce.Principal, action string) *gqlerror.Error {
	if principal.Role == commerce.RoleAnonymous {
		return errcode.New(position, errcode.Unauthenticated, "a request without a token may not %s: remove this part of the request, or send a token as Authorization: Bearer TOKEN", action)
	}
	return errcode.New(position, errcode.Forbidden, "%s may not %s: remove this part of the request, or use a token with this permission", principal.Role, action)
}
