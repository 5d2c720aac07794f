package graph

import (
	"context"
	"errors"
	"math"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// Subscription is an active subscription. Between events, it holds no goroutine. Only one goroutine
// may use it at a time. The caller must call Close.
type Subscription struct {
	executor  *Executor
	operation *admittedOperation
	// caller is the caller whose share of the subscription memory is used.
	caller admission.Caller
	source changeSource
	ended  bool
}

// changeSource is the source of a subscription's events. feed.Subscription implements it.
type changeSource interface {
	Next(context.Context) (feed.OrderChange, error)
	Close()
}

// Start is like Execute, but also starts subscriptions. If it starts one, it returns a Subscription
// and a Result without errors. Otherwise, the Subscription is nil. ctx applies only to the start of
// the subscription.
func (e *Executor) Start(ctx context.Context, r Request) (*Subscription, Result) {
	return e.start(ctx, r, e.subscribe)
}

func (e *Executor) refuseSubscription(ctx context.Context, o *admittedOperation, code, message string) (*Subscription, Result) {
	o.reservation.Settle(0, nil)
	return nil, Result{Response: e.errorResponse(ctx, errcode.New(o.Operation.Position, code, "%s", message)), Outcome: Refused}
}

// subscribe starts a subscription. A successful start costs as much as one event.
func (e *Executor) subscribe(ctx context.Context, o *admittedOperation) (*Subscription, Result) {
	opened := &openedSource{}
	stream, result := e.openStream(ctx, o, opened)
	if stream == nil {
		o.reservation.Settle(0, nil)
	}
	// The cost of the operation includes only subscriptionStartReads. Further reads of missed
	// events are charged here, even if the subscription fails.
	e.callerLimiter(ctx).Deduct(e.resolver.principal(ctx).ID, operation.ListCost*(opened.reads-subscriptionStartReads))
	return stream, result
}

// subscriptionStartReads is the number of DynamoDB requests that the cost of starting a
// subscription includes. One of them reads the latest event, and the other reads a page of missed
// events.
const subscriptionStartReads = 2

// openStream opens the source of a subscription's events and stores it in opened.
func (e *Executor) openStream(ctx context.Context, operation *admittedOperation, opened *openedSource) (*Subscription, Result) {
	caller := admission.CallerFromContext(ctx)
	if refused := e.subscriptionMemory.Reserve(caller, operation.document, operation.Variables); refused != nil {
		return nil, Result{Response: e.errorResponse(ctx, refused), Outcome: Refused, Refusal: refused}
	}
	defer func() {
		if opened.source == nil {
			e.subscriptionMemory.Release(caller, operation.document, operation.Variables)
		}
	}()
	x := e.newExecution(context.WithValue(ctx, openedSourceKey{}, opened), operation)
	x.newLoaders(e.resolver.store, "")
	x.writeRoot(x.fieldSubscription) // the resolver opens the source (subscription_sources.go)
	response := x.respond(nil)
	if len(response.Errors) > 0 || opened.source == nil {
		if opened.source != nil {
			opened.source.Close()
			opened.source = nil
		}
		return nil, Result{Response: response, Outcome: Refused}
	}
	return &Subscription{executor: e, operation: operation, caller: caller, source: opened.source}, Result{Response: &graphql.Response{}}
}

// Next waits for an event and executes the operation. When the subscription has ended, it returns
// false and a Result with the error, if there is one. ctx must contain the same values as the
// context of the client's request.
func (s *Subscription) Next(ctx context.Context) (Result, bool) {
	if s.ended {
		return Result{Response: &graphql.Response{}}, false
	}
	ctx = withReportedErrors(ctx)
	// The feed may read missed changes. This budget only counts the requests.
	counted := table.NewReadBudget(math.MaxInt32)
	change, err := s.source.Next(counted.NewContext(ctx))
	if reads := math.MaxInt32 - counted.Remaining(); reads > 0 {
		s.executor.callerLimiter(ctx).Deduct(s.executor.resolver.principal(ctx).ID, operation.ListCost*reads)
	}
	if err == nil {
		var paid *rate.Reservation
		if paid, err = s.executor.callerLimiter(ctx).Wait(ctx, s.executor.resolver.principal(ctx).ID, s.operation.cost); err == nil {
			caller, events := admission.CallerFromContext(ctx), s.executor.pools[admission.PoolEventCost]
			if err = events.Acquire(ctx, caller, s.operation.cost); err == nil {
				defer events.Release(caller, s.operation.cost)
				return s.deliver(ctx, paid, &change), true
			}
			paid.Settle(0, nil)
		}
	}
	s.ended = true
	switch {
	case ctx.Err() != nil:
		return Result{Response: &graphql.Response{}}, false
	case errors.Is(err, feed.ErrTooSlow):
		err = errcode.New(s.operation.Operation.Position, errcode.TooSlow, "the subscription ended because the client did not read its events fast enough: subscribe again, and start after the last update that you received")
	}
	ctx, measurement := observe.BeginEvent(ctx, s.executor.observer, s.operation.document, s.operation.Operation)
	result := Result{Response: s.executor.errorResponse(ctx, err), Outcome: Refused}
	measurement.End(ctx, result.Errors)
	return result, false
}

// Close ends the subscription and releases its memory.
func (s *Subscription) Close() {
	s.source.Close()
	s.executor.subscriptionMemory.Release(s.caller, s.operation.document, s.operation.Variables)
}

// deliver executes the operation for one event. Each event has its own context, loaders, read
// budget and time limit.
func (s *Subscription) deliver(ctx context.Context, paid *rate.Reservation, change *feed.OrderChange) (result Result) {
	e, spent := s.executor, 0
	ctx, measurement := observe.BeginEvent(ctx, e.observer, s.operation.document, s.operation.Operation)
	defer func() { measurement.End(ctx, result.Errors) }()
	defer func() { paid.Settle(spent, result.Response) }()
	defer func() {
		if panicked := recover(); panicked != nil {
			result = Result{Response: e.errorResponse(ctx, panicError(ctx, panicked))}
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
