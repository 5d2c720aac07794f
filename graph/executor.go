package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Request is a GraphQL request as a client sends it.
type Request struct {
	// Query is the document's text; empty where the request names a document instead.
	Query string
	// DocumentID names a trusted document.
	DocumentID string
	// OperationName chooses among the document's operations; empty where there is only one.
	OperationName string
	// Variables are the values of variables as JSON gives them, numbers as json.Number.
	Variables map[string]any
	// Extensions are what clients send besides; persistedQuery is read.
	Extensions map[string]any
	// ReadOnly refuses mutations.
	ReadOnly bool
	// Paid is what Charge has taken for the request; 0 where it was not called.
	Paid int
}

// Outcome tells how far a request came.
type Outcome int

// Outcomes.
const (
	// Executed requests have data, which is null where a fault took all of it away.
	Executed Outcome = iota
	// Refused requests were not executed: the response has errors and no data.
	Refused
	// Overloaded requests were refused because those that are under way cost too much together; see
	// admission.Cost.
	Overloaded
	// NotReadOnly requests were refused because Request.ReadOnly allows no mutations.
	NotReadOnly
	// RateLimited requests were refused because who makes them has asked for too much lately; see
	// Rates.
	RateLimited
)

// Result is the answer to a request.
type Result struct {
	*graphql.Response
	Outcome Outcome
	// Mutation reports whether the request was a mutation and executed. Then it is not to be sent
	// again without a thought.
	Mutation bool
	// RetryAfter is how long it takes until a RateLimited request fits.
	RetryAfter time.Duration
	// Refusal is why an Overloaded request was refused.
	Refusal *admission.Refusal
}

// Executor answers GraphQL requests. It is safe for concurrent use.
//
// A request passes these checks before anything is read. The document is found, or parsed, kept
// within limits and validated; its operation is chosen and the variables are coerced (package
// document). The operation is prepared; the caller has permission for all that it selects; its cost
// is within the limit (package operation). The caller's rate and the quota of concurrent cost have
// room for it (packages rate and admission). Then an execution runs it, with a budget of requests
// (Limits.Requests) and a limit of the response (response.go).
//
// The operations that are being executed share admission.Cost: their responses grow in memory at
// the same time, so that a limit for each, and one for how many there are, would let two hundred of
// the largest take gigabytes. The events of subscriptions have admission.Events, so that a change
// that ten thousand follow keeps no query out. Events wait in the feed, which ends subscriptions
// that fall behind.
type Executor struct {
	resolver *Resolver
	schema   *executableSchema
	fields   *fieldResolvers
	preparer *operation.Preparer
	// plans reports whether to look ahead. Without a plan the responses are the same and take more
	// requests.
	plans  bool
	limits document.Limits
	costs  operation.Costs
	rates  *rate.Limiter
	// anonymousRates has the buckets of callers without a token. They are kept apart: however many
	// addresses callers have, they make the server forget no other bucket.
	anonymousRates *rate.Limiter
	pools          *admission.Controller
	documents      *document.Store
	// eventTime is how long each event's execution can take, and followed are the documents that
	// subscriptions hold.
	eventTime time.Duration
	followed  *document.Held
}

// admittedOperation is an operation that can be executed.
type admittedOperation struct {
	*graphql.OperationContext
	document *document.Document
	prepared *operation.Prepared
	cost     int
	// work is what finding and preparing it took.
	work document.Work
	// paid is what was taken for it; nil where there are no rate limits.
	paid *rate.Reservation
}

// NewExecutor returns an Executor.
func NewExecutor(opts Options) *Executor {
	return newExecutor(opts, Schema())
}

