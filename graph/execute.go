package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/loaders"
)

// execution executes a query, a mutation or one event of a subscription, without gqlgen's generated
// executor (docs/adr/0031-one-tree-one-executor.md). It needs only one goroutine, because most
// records are read before the resolvers run (plan.go).
type execution struct {
	*fieldResolvers
	executor  *Executor
	operation *admittedOperation
	// resolverCtx is the resolvers' context. It extends ctx with the execution and its loaders.
	ctx, resolverCtx context.Context
	loaders          *loaders.Loaders
	// budget limits the number of read requests that all loaders of the execution send to DynamoDB.
	budget *table.ReadBudget
	// trace records the DynamoDB requests for the explain output. If not requested, it is nil.
	trace *trace.Trace
	// currentField is the field whose resolver was called last.
	currentField *operation.Field
	// path contains the fields from the root to the current object.
	path []pathElement
	// values is the number of values that were written, and pages is the number of requested pages.
	// mutations is the number of executed mutations.
	values, pages, mutations int
	// written counts the write units of mutations.
	written trace.Usage
	errs    errorFilter
	// errorBytes is the length of the response's errors. respond sets it.
	errorBytes int
	boundedResponse
}

// pathElement is a field on the path to the current object. index is the current index in the
// field's list. If the field has no list, index is -1.
type pathElement struct {
	field *operation.Field
	index int
}

// newExecution prepares an execution of an operation.
func (e *Executor) newExecution(ctx context.Context, o *admittedOperation) *execution {
	x := &execution{
		fieldResolvers: e.fields, executor: e, operation: o, budget: table.NewReadBudget(e.limits.Requests), path: make([]pathElement, 0, 16),
		boundedResponse: newBoundedResponse(int(o.prepared.ResponseBytes.Load()), e.limits.Answer),
	}
	if ctx.Value(explainKey{}) != nil && !e.resolver.callerScope(ctx, access.PermissionExplain).IsEmpty() {
		x.trace = &trace.Trace{}
		ctx = x.trace.NewContext(ctx)
	}
	if o.Operation != nil && o.Operation.Operation == ast.Mutation {
		ctx = x.written.NewContext(ctx)
	}
	x.errs.present, x.errs.limit = e.resolver.presentError, e.limits.Errors
	x.ctx = graphql.WithResponseContext(graphql.WithOperationContext(ctx, o.OperationContext), x.errs.add, panicError)
	return x
}

// run executes an operation. For an event of a subscription, change is the event. For other
// operations, change is nil. spent is the actual cost in points.
func (e *Executor) run(ctx context.Context, o *admittedOperation, change *feed.OrderChange) (response *graphql.Response, spent int) {
	x := e.newExecution(ctx, o)
	var data []byte
	switch o.Operation.Operation {
	case ast.Mutation:
		data = x.executeMutations()
	case ast.Subscription:
		data = x.executeEvent(change)
	default:
		data = x.executeQuery()
	}
	o.prepared.ResponseBytes.Store(int64(min(len(data), operation.MaxInitialResponseCapacity)))
	response = x.respond(data)
	return response, x.actualCost(len(data) + x.dropped + x.removed + x.errorBytes)
}

// actualCost returns the cost of an execution in points. It is the highest of the costs of the
// response's values, its bytes and the reads, plus the cost of mutations. The parameter bytes is
// the size of the response. Values and bytes that an error has removed count, because they took the
// same time.
func (x *execution) actualCost(bytes int) int {
	responseCost := x.values + x.pages*operation.ListCost + x.operation.prepared.LinePoints(x.operation.Variables)
	return max(responseCost, bytes/operation.BytesPerPoint, x.executor.limits.Requests-max(0, x.budget.Remaining())) + x.mutations*operation.MutationCost + int(operation.WritePoints(x.written.WriteUnits()))
}

