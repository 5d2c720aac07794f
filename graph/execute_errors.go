package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// Messages of gqlgen's generated code for null in a non-null position. They appear in the log, but
// not in responses.
const (
	// nullResult is the message for the result of a resolver.
	nullResult = "must not be null"
	// nullElement is the message for a nil pointer.
	nullElement = "the requested element is null which the schema does not allow"
)

// fieldContext returns the context of a field, as gqlgen's generated code creates it. Errors need
// it, and so do resolvers that report errors themselves. It is created from the path on demand,
// because few fields need it.
func (x *execution) fieldContext(f *operation.Field) context.Context {
	return graphql.WithFieldContext(x.objectContext(), &graphql.FieldContext{Field: graphql.CollectedField{Field: f.Field}, IsMethod: true, IsResolver: true})
}

// objectContext returns the context of the current object or list element.
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

// recordError reports whether a resolver succeeded. It records the resolver's error otherwise.
func (x *execution) recordError(f *operation.Field, err error) bool {
	if err == nil {
		return true
	}
	ctx := x.fieldContext(f)
	graphql.GetOperationContext(ctx).Error(ctx, graphql.AddFieldLocationToError(ctx, err))
	return false
}

// recoverPanic recovers from a resolver's panic and records it as an error. It must be deferred.
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

// recordMissing records the error that a non-null field is null, unless the field already has an
// error. It returns false.
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