func newExecutor(opts Options, served *ast.Schema) *Executor {
	r := &Resolver{
		store: opts.Store, feed: opts.Feed, cursors: opts.Cursors, report: opts.Report, authenticated: opts.Authenticated, requestID: opts.RequestID,
		access: operation.NewAccess(served, opts.Policy, !opts.NoIntrospection), entityTypes: entityTypes(),
	}
	schema := NewExecutableSchema(Config{Resolvers: r, Schema: served}).(*executableSchema)
	limits := setting.OrDefaults(opts.Limits)
	if opts.Rates.Burst > 0 {
		limits.Cost = min(limits.Cost, opts.Rates.Burst) // what never fits is not told to wait
	}
	fields := newFieldResolvers(r, newExecutionContext(&graphql.OperationContext{}, schema, nil))
	costs := operation.NewCosts(served, limits, dynamo.NewBounds(1).WriteUnits)
	pools := opts.Admission
	if pools == nil {
		pools = admission.New(admission.Sizes{})
	}
	return &Executor{
		resolver:       r,
		schema:         schema,
		fields:         fields,
		preparer:       operation.NewPreparer(served, r.access, costs, objectTypeOf, fields.generated),
		plans:          true,
		limits:         limits,
		costs:          costs,
		rates:          rate.NewLimiter(opts.Rates),
		anonymousRates: rate.NewLimiter(opts.Rates),
		pools:          pools,
		documents:      document.NewStore(schema.Schema(), document.Options{Limits: limits, NoIntrospection: opts.NoIntrospection, Trusted: opts.Documents, TrustedOnly: opts.TrustedOnly, Preparations: pools[admission.Preparations], Unfit: opts.Unfit}),
		eventTime:      opts.EventTime,
		followed:       document.NewHeld(pools[admission.SubscriptionMemory]),
	}
}

// Execute answers one request. All that goes wrong is in the result. A subscription is refused, as
// it has more than one answer: see Start.
func (e *Executor) Execute(ctx context.Context, r Request) Result {
	_, result := e.start(ctx, r, func(ctx context.Context, o *admittedOperation) (*Stream, Result) {
		o.paid.Settle(0, nil)
		return nil, Result{Response: e.refusal(ctx, errcode.New(o.Operation.Position, errcode.BadUserInput, "a subscription has more than one answer: send it over WebSocket (graphql-transport-ws), or accept text/event-stream")), Outcome: Refused}
	})
	return result
}

// start executes a query or a mutation, and has a subscription begun by subscribe.
func (e *Executor) start(ctx context.Context, r Request, subscribe func(context.Context, *admittedOperation) (*Stream, Result)) (stream *Stream, result Result) {
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
	case operation.Operation.Operation == ast.Subscription:
		return subscribe(ctx, operation)
	default:
		return nil, e.execute(ctx, operation)
	}
}

// admit makes an operation that can be executed of a request, and takes what it can cost; or it is
// the answer that tells why not.
func (e *Executor) admit(ctx context.Context, r Request) (*admittedOperation, *Result) {
	principal, rates := e.resolver.principal(ctx).ID, e.ratesOf(ctx)
	if r.Paid == 0 {
		var limited *Result
		if r.Paid, limited = e.Charge(ctx, 0); limited != nil {
			return nil, limited
		}
	}
	o, outcome, errs := e.prepare(ctx, r)
	worked := operation.WorkPoints(o.work)
	rates.Deduct(principal, worked)
	if len(errs) > 0 {
		refused := Result{Response: &graphql.Response{}, Outcome: outcome}
		for _, err := range errs[:min(len(errs), errcode.MaxErrors)] {
			refused.Errors = append(refused.Errors, e.resolver.present(ctx, err))
		}
		return nil, &refused
	}
	paid, wait := rates.Reserve(principal, o.cost, r.Paid+worked)
	if wait > 0 {
		return nil, &Result{Response: rates.Refuse(principal, o.Operation.Position, o.cost, r.Paid+worked, wait), Outcome: RateLimited, RetryAfter: wait}
	}
	o.paid = paid
	return o, nil
}