// respond returns the response with the data, the errors and, if requested, the explain output. If
// data and errors exceed the limit of the response, an error replaces both. The explain output gets
// the bytes that remain.
func (x *execution) respond(data []byte) *graphql.Response {
	response := &graphql.Response{Data: data, Errors: append(graphql.GetErrors(x.ctx), x.errs.closing()...)}
	for _, err := range response.Errors {
		x.errorBytes += encodedLength(err)
	}
	limit := x.executor.limits.Answer
	left := limit - x.offset() - x.errorBytes
	if left < 0 {
		response.Data, response.Errors = nil, gqlerror.List{newResponseTooLargeError(x.operation.Operation, limit)}
		left = limit
	}
	if x.trace != nil {
		response.Extensions = map[string]any{"explain": explain.Describe(x.trace, x.executor.prices, left)}
	}
	return response
}

// executeQuery returns the data of a query. If a non-null root field is null, the data is null.
func (x *execution) executeQuery() []byte {
	x.newLoaders(x.executor.resolver.store, "")
	x.runPlan(x.ctx, func(p plan) { p.planRootFields(x.ctx, x.operation.prepared.Root) })
	return x.writeRoot(x.fieldQuery)
}

// executeMutations executes the mutations in order. Each mutation has its own loaders with strongly
// consistent reads, so its payload shows the state after the mutation.
func (x *execution) executeMutations() []byte {
	store := x.executor.resolver.store.Consistent()
	return x.writeRoot(func(f *operation.Field) bool {
		if f.Number != operation.TypenameField {
			x.mutations++
			x.newLoaders(store, f.Alias)
		}
		return x.fieldMutation(f)
	})
}

// executeEvent executes the operation for one event. Its reads are strongly consistent, so they see
// the change and all earlier writes.
func (x *execution) executeEvent(change *feed.OrderChange) []byte {
	x.newLoaders(x.executor.resolver.store.Consistent(), "")
	x.runPlan(x.ctx, func(p plan) { p.planEvent(x.ctx, x.operation.prepared.Root, change) })
	// If the update is null, the data must be null, because the field has the type OrderUpdate!
	// (https://spec.graphql.org/September2025/#sec-Handling-Execution-Errors).
	return x.writeRoot(func(f *operation.Field) bool {
		x.enter(f)
		defer x.leave()
		return x.objectOrderUpdate(f.Set, change)
	})
}

// newLoaders creates loaders for the resolvers. The budget limits only the reads of the loaders. It
// does not limit the reads that precede a change, so it cannot interrupt a mutation.
func (x *execution) newLoaders(store *dynamo.Store, path string) {
	r := x.executor.resolver
	ctx := x.budget.NewContext(x.ctx)
	x.loaders = loaders.New(ctx, store, r.viewer(ctx), func(panicked any) { r.report(ctx, panicError(ctx, panicked)) }, r.observeBatch)
	// path is the path of unplanned requests in the explain output.
	x.resolverCtx = &resolverContext{trace.SpanFromContext(x.ctx).ForkUnplanned(x.ctx, path), x}
}

// runPlan reads records before the resolvers need them. If a panic occurs, runPlan logs it, and the
// resolvers read the records themselves.
func (x *execution) runPlan(ctx context.Context, first func(plan)) {
	defer func() {
		if panicked := recover(); panicked != nil {
			x.executor.resolver.report(ctx, fmt.Errorf("plan: %w", panicError(ctx, panicked)))
		}
	}()
	if !x.executor.lookahead {
		return
	}
	x.loaders.Plan(func(level *loaders.Level) {
		first(plan{&planState{resolver: x.executor.resolver, loaders: x.loaders, arguments: x.operation.arguments}, level})
	})
}

// planPayload reads the records that the current mutation's payload with this record needs.
func planPayload(ctx context.Context, record any) {
	x, ok := ctx.Value(executionKey{}).(*execution)
	if !ok {
		return
	}
	var records []*operation.SelectionSet
	for _, f := range x.currentField.Set.Reads {
		records = append(records, f.Records...)
	}
	if len(records) > 0 {
		x.runPlan(ctx, func(p plan) { p.planAfterRecord(ctx, record, records) })
	}
}

// resolverContext is the context that all resolvers of an execution receive. Its values come from
// the current state of the execution, so that no new context is needed for each field.
type resolverContext struct {
	context.Context
	execution *execution
}

type (
	executionKey    struct{}
	loadersKey      struct{}
	currentFieldKey struct{}
)

