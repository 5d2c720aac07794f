package graph

import (
	"context"
	"errors"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/loaders"
)

// access tells who may use what. The schema says which permission a field needs, with @access; the policy says who is granted it. What the
// role alone decides is refused before anything is read (check); of what is granted for the own records only, others do not exist: for
// loaders (loaders.Viewer), for changes (dynamo.Caller), and for those who follow orders (mayFollowOrder).
type access struct {
	policy commerce.Policy
	// fields are the permissions of the fields that need one. A field that names none, and stands beside others that do, needs one that
	// nobody is granted: it was forgotten.
	fields map[*ast.FieldDefinition]commerce.Permission
	// types are the permissions of types.
	types map[string]commerce.Permission
}

// forgotten is the permission of what names none and has to: no policy grants it.
const forgotten commerce.Permission = 0

// accessDirective is the directive by which the schema names permissions.
const accessDirective = "access"

func newAccess(schema *ast.Schema, policy *commerce.Policy) access {
	a := access{fields: map[*ast.FieldDefinition]commerce.Permission{}, types: map[string]commerce.Permission{}}
	if a.policy = commerce.StandardPolicy(); policy != nil {
		a.policy = *policy
	}
	roots := []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription}
	for name, d := range schema.Types {
		if d.Kind != ast.Object || d.BuiltIn {
			continue
		}
		whole, guarded := namedPermission(d.Directives)
		if guarded {
			a.types[name] = whole
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

// quiet tells whether messages are to keep the schema to themselves.
func (a access) quiet(who commerce.Principal) bool {
	return a.policy.Granted(who, commerce.Introspect) == commerce.None
}

// check refuses an operation that selects fields which the caller's role may not use: one error for each field, at most maxErrors.
// It depends on no ID.
//
// Errors: FORBIDDEN.
func (a access) check(who commerce.Principal, operation *preparedOperation) gqlerror.List {
	may := func(p commerce.Permission) bool { return a.policy.Granted(who, p) != commerce.None }
	if !slices.ContainsFunc(operation.permissions, func(p commerce.Permission) bool { return !may(p) }) {
		return nil
	}
	var errs gqlerror.List
	operation.root.each(func(f *selectedField) {
		if f.guarded && !may(f.permission) && len(errs) < maxErrors {
			errs = append(errs, refusedAt(f.Position, CodeForbidden, "%s may not use the field %q: leave it out, or ask as somebody who may", who.Role, f.Name))
		}
	})
	return errs
}

// unauthenticated refuses a request of nobody.
func unauthenticated() *gqlerror.Error {
	return refusedAt(nil, CodeUnauthenticated, "the request does not say who makes it: send a token")
}

// viewer is whom the records of a request are read for.
func (r *Resolver) viewer(ctx context.Context) loaders.Viewer {
	return loaders.Viewer{Principal: r.principal(ctx), Policy: r.access.policy}
}

// granted is what whoever makes the request is granted of a permission.
func (r *Resolver) granted(ctx context.Context, permission commerce.Permission) commerce.Grant {
	return r.access.policy.Granted(r.principal(ctx), permission)
}

// grantedHere is what they are granted of the permission of the field that is being resolved.
func (r *Resolver) grantedHere(ctx context.Context) commerce.Grant {
	return r.granted(ctx, resolving(ctx).permission)
}

// caller is who asks for a change: who is granted the own records only changes no others.
//
// Errors: FORBIDDEN where they are granted none, as the gate would have told.
func (r *Resolver) caller(ctx context.Context) (dynamo.Caller, error) {
	who := r.principal(ctx)
	switch r.grantedHere(ctx) {
	case commerce.All:
		return dynamo.Caller{Name: who.ID}, nil
	case commerce.Own:
		return dynamo.Caller{Name: who.ID, Customer: who.Customer}, nil
	default:
		return dynamo.Caller{}, refusedAt(nil, CodeForbidden, "%s may not use this mutation", who.Role)
	}
}

// mayUseType refuses a record of a type that whoever makes the request may not use, whether it exists or not.
//
// Errors: FORBIDDEN.
func (r *Resolver) mayUseType(ctx context.Context, typ string) error {
	if r.granted(ctx, r.access.types[typ]) == commerce.None {
		return refusedAt(nil, CodeForbidden, "%s may not use the type %q: leave it out, or ask as somebody who may", r.principal(ctx).Role, typ)
	}
	return nil
}

// mayFollowOrder tells whether there is such an order for whoever makes the request. It reads the order through the request's loaders, the
// same for an order of somebody else as for one that does not exist.
//
// Errors: NOT_FOUND, and those of loaders.Loaders.Order.
func (r *Resolver) mayFollowOrder(ctx context.Context, id commerce.OrderID) error {
	_, err := of(ctx).Order(ctx, id)
	return orUnknown(err, "there is no such order")
}

// mayFollowCustomer tells whether there is such a customer for whoever makes the request, and they see the customer's orders; for
// customers, who see their own alone, nothing is read for another's id.
//
// Errors: NOT_FOUND, and those of dynamo.Store.CustomersByID.
func (r *Resolver) mayFollowCustomer(ctx context.Context, id commerce.CustomerID) error {
	err := commerce.ErrNotFound
	if r.access.policy.Sees(r.principal(ctx), commerce.ReadOrder, id) {
		_, err = of(ctx).Customer.Load(ctx, id)
	}
	return orUnknown(err, "there is no such customer")
}

func orUnknown(err error, says string) error {
	if errors.Is(err, commerce.ErrNotFound) {
		return refusedAt(nil, CodeNotFound, "%s", says)
	}
	return err
}
