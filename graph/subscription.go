package graph

import (
	"bytes"
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo"
)

// Stream is a subscription that is being followed. It is for one goroutine, which has to close it.
//
// Between events it holds its operation and what it follows, and no goroutine. gqlgen's own streams are not used: they execute all events
// in one context, with one set of loaders, and answer {"field": null} where data have to be null.
type Stream struct {
	executor  *Executor
	operation *operation
	changes   changes
	over      bool
}

// changes are what a subscription follows: a dynamo.Following.
type changes interface {
	Next(context.Context) (dynamo.OrderChange, error)
	Close()
}

// Start begins what a request asks for, for clients that can be told more than one answer. Queries and mutations are executed, as by
// Execute; for a subscription the result is empty, and the Stream is not nil. ctx bounds the beginning only.
func (e *Executor) Start(ctx context.Context, r Request) (stream *Stream, result Result) {
	ctx = withReported(ctx)
	defer func() {
		if panicked := recover(); panicked != nil {
			stream, result = nil, Result{Response: e.refusal(ctx, recovered(ctx, panicked)), Outcome: Refused}
		}
	}()
	operation, refused := e.admit(ctx, r)
	switch {
	case refused != nil:
		return nil, *refused
	case operation.Operation.Operation != ast.Subscription:
		return nil, e.execute(ctx, operation)
	}
	// Beginning costs as much as an event, and nothing of it comes back.
	opened := &opening{}
	if stream, result = e.follow(ctx, operation, opened); stream == nil {
		operation.paid.settle(nil)
	}
	// What was missed is read for one answer or for none, so it is paid for apart, also where after turns out to be no such event.
	e.rates.charge(e.resolver.principal(ctx).ID, listCost*(opened.reads-beginningReads))
	return stream, result
}

// beginningReads is how many requests are in the price of beginning: the last event, and a page of what came behind.
const beginningReads = 2

// follow opens the source of a subscription's events.
func (e *Executor) follow(ctx context.Context, operation *operation, opened *opening) (*Stream, Result) {
	if !e.followed.take(operation.OperationContext) {
		return nil, Result{Response: e.refusal(ctx, refusedAt(nil, CodeTooManySubscriptions, "the server has no room for more subscriptions with documents and variables of their own: try again later, or send the document that others send and the rest as variables")), Outcome: Refused}
	}
	defer func() {
		if opened.changes == nil {
			e.followed.give(operation.OperationContext)
		}
	}()
	ctx = context.WithValue(e.begun(ctx, operation.OperationContext), openingKey{}, opened)
	response := e.scope.response(ctx, func(ctx context.Context) *graphql.Response {
		// The generated code reads the arguments and calls the resolver, which opens the source; see subscription_sources.go.
		e.generated(operation.OperationContext)._Subscription(ctx, operation.Operation.SelectionSet)
		return &graphql.Response{Errors: graphql.GetErrors(ctx)}
	})
	if len(response.Errors) > 0 || opened.changes == nil {
		if opened.changes != nil {
			opened.changes.Close()
			opened.changes = nil
		}
		return nil, Result{Response: response, Outcome: Refused}
	}
	operation.OperationContext = afresh(operation.OperationContext)
	return &Stream{executor: e, operation: operation, changes: opened.changes}, Result{Response: &graphql.Response{}}
}

// generated is the generated code, for one execution of an operation.
func (e *Executor) generated(operation *graphql.OperationContext) *executionContext {
	return newExecutionContext(operation, e.schema, make(chan graphql.DeferredResult))
}

