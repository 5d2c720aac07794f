package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// What gqlgen's generated code says of a null where none may be. Clients do not see it, but the log does.
const (
	// nullResult is said of what a resolver returns.
	nullResult = "must not be null"
	// nullElement is said of a pointer that is nil.
	nullElement = "the requested element is null which the schema does not allow"
)

// fieldContext is the context of a field as gqlgen's code has it, for the few that ask where they are: errors, and resolvers that tell some
// themselves. It is made from the path, for each field on it one.
func (w *walker) fieldContext(f *walkedField) context.Context {
	return graphql.WithFieldContext(w.objectContext(), &graphql.FieldContext{Field: graphql.CollectedField{Field: f.field, Selections: f.selections}, IsMethod: true, IsResolver: true})
}

// objectContext is that of the object, or the element of a list, in which the walk is.
func (w *walker) objectContext() context.Context {
	ctx := graphql.WithFieldContext(w.ctx, &graphql.FieldContext{})
	for _, s := range w.path {
		ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Field: graphql.CollectedField{Field: s.field.field, Selections: s.field.selections}})
		if s.index >= 0 {
			ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Index: &s.index})
		}
	}
	return ctx
}

// pathContext is where the walk is, or the field of the root with which it has begun.
func (w *walker) pathContext(root *walkedField) context.Context {
	if len(w.path) > 0 {
		return w.objectContext()
	}
	return w.fieldContext(root)
}

// resolved tells whether a resolver has given a value; where it has given an error, that is told.
func (w *walker) resolved(f *walkedField, err error) bool {
	if err == nil {
		return true
	}
	ctx := w.fieldContext(f)
	graphql.GetOperationContext(ctx).Error(ctx, graphql.AddFieldLocationToError(ctx, err))
	return false
}

// caught makes an error of a panic of a resolver. It is to be deferred.
func (w *walker) caught(f *walkedField, ok *bool) {
	if panicked := recover(); panicked != nil {
		w.recovered(w.fieldContext(f), panicked)
		*ok = false
	}
}

// recovered tells a panic as an error.
func (w *walker) recovered(ctx context.Context, panicked any) {
	operation := graphql.GetOperationContext(ctx)
	operation.Error(ctx, operation.Recover(ctx, panicked))
}

// missing tells that a field is null and must not be, unless an error says why. It is false.
func (w *walker) missing(f *walkedField, says string) bool { return missingAt(w.fieldContext(f), says) }

// missingElement is missing for an element of a list.
func (w *walker) missingElement() bool { return missingAt(w.objectContext(), nullElement) }

func missingAt(ctx context.Context, says string) bool {
	if !graphql.HasFieldError(ctx, graphql.GetFieldContext(ctx)) {
		graphql.AddErrorf(ctx, "%s", says)
	}
	return false
}