// Charge takes the points of a request of so many bytes, which has arrived and is not yet decoded:
// the least that a request costs, and its bytes. They are for Request.Paid. A caller who does not
// have as many is refused. The points are kept whatever becomes of the request.
func (e *Executor) Charge(ctx context.Context, bytes int) (paid int, limited *Result) {
	principal, rates := e.resolver.principal(ctx).ID, e.ratesOf(ctx)
	paid, wait := rates.Charge(principal, bytes/operation.PointBytes)
	if wait > 0 {
		return 0, &Result{Response: rates.Refuse(principal, nil, paid, 0, wait), Outcome: RateLimited, RetryAfter: wait}
	}
	return paid, nil
}

// ratesOf returns the limiter that has the caller's bucket.
func (e *Executor) ratesOf(ctx context.Context) *rate.Limiter {
	if e.resolver.principal(ctx).Role == commerce.RoleAnonymous {
		return e.anonymousRates
	}
	return e.rates
}

// execute executes a query or a mutation, if there is room for what it costs.
func (e *Executor) execute(ctx context.Context, operation *admittedOperation) (result Result) {
	spent := 0
	defer func() { operation.paid.Settle(spent, result.Response) }()
	caller, cost := admission.CallerOf(ctx), e.pools[admission.Cost]
	if refused := cost.Take(caller, operation.cost); refused != nil {
		return Result{Response: e.refusal(ctx, refused), Outcome: Overloaded, Refusal: refused}
	}
	defer cost.Give(caller, operation.cost)
	result.Mutation = operation.Operation.Operation == ast.Mutation
	result.Response, spent = e.run(ctx, operation, nil)
	return result
}

func (e *Executor) refusal(ctx context.Context, err error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{e.resolver.present(ctx, err)}}
}

// prepare makes an operation that can be executed of a request, or tells what is wrong with it;
// then there is only the work that it took.
func (e *Executor) prepare(ctx context.Context, r Request) (*admittedOperation, Outcome, gqlerror.List) {
	start, o := graphql.Now(), &admittedOperation{}
	who, access := e.resolver.principal(ctx), e.resolver.access
	if who.Role == 0 {
		return o, Refused, gqlerror.List{unauthenticated()}
	}
	quiet := access.Quiet(who)
	doc, work, missing := e.documents.Find(ctx, r.DocumentID, r.Query, r.Extensions, quiet)
	if o.work = work; missing != nil {
		return o, Refused, gqlerror.List{missing}
	}
	chosen := doc.Operation(r.OperationName)
	switch {
	case r.ReadOnly && chosen != nil && chosen.Operation == ast.Mutation:
		// Whatever else is wrong with it.
		return o, NotReadOnly, gqlerror.List{errcode.New(chosen.Position, errcode.MethodNotAllowed, "this way of asking changes nothing: send a mutation with POST")}
	case len(doc.Errors(quiet)) > 0:
		return o, Refused, doc.Errors(quiet)
	case chosen == nil:
		return o, Refused, gqlerror.List{doc.NoOperation(r.OperationName)}
	}
	variables, errs := e.documents.Variables(doc, chosen, r.Variables, quiet)
	if len(errs) > 0 {
		return o, Refused, errs
	}
	prepared, work := e.preparer.Prepare(doc, chosen, variables)
	o.work.Visited += work.Visited
	if prepared.TooLarge {
		return o, Refused, gqlerror.List{errcode.New(chosen.Position, document.Codes.Cost, "the %s selects more than %d fields where every fragment is spread: select fewer", chosen.Operation, document.MaxExpanded)}
	}
	if errs := access.Check(who, prepared, variables); len(errs) > 0 {
		return o, Refused, errs
	}
	cost := prepared.Cost(variables)
	if err := e.costs.Check(chosen, cost); err != nil {
		return o, Refused, gqlerror.List{err}
	}
	o.document, o.prepared, o.cost, o.OperationContext = doc, prepared, cost, &graphql.OperationContext{
		RawQuery:           doc.Text,
		Variables:          variables,
		OperationName:      r.OperationName,
		Doc:                doc.Parsed,
		Operation:          chosen,
		RecoverFunc:        recovered,
		ResolverMiddleware: func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) },
		Stats:              graphql.Stats{OperationStart: start},
	}
	return o, Executed, nil
}