// Next waits for an event and executes the operation for it. False means that there are no more: the result then has the error that
// the subscription ended with, or none.
//
// ctx ends the waiting. It carries what the request's context did: who made it, whether to explain.
func (s *Stream) Next(ctx context.Context) (Result, bool) {
	if s.over {
		return Result{Response: &graphql.Response{}}, false
	}
	ctx = withReported(ctx)
	change, err := s.changes.Next(ctx)
	if err == nil {
		var paid *payment
		if paid, err = s.executor.rates.await(ctx, s.executor.resolver.principal(ctx).ID, s.operation.cost); err == nil {
			var taken int64
			if taken, err = s.executor.events.wait(ctx, s.operation.cost); err == nil {
				defer s.executor.events.give(taken)
				return s.tell(withPayment(ctx, paid), &change), true
			}
			paid.settle(nil)
		}
	}
	s.over = true
	switch {
	case ctx.Err() != nil:
		return Result{Response: &graphql.Response{}}, false
	case errors.Is(err, dynamo.ErrTooSlow):
		err = refusedAt(s.operation.Operation.Position, CodeTooSlow, "more has happened than was read in time: subscribe again, beginning after the last update that arrived")
	}
	return Result{Response: s.executor.refusal(ctx, err), Outcome: Refused}, false
}

// Close ends the subscription and gives back what it holds.
func (s *Stream) Close() {
	s.changes.Close()
	s.executor.followed.give(s.operation.OperationContext)
}

// tell executes the operation for one event: in a context of its own, with loaders, a budget and a limit of time of its own.
func (s *Stream) tell(ctx context.Context, change *dynamo.OrderChange) (result Result) {
	e := s.executor
	paid := paymentOf(ctx)
	defer func() { paid.settle(result.Response) }()
	defer func() {
		if panicked := recover(); panicked != nil {
			result = Result{Response: e.refusal(ctx, recovered(ctx, panicked))}
		}
	}()
	if e.eventTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.eventTime)
		defer cancel()
	}
	operation := afresh(s.operation.OperationContext)
	tree := e.walkTree(s.operation.document, operation)
	if tree == nil {
		paid.watch(operation)
	}
	size := &answerSize{left: e.limits.Answer}
	ctx = withOutlooks(context.WithValue(e.begun(ctx, operation), eventKey{}, change), s.operation.document)
	return Result{Response: e.answered(ctx, operation.Operation, size, func(ctx context.Context) *graphql.Response {
		if tree != nil {
			return e.walk(ctx, operation, tree, func(w *walker) []byte { return w.event(tree.root, size, change) })
		}
		return e.event(ctx, operation, size, change)
	})}
}

// afresh is an operation without what its execution has left in it.
func afresh(o *graphql.OperationContext) *graphql.OperationContext {
	return &graphql.OperationContext{
		RawQuery: o.RawQuery, Variables: o.Variables, OperationName: o.OperationName, Doc: o.Doc, Operation: o.Operation,
		RecoverFunc: o.RecoverFunc, ResolverMiddleware: o.ResolverMiddleware, Stats: graphql.Stats{OperationStart: graphql.Now()},
	}
}

// event executes an operation for an event by gqlgen's code. All fields of Subscription are an OrderUpdate!, so it is the whole answer that is null where
// the update cannot be (https://spec.graphql.org/September2025/#sec-Handling-Execution-Errors).
func (e *Executor) event(ctx context.Context, operation *graphql.OperationContext, size *answerSize, change *dynamo.OrderChange) *graphql.Response {
	generated := e.generated(operation)
	field := graphql.CollectFields(operation, operation.Operation.SelectionSet, subscriptionImplementors)[0]
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Subscription"})
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Subscription", Field: field, IsMethod: true, IsResolver: true, Result: change})
	update := generated.marshalNOrderUpdate2ᚖgithubᚗcomᚋordergraphᚋordergraphᚋdynamoᚐOrderChange(ctx, field.Selections, change)
	paymentOf(ctx).rootField(update, ast.Subscription)
	if update == graphql.Null {
		return &graphql.Response{Data: []byte("null")}
	}
	var data bytes.Buffer
	out := &boundWriter{to: &data, size: size}
	// A name has no characters that JSON would escape.
	_, _ = out.WriteString(`{"` + field.Alias + `":`)
	update.MarshalGQL(out)
	_, _ = out.WriteString("}")
	return &graphql.Response{Data: data.Bytes()}
}
