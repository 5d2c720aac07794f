package operation

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// Access tells who may use what. The schema says which permission a field needs, with @access; the
// policy says who is granted it. What the role alone decides is refused before anything is read
// (check); of what is granted for the own records only, others do not exist: for loaders
// (loaders.Viewer), for changes (change.Caller), and for those who follow orders (mayFollowOrder).
//
// An input field can need a permission as well. Whose record the input is about is checked with the
// mutation's own permission.
type Access struct {
	Policy commerce.Policy
	// fields are the permissions of the fields that need one. A field that names none, and stands
	// beside others that do, needs one that nobody is granted: it was forgotten.
	fields map[*ast.FieldDefinition]commerce.Permission
	// Types are the permissions of types.
	Types map[string]commerce.Permission
	// inputs are the permissions of the input fields that need one.
	inputs map[*ast.FieldDefinition]commerce.Permission
	schema *ast.Schema
	// introspection reports whether the server shows its schema at all.
	introspection bool
}

// forgotten is the permission of what names none and has to: no policy grants it.
const forgotten commerce.Permission = 0

// accessDirective is the directive by which the schema names permissions.
const accessDirective = "access"

// NewAccess reads the permissions of a schema. Without a policy, commerce.StandardPolicy holds.
func NewAccess(schema *ast.Schema, policy *commerce.Policy, introspection bool) Access {
	a := Access{
		fields: map[*ast.FieldDefinition]commerce.Permission{}, Types: map[string]commerce.Permission{},
		inputs: map[*ast.FieldDefinition]commerce.Permission{}, schema: schema, introspection: introspection,
	}
	if a.Policy = commerce.StandardPolicy(); policy != nil {
		a.Policy = *policy
	}
	roots := []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription}
	for name, d := range schema.Types {
		if d.Kind == ast.InputObject {
			for _, f := range d.Fields {
				if permission, named := namedPermission(f.Directives); named {
					a.inputs[f] = permission
				}
			}
		}
		if d.Kind != ast.Object || d.BuiltIn {
			continue
		}
		whole, guarded := namedPermission(d.Directives)
		if guarded {
			a.Types[name] = whole
		}
		for _, root := range roots {
			guarded = guarded || d == root
		}
		for _, f := range d.Fields {
			_, named := namedPermission(f.Directives)
			guarded = guarded || named
		}
		if !guarded {
			continue // it comes with the field that gives it
		}
		for _, f := range d.Fields {
			switch permission, named := namedPermission(f.Directives); {
			case named:
				a.fields[f] = permission
			case f.Name == "__schema" || f.Name == "__type":
				a.fields[f] = commerce.Introspect
			default:
				a.fields[f] = whole
			}
		}
	}
	return a
}

// namedPermission is the permission that @access names, false where there is no @access.
func namedPermission(directives ast.DirectiveList) (commerce.Permission, bool) {
	d := directives.ForName(accessDirective)
	if d == nil {
		return forgotten, false
	}
	p, _ := commerce.ParsePermission(d.Arguments.ForName("permission").Value.Raw)
	return p, true
}

// Quiet reports whether messages to a principal may name nothing of the schema that the request
// does not name itself.
func (a Access) Quiet(who commerce.Principal) bool {
	return !a.introspection || a.Policy.Granted(who, commerce.Introspect) == commerce.None
}

// Check refuses an operation that selects fields, or gives values to input fields, which the
// caller's role may not use: one error for each, at most MaxErrors. The variables are coerced. It
// depends on no ID.
//
// Errors: those of Refusal.
func (a Access) Check(who commerce.Principal, operation *Prepared, variables map[string]any) gqlerror.List {
	may := func(p commerce.Permission) bool { return a.Policy.Granted(who, p) != commerce.None }
	if !slices.ContainsFunc(operation.permissions, func(p commerce.Permission) bool { return !may(p) }) {
		return nil
	}
	c := accessCheck{Access: a, who: who, variables: variables}
	operation.Root.each(func(f *Field) {
		if f.guarded && !may(f.Permission) {
			c.refuse(f.Position, fmt.Sprintf("use the field %q", f.Name))
		}
		for _, argument := range f.Field.Arguments {
			c.literal(f.Definition.Arguments.ForName(argument.Name).Type, argument.Value)
		}
	})
	return c.errs
}

// accessCheck collects what an operation uses without permission.
type accessCheck struct {
	Access
	who       commerce.Principal
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
				continue // of a custom scalar
			}
			if child.Value.Kind != ast.NullValue && (child.Value.Kind != ast.Variable || c.variables[child.Value.Raw] != nil) {
				c.input(f, child.Position)
			}
			c.literal(f.Type, child.Value)
		}
	}
}

// value checks a variable's value, which was coerced.
func (c *accessCheck) value(t *ast.Type, value any, at *ast.Position) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			c.value(t, element, at)
		}
	case map[string]any:
		for _, f := range c.schema.Types[t.Name()].Fields {
			if given := value[f.Name]; given != nil {
				c.input(f, at)
				c.value(f.Type, given, at)
			}
		}
	}
}

// input refuses an input field that the principal's role may not give a value to.
func (c *accessCheck) input(f *ast.FieldDefinition, at *ast.Position) {
	if permission, guarded := c.inputs[f]; guarded && c.Policy.Granted(c.who, permission) == commerce.None {
		c.refuse(at, fmt.Sprintf("give the input field %q", f.Name))
	}
}

func (c *accessCheck) refuse(at *ast.Position, use string) {
	if len(c.errs) < errcode.MaxErrors {
		c.errs = append(c.errs, Refusal(at, c.who, use))
	}
}

// Refusal is the error for a caller whose role may not do something, such as "use the field
// \"orders\"". A caller without a token is told to send one: clients answer UNAUTHENTICATED with a
// login, which could help here.
//
// Errors: UNAUTHENTICATED, FORBIDDEN.
func Refusal(at *ast.Position, who commerce.Principal, use string) *gqlerror.Error {
	if who.Role == commerce.RoleAnonymous {
		return errcode.New(at, errcode.Unauthenticated, "a request without a token may not %s: leave it out, or send a token as Authorization: Bearer TOKEN", use)
	}
	return errcode.New(at, errcode.Forbidden, "%s may not %s: leave it out, or ask as somebody who may", who.Role, use)
}
