package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// oracle executes operations with gqlgen's generated code. All other steps are the Executor's. An
// execution must return the same results.
type oracle struct{ *Executor }

// Execute executes a query or a mutation.
func (o oracle) Execute(ctx context.Context, r Request) (result Result) {
	ctx = withReportedErrors(ctx)
	operation, refused := o.admit(ctx, r)
	if refused != nil {
		return *refused
	}
	response, spent := o.run(ctx, operation, nil)
	operation.reservation.Settle(spent, response)
	return Result{Response: response, Mutation: operation.Operation.Operation == ast.Mutation}
}

// run is like Executor.run, but uses the generated code.
func (o oracle) run(ctx context.Context, prepared *admittedOperation, change *feed.OrderChange) (*graphql.Response, int) {
	x := o.newExecution(ctx, prepared)
	given := prepared.OperationContext
	executed := &graphql.OperationContext{RawQuery: given.RawQuery, Variables: given.Variables, Doc: given.Doc, Operation: given.Operation, RecoverFunc: given.RecoverFunc}
	root := map[ast.Operation]string{ast.Query: "Query", ast.Mutation: "Mutation", ast.Subscription: "Subscription"}[given.Operation.Operation]
	var spent, pages atomic.Int64 // root fields are resolved concurrently
	executed.ResolverMiddleware = func(ctx context.Context, next graphql.Resolver) (any, error) {
		field := graphql.GetFieldContext(ctx).Field
		at := &operation.Field{Field: field.Field}
		if directive := field.Definition.Directives.ForName("access"); directive != nil {
			at.Permission, _ = access.ParsePermission(directive.Arguments.ForName("permission").Value.Raw)
		}
		if operation.ReturnsPage(field.Field) {
			pages.Add(1)
			at.PageInfo = asksBeyond(executed, field)
		}
		return next(context.WithValue(ctx, currentFieldKey{}, at))
	}
	executed.RootResolverMiddleware = func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
		if executed.Operation.Operation == ast.Mutation {
			x.mutations++
			alias := graphql.GetRootFieldContext(ctx).Field.Alias
			x.newLoaders(o.resolver.store.Consistent(), alias)
			ctx = context.WithValue(trace.SpanFromContext(ctx).ForkUnplanned(ctx, alias), loadersKey{}, x.loaders)
		}
		made := next(ctx)
		spent.Add(int64(valuesIn(made)))
		return made
	}
	for _, f := range graphql.CollectFields(executed, executed.Operation.SelectionSet, []string{root}) {
		if f.Name == "__typename" {
			spent.Add(1)
		}
	}
	store := o.resolver.store
	if change != nil {
		store = store.Consistent()
	}
	x.newLoaders(store, "")
	switch {
	case change != nil:
		x.runPlan(x.ctx, func(p plan) { p.planEvent(x.ctx, prepared.prepared.Root, change) })
	case executed.Operation.Operation == ast.Query:
		x.runPlan(x.ctx, func(p plan) { p.planRootFields(x.ctx, prepared.prepared.Root) })
	}
	ctx = graphql.WithOperationContext(context.WithValue(x.resolverCtx.(*resolverContext).Context, loadersKey{}, x.loaders), executed)
	var data []byte
	if change != nil {
		data = o.event(ctx, executed, change, &spent)
	} else {
		data = o.schema.Exec(ctx)(ctx).Data
	}
	if string(data) != "null" {
		x.out = data
	}
	response := x.respond(data)
	x.values, x.pages = int(spent.Load()), int(pages.Load())
	return response, x.actualCost(len(data) + x.errorBytes)
}

// event executes the operation of a subscription.
func (o oracle) event(ctx context.Context, operation *graphql.OperationContext, change *feed.OrderChange, spent *atomic.Int64) []byte {
	generated := newExecutionContext(operation, o.schema, nil)
	field := graphql.CollectFields(operation, operation.Operation.SelectionSet, subscriptionImplementors)[0]
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Subscription"})
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Subscription", Field: field, IsMethod: true, IsResolver: true, Result: change})
	update := generated.marshalNOrderUpdate2ᚖgithubᚗcomᚋordergraphᚋordergraphᚋdynamoᚋfeedᚐOrderChange(ctx, field.Selections, change)
	spent.Add(int64(valuesIn(update)))
	if update == graphql.Null {
		return []byte("null")
	}
	var data bytes.Buffer
	data.WriteString(`{"` + field.Alias + `":`)
	update.MarshalGQL(&data)
	data.WriteString("}")
	return data.Bytes()
}

// valuesIn returns the number of values in a marshaled value.
func valuesIn(made graphql.Marshaler) int {
	var text bytes.Buffer
	made.MarshalGQL(&text)
	var value any
	if err := json.Unmarshal(text.Bytes(), &value); err != nil {
		panic(err)
	}
	return values(value)
}

// asksBeyond returns the fields of pageInfo that a connection selects.
func asksBeyond(op *graphql.OperationContext, f graphql.CollectedField) (b operation.PageInfoSelection) {
	for _, part := range graphql.CollectFields(op, f.Selections, []string{f.Definition.Type.Name()}) {
		if part.Name != "pageInfo" {
			continue
		}
		for _, field := range graphql.CollectFields(op, part.Selections, []string{part.Definition.Type.Name()}) {
			b.HasNextPage = b.HasNextPage || field.Name == "hasNextPage"
			b.HasPreviousPage = b.HasPreviousPage || field.Name == "hasPreviousPage"
		}
	}
	return b
}

// loading returns a context with loaders for resolvers.
func loading(ctx context.Context, e *Executor) context.Context {
	x := e.newExecution(ctx, &admittedOperation{OperationContext: &graphql.OperationContext{}, prepared: &operation.Prepared{}})
	x.newLoaders(e.resolver.store, "")
	return x.resolverCtx
}
