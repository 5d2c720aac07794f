package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// Messages for a null value in a non-null position, as in gqlgen's generated code. They are logged,
// but not sent to clients.
const (
	// nullResult is the message for a resolver that returns null.
	nullResult = "must not be null"
	// nullElement is the message for a nil pointer.
	nullElement = "the requested element is null which the schema does not allow"
)

// fieldContext returns gqlgen's context of a field. Errors need this context, and so do resolvers
// that report errors themselves. It is created from the path on demand, because few fields need it.
func (x *execution) fieldContext(f *operation.Field) context.Context {
	return graphql.WithFieldContext(x.objectContext(), &graphql.FieldContext{Field: graphql.CollectedField{Field: f.Field}, IsMethod: true, IsResolver: true})
}

// objectContext returns gqlgen's context of the current object or list element.
func (x *execution) objectContext() context.Context {
	ctx := graphql.WithFieldContext(x.resolverCtx, &graphql.FieldContext{})
	for _, s := range x.path {
		ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Field: graphql.CollectedField{Field: s.field.Field}})
		if s.index >= 0 {
			ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Index: &s.index})
		}
	}
	return ctx
}

// pathContext returns the context of the current object, or of the root field if the path is empty.
func (x *execution) pathContext(root *operation.Field) context.Context {
	if len(x.path) > 0 {
		return x.objectContext()
	}
	return x.fieldContext(root)
}

// recordError records a resolver's error. It reports whether the resolver succeeded.
func (x *execution) recordError(f *operation.Field, err error) bool {
	if err == nil {
		return true
	}
	ctx := x.fieldContext(f)
	graphql.GetOperationContext(ctx).Error(ctx, graphql.AddFieldLocationToError(ctx, err))
	return false
}

// recoverPanic records a panic of a resolver as an error. It must be deferred.
func (x *execution) recoverPanic(f *operation.Field, ok *bool) {
	if panicked := recover(); panicked != nil {
		x.recordPanic(x.fieldContext(f), panicked)
		*ok = false
	}
}

// recordPanic records a panic as an error.
func (x *execution) recordPanic(ctx context.Context, panicked any) {
	operation := graphql.GetOperationContext(ctx)
	operation.Error(ctx, operation.Recover(ctx, panicked))
}

// recordMissing records an error for a null value of a non-null field, unless the field already has
// an error. It always returns false.
func (x *execution) recordMissing(f *operation.Field, message string) bool {
	return recordMissingAt(x.fieldContext(f), message)
}

// recordMissingElement is recordMissing for an element of a list.
func (x *execution) recordMissingElement() bool {
	return recordMissingAt(x.objectContext(), nullElement)
}

func recordMissingAt(ctx context.Context, message string) bool {
	if !graphql.HasFieldError(ctx, graphql.GetFieldContext(ctx)) {
		graphql.AddErrorf(ctx, "%s", message)
	}
	return false
}
