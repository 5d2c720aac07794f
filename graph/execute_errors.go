package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// Messages for a null value in a place where the schema does not allow null. They are the messages
// of gqlgen's generated code. They are logged, but clients do not see them.
const (
	// nullResult is the message for a resolver that returns null for a non-null field.
	nullResult = "must not be null"
	// nullElement is the message for a nil pointer in a list with non-null elements.
	nullElement = "the requested element is null which the schema does not allow"
)

// fieldContext returns gqlgen's context of a field, with the path for errors. It is created only on
// demand, because few fields need it.
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

// pathContext returns the context of the current object. If the path is empty, it returns the
// context of the root field.
func (x *execution) pathContext(root *operation.Field) context.Context {
	if len(x.path) > 0 {
		return x.objectContext()
	}
	return x.fieldContext(root)
}

// recordError records the error of a resolver and returns false. If err is nil, it returns true.
func (x *execution) recordError(f *operation.Field, err error) bool {
	if err == nil {
		return true
	}
	ctx := x.fieldContext(f)
	graphql.GetOperationContext(ctx).Error(ctx, graphql.AddFieldLocationToError(ctx, err))
	return false
}

// recoverPanic recovers from a panic of a resolver, records it as an error and sets *ok to false.
// Call recoverPanic with defer.
func (x *execution) recoverPanic(f *operation.Field, ok *bool) {
	if panicked := recover(); panicked != nil {
		x.recordPanic(x.fieldContext(f), panicked)
		*ok = false
	}
}

// recordPanic adds an error for a panic to the response.
func (x *execution) recordPanic(ctx context.Context, panicked any) {
	operation := graphql.GetOperationContext(ctx)
	operation.Error(ctx, operation.Recover(ctx, panicked))
}

// recordMissing records an error for a null value of a non-null field. If the field already has an
// error, it records nothing. It always returns false.
func (x *execution) recordMissing(f *operation.Field, message string) bool {
	return x.recordMissingAt(x.fieldContext(f), message)
}

// recordMissingElement is like recordMissing, but for an element of a list.
func (x *execution) recordMissingElement() bool {
	return x.recordMissingAt(x.objectContext(), nullElement)
}

// recordMissingAt records nothing if errors may have been omitted, because the field can have one of
// them.
func (x *execution) recordMissingAt(ctx context.Context, message string) bool {
	if !x.errs.full() && !graphql.HasFieldError(ctx, graphql.GetFieldContext(ctx)) {
		graphql.AddErrorf(ctx, "%s", message)
	}
	return false
}
