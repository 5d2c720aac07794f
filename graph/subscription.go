package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// Stream is a subscription that is being followed. It is for one goroutine, which has to close it.
//
// Between events it holds its operation and what it follows, and no goroutine. gqlgen's own streams
// are not used: they execute all events in one context, with one set of loaders, and answer
// {"field": null} where data have to be null.
type Stream struct {
	executor  *Executor
	operation *admittedOperation
	// caller is whom the subscription counts to.
	caller  admission.Caller
	changes changes
	over    bool
}

// changes is the source of a subscription's events: a feed.Subscription.
type changes interface {
	Next(context.Context) (feed.OrderChange, error)
	Close()
}

// Start begins what a request asks for, for clients that can be told more than one answer. Queries
// and mutations are executed, as by Execute; for a subscription the result is empty, and the Stream
// is not nil. ctx bounds the beginning only.
func (e *Executor) Start(ctx context.Context, r Request) (*Stream, Result) {
	return e.start(ctx, r, e.subscribe)
}

// subscribe begins a subscription. That costs as much as an event, and nothing of it comes back.
func (e *Executor) subscribe(ctx context.Context, o *admittedOperation) (*Stream, Result) {
	opened := &opening{}
	stream, result := e.follow(ctx, o, opened)
	if stream == nil {
		o.paid.Settle(0, nil)
	}
	// What was missed is read for one answer or for none, so it is paid for apart, also where after
	// turns out to be no such event.
	e.ratesOf(ctx).Deduct(e.resolver.principal(ctx).ID, operation.ListCost*(opened.reads-beginningReads))
	return stream, result
}

// beginningReads is how many requests are in the price of beginning: the last event, and a page of
// what came behind.
const beginningReads = 2

// follow opens the source of a subscription's events.
func (e *Executor) follow(ctx context.Context, operation *admittedOperation, opened *opening) (*Stream, Result) {
	caller := admission.CallerOf(ctx)
	if refused := e.followed.Take(caller, operation.document, operation.Variables); refused != nil {
		return nil, Result{Response: e.refusal(ctx, refused), Outcome: Refused, Refusal: refused}
	}
	defer func() {
		if opened.changes == nil {
			e.followed.Give(caller, operation.document, operation.Variables)
		}
	}()
	x := e.begin(context.WithValue(ctx, openingKey{}, opened), operation)
	x.load(e.resolver.store, "")
	x.root(x.fieldSubscription) // the resolver opens the source; see subscription_sources.go
	response := x.respond(nil)
	if len(response.Errors) > 0 || opened.changes == nil {
		if opened.changes != nil {
			opened.changes.Close()
			opened.changes = nil
		}
		return nil, Result{Response: response, Outcome: Refused}
	}
	return &Stream{executor: e, operation: operation, caller: caller, changes: opened.changes}, Result{Response: &graphql.Response{}}
}

// Next waits for an event and executes the operation for it. False means that there are no more:
// the result then has the error that the subscription ended with, or none.
//
// ctx ends the waiting. It carries what the request's context did: who made it, whether to explain.
func (s *Stream) Next(ctx context.Context) (Result, bool) {
	if s.over {
		return Result{Response: &graphql.Response{}}, false
	}
	ctx = withReported(ctx)
	change, err := s.changes.Next(ctx)
	if err == nil {
		var paid *rate.Reservation
		if paid, err = s.executor.ratesOf(ctx).Wait(ctx, s.executor.resolver.principal(ctx).ID, s.operation.cost); err == nil {
			caller, events := admission.CallerOf(ctx), s.executor.pools[admission.Events]
			if err = events.Await(ctx, caller, s.operation.cost); err == nil {
				defer events.Give(caller, s.operation.cost)
				return s.deliver(ctx, paid, &change), true
			}
			paid.Settle(0, nil)
		}
	}
	s.over = true
	switch {
	case ctx.Err() != nil:
		return Result{Response: &graphql.Response{}}, false
	case errors.Is(err, feed.ErrTooSlow):
		err = errcode.New(s.operation.Operation.Position, errcode.TooSlow, "more has happened than was read in time: subscribe again, beginning after the last update that arrived")
	}
	return Result{Response: s.executor.refusal(ctx, err), Outcome: Refused}, false
}

// Close ends the subscription and gives back what it holds.
func (s *Stream) Close() {
	s.changes.Close()
	s.executor.followed.Give(s.caller, s.operation.document, s.operation.Variables)
}

// deliver executes the operation for one event: in a context of its own, with loaders, a budget and
// a time limit of its own.
func (s *Stream) deliver(ctx context.Context, paid *rate.Reservation, change *feed.OrderChange) (result Result) {
	e, spent := s.executor, 0
	defer func() { paid.Settle(spent, result.Response) }()
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
	result.Response, spent = e.run(ctx, s.operation, change)
	return result
}