// Value returns the execution, its loaders or the current field. For any other key, it returns the
// value of the embedded context.
func (c *resolverContext) Value(key any) any {
	switch key {
	case executionKey{}:
		return c.execution
	case loadersKey{}:
		return c.execution.loaders
	case currentFieldKey{}:
		return c.execution.currentField
	}
	return c.Context.Value(key)
}

func loadersOf(ctx context.Context) *loaders.Loaders {
	return ctx.Value(loadersKey{}).(*loaders.Loaders)
}

// currentField returns the field whose resolver is running.
func currentField(ctx context.Context) *operation.Field {
	return ctx.Value(currentFieldKey{}).(*operation.Field)
}

// writeRoot writes the object with the root fields. It calls field for each root field.
func (x *execution) writeRoot(field func(*operation.Field) bool) []byte {
	x.out = append(x.out, '{')
	valid, set := true, x.operation.prepared.Root
	for i := range set.Fields {
		f := &set.Fields[i]
		x.begin(f)
		if !x.writeRootField(f, field) {
			valid = false
		}
	}
	if !valid {
		x.truncate(0)
		return []byte("null")
	}
	x.out = append(x.out, '}')
	return x.out
}

// writeRootField writes the value of a root field. recoverPanic handles panics of resolvers. If
// other code panics, writeRootField records an error, and the root field becomes null.
func (x *execution) writeRootField(f *operation.Field, field func(*operation.Field) bool) (written bool) {
	start := x.offset()
	defer func() {
		if panicked := recover(); panicked != nil {
			x.recordPanic(x.pathContext(f), panicked)
			x.path = x.path[:0]
			x.truncate(start)
			written = !f.Definition.Type.NonNull && x.writeNull()
		}
	}()
	return field(f)
}

// begin writes the name of a field and adds 1 to the number of values.
func (x *execution) begin(f *operation.Field) {
	x.values++
	x.out = append(x.out, f.Key...)
}

// openObject starts an object and returns its offset.
func (x *execution) openObject() int {
	start := x.offset()
	x.out = append(x.out, '{')
	return start
}

// closeObject ends an object. If valid is false, the object contains a null that the schema does
// not allow. closeObject then removes the object from the response and returns false.
func (x *execution) closeObject(start int, valid bool) bool {
	if !valid {
		x.truncate(start)
		return false
	}
	x.out = append(x.out, '}')
	x.dropExcess()
	return true
}

// enter appends a field to the path of the current object. leave removes the last field.
func (x *execution) enter(f *operation.Field) { x.path = append(x.path, pathElement{f, -1}) }

func (x *execution) leave() { x.path = x.path[:len(x.path)-1] }

// openList starts a list and appends its field to the path. element sets the index in the path.
func (x *execution) openList(f *operation.Field) int {
	start := x.offset()
	x.enter(f)
	x.out = append(x.out, '[')
	return start
}

func (x *execution) element(i int) {
	x.path[len(x.path)-1].index = i
	x.values++
	if i > 0 {
		x.out = append(x.out, ',')
	}
}

// closeList ends a list in the same way as closeObject ends an object.
func (x *execution) closeList(start int, valid bool) bool {
	x.leave()
	if !valid {
		x.truncate(start)
		return false
	}
	x.out = append(x.out, ']')
	x.dropExcess()
	return true
}

func (x *execution) writeNull() bool {
	x.out = append(x.out, "null"...)
	return true
}

// introspect writes the result of __schema or __type. gqlgen's generated code computes the result.
func (x *execution) introspect(f *operation.Field) bool {
	field := graphql.CollectedField{Field: f.Field}
	for _, set := range f.Selections {
		field.Selections = append(field.Selections, set...)
	}
	generated := newExecutionContext(x.operation.OperationContext, x.executor.schema, nil)
	ctx := graphql.WithFieldContext(x.ctx, &graphql.FieldContext{Object: "Query", Field: field})
	marshal := generated._Query___schema
	if f.Name == "__type" {
		marshal = generated._Query___type
	}
	value := marshal(ctx, field)
	x.values += operation.CountValues(value) - 1
	value.MarshalGQL(x)
	return true // null is a valid value of both fields
}
