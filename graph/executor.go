package graph

import (
	"cmp"
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/graph/scalar"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/price"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Request is a GraphQL request from a client.
type Request struct {
	// Query is the text of the GraphQL document. It can be empty if DocumentID or Extensions identify
	// the document.
	Query string
	// DocumentID is the ID of a trusted document.
	DocumentID string
	// OperationName selects an operation. It can be empty if the document has only one.
	OperationName string
	// Variables are the values of the variables, decoded from JSON with numbers as json.Number.
	Variables map[string]any
	// Extensions are the extensions of the request. Only persistedQuery is used.
	Extensions map[string]any
	// If ReadOnly is true, the executor rejects mutations.
	ReadOnly bool
	// ChargedPoints is the number of points that Charge has taken for the request. It is 0 if Charge
	// was not called.
	ChargedPoints int

	// measurement measures the operation for an Observer. The executor sets it.
	measurement *observe.Measurement
}

// Outcome describes how the processing of a request ended.
type Outcome int

// The possible outcomes of a request.
const (
	// Executed means that the operation was executed. The data may be null because of an error.
	Executed Outcome = iota
	// Refused means that nothing was executed. The response contains errors and no data.
	Refused
	// Overloaded means that the request was refused, because the running operations have reached the
	// limit of their total cost (admission.PoolOperationCost).
	Overloaded
	// MutationNotAllowed means that the request was refused, because it selects a mutation and
	// Request.ReadOnly is true.
	MutationNotAllowed
	// RateLimited means that the request was refused, because it exceeds the caller's rate limit
	// (Options.Rates).
	RateLimited
)

// Result is the result of a request.
type Result struct {
	*graphql.Response
	Outcome Outcome
	// Mutation reports whether a mutation was executed. If it is true, repeating the request could
	// repeat the change.
	Mutation bool
	// RetryAfter is the time until the caller has enough points, if Outcome is RateLimited.
	RetryAfter time.Duration
	// Refusal is the reason if a pool of package admission refused the request. Otherwise, it is nil.
	Refusal *admission.Refusal
}

// Executor executes GraphQL requests. It is safe for concurrent use. Before any read, it checks the
// document, permissions, cost, rate limit and server load.
type Executor struct {
	resolver *Resolver
	schema   *executableSchema
	fields   *fieldResolvers
	preparer *operation.Preparer
	// lookahead enables plans (plan.go). Without a plan, an operation sends more DynamoDB requests.
	lookahead bool
	limits    document.Limits
	costs     operation.CostCalculator
	rates     *rate.Limiter
	// anonymousRates limits callers without a token. It is separate from rates, because anonymous
	// requests from many addresses could otherwise displace the stored points of authenticated
	// callers.
	anonymousRates *rate.Limiter
	// pools limits the load of concurrent requests. Subscription events have their own pool
	// (admission.PoolEventCost), so a change with many subscribers does not block queries.
	pools     *admission.Controller
	documents *document.Store
	// prices contains the prices for the explain output (extensions.explain).
	prices price.Prices
	// eventTime is the time limit for executing one event of a subscription. subscriptionMemory counts
	// the memory of the documents and variables of all subscriptions.
	eventTime          time.Duration
	subscriptionMemory *document.SubscriptionMemory
	observer           observe.Observer
}

// admittedOperation is an operation that passed all checks.
type admittedOperation struct {
	*graphql.OperationContext
	document *document.Document
	prepared *operation.Prepared
	// arguments is the result of operation.Prepared.VariableArguments.
	arguments []any
	cost      int
	// work counts the nodes that the server parsed and visited to prepare the operation.
	work document.ProcessedNodes
	// reservation holds the points that are reserved for the operation. Without rate limits, it is
	// nil.
	reservation *rate.Reservation
}

// NewExecutor returns an Executor.
func NewExecutor(opts Options) *Executor {
	return newExecutor(opts, loadSchema(servedSources(opts.Extension)))
}

func newExecutor(opts Options, served *ast.Schema) *Executor {
	r := &Resolver{
		store: opts.Store, feed: opts.Feed, cursors: opts.Cursors, report: opts.Report, authenticated: opts.Authenticated, requestID: opts.RequestID, extension: opts.Extension, observeBatch: opts.ObserveBatch, checkWebhookURL: opts.CheckWebhookURL,
		access: operation.NewAccessChecker(served, opts.Policy, !opts.NoIntrospection), entityTypes: entityTypes(), queries: map[string]model.CustomQuery{},
	}
	for _, q := range opts.Extension.Queries() {
		r.queries[q.Name] = q
	}
	restrictCustomFields(&r.access, served, opts.Extension)
	schema := &executableSchema{SchemaData: served, Resolvers: r}
	limits := setting.OrDefaults(opts.Limits)
	if opts.Rates.Burst > 0 {
		limits.Cost = min(limits.Cost, opts.Rates.Burst) // no caller ever has more points than Burst
	}
	fields := newFieldResolvers(r, newExecutionContext(&graphql.OperationContext{}, schema, nil))
	costs := operation.NewCostCalculator(served, limits, dynamo.NewCostBounds(1).WriteUnits)
	pools := opts.Admission
	if pools == nil {
		pools = admission.New(admission.Sizes{})
	}
	r.documents = document.NewStore(schema.Schema(), document.Options{Limits: limits, Scalars: scalar.Coercions(), NoIntrospection: opts.NoIntrospection, Trusted: opts.Documents, TrustedOnly: opts.TrustedOnly, Preparations: pools[admission.PoolParsing], OnInvalid: opts.OnInvalidDocument})
	return &Executor{
		resolver:           r,
		schema:             schema,
		fields:             fields,
		preparer:           operation.NewPreparer(served, r.access, costs, customInputs{opts.Extension, served, r.queries}.objectType, fields.generated),
		lookahead:          true,
		limits:             limits,
		costs:              costs,
		rates:              rate.NewLimiter(opts.Rates),
		anonymousRates:     rate.NewLimiter(opts.Rates),
		pools:              pools,
		documents:          r.documents,
		prices:             cmp.Or(opts.Prices, price.Standard()),
		eventTime:          opts.EventTime,
		subscriptionMemory: document.NewSubscriptionMemory(pools[admission.PoolSubscriptionMemory]),
		observer:           opts.Observer,
	}
}

// Execute executes a query or mutation. It refuses subscriptions. The result contains all errors.
func (e *Executor) Execute(ctx context.Context, r Request) Result {
	_, result := e.start(ctx, r, func(ctx context.Context, o *admittedOperation) (*Subscription, Result) {
		return e.refuseSubscription(ctx, o, errcode.BadUserInput, "a subscription requires a streaming transport: use WebSocket (graphql-transport-ws), or accept text/event-stream")
	})
	return result
}

// start executes a query or a mutation. For a subscription, it calls subscribe instead.
func (e *Executor) start(ctx context.Context, r Request, subscribe func(context.Context, *admittedOperation) (*Subscription, Result)) (stream *Subscription, result Result) {
	ctx, r.measurement = observe.Begin(withReportedErrors(ctx), e.observer, r.Query)
	defer func() { r.measurement.End(ctx, result.Errors) }()
	defer func() {
		if panicked := recover(); panicked != nil {
			stream, result = nil, Result{Response: e.errorResponse(ctx, panicError(ctx, panicked)), Outcome: Refused}
		}
	}()
	operation, refused := e.admit(ctx, r)
	switch {
	case refused != nil:
		return nil, *refused
	case operation.Operation.Operation == ast.Subscription && e.resolver.feed == nil:
		return e.refuseSubscription(ctx, operation, errcode.SubscriptionsOff, "this server does not support subscriptions: query the records at intervals instead")
	case operation.Operation.Operation == ast.Subscription:
		return subscribe(ctx, operation)
	default:
		return nil, e.execute(ctx, operation)
	}
}

// admit prepares the operation of a request and reserves its cost. If admit refuses the request, it
// returns the result for the client instead of the operation.
func (e *Executor) admit(ctx context.Context, r Request) (*admittedOperation, *Result) {
	principal, rates := e.resolver.principal(ctx).ID, e.callerLimiter(ctx)
	if r.ChargedPoints == 0 {
		var refused *Result
		if r.ChargedPoints, refused = e.Charge(ctx, 0); refused != nil {
			return nil, refused
		}
	}
	o, outcome, errs := e.prepare(ctx, r)
	if len(errs) == 0 {
		if errs = e.readArguments(ctx, o); len(errs) > 0 {
			outcome = Refused
		}
	}
	workPoints := operation.PreparationPoints(o.work)
	rates.Deduct(principal, workPoints)
	if len(errs) > 0 {
		refused := Result{Response: &graphql.Response{}, Outcome: outcome}
		for _, err := range errs[:min(len(errs), errcode.MaxErrors)] {
			refused.Errors = append(refused.Errors, e.resolver.presentError(ctx, err))
		}
		return nil, &refused
	}
	paid, wait := rates.Reserve(principal, o.cost, r.ChargedPoints+workPoints)
	if wait > 0 {
		return nil, &Result{Response: rates.RateLimitedResponse(principal, o.Operation.Position, o.cost, r.ChargedPoints+workPoints, wait), Outcome: RateLimited, RetryAfter: wait}
	}
	o.reservation = paid
	return o, nil
}

// readArguments converts the arguments that contain variables.
func (e *Executor) readArguments(ctx context.Context, o *admittedOperation) gqlerror.List {
	var err *gqlerror.Error
	if o.arguments, err = o.prepared.VariableArguments(ctx, e.fields.generated, o.Variables); err != nil {
		return gqlerror.List{err}
	}
	return nil
}

// Charge takes points from the client for a request of the given size, before the server decodes
// the request. Store the result paid in Request.ChargedPoints. If the client has too few points,
// the result refused is not nil.
func (e *Executor) Charge(ctx context.Context, bytes int) (paid int, refused *Result) {
	principal, rates := e.resolver.principal(ctx).ID, e.callerLimiter(ctx)
	paid, wait := rates.Charge(principal, bytes/operation.BytesPerPoint)
	if wait > 0 {
		return 0, &Result{Response: rates.RateLimitedResponse(principal, nil, paid, 0, wait), Outcome: RateLimited, RetryAfter: wait}
	}
	return paid, nil
}

// ChargeMessages takes points from the client for messages that it has sent on a WebSocket. It waits
// until the client has the points. If ctx ends first, it returns the error of ctx.
func (e *Executor) ChargeMessages(ctx context.Context, points int) error {
	return e.callerLimiter(ctx).Pace(ctx, e.resolver.principal(ctx).ID, points)
}

// RequestCost returns the number of points that Charge takes for a request of the given size. It is
// the value of Request.ChargedPoints if ChargeMessages has charged the request.
func (e *Executor) RequestCost(ctx context.Context, bytes int) int {
	return e.callerLimiter(ctx).RequestCost(bytes / operation.BytesPerPoint)
}

// callerLimiter returns the rate limiter that contains the caller's points.
func (e *Executor) callerLimiter(ctx context.Context) *rate.Limiter {
	if e.resolver.principal(ctx).Role == access.RoleAnonymous {
		return e.anonymousRates
	}
	return e.rates
}

// execute executes a query or a mutation. If admission.PoolOperationCost has no capacity for its
// cost, execute refuses it.
func (e *Executor) execute(ctx context.Context, operation *admittedOperation) (result Result) {
	spent := 0
	defer func() { operation.reservation.Settle(spent, result.Response) }()
	caller, cost := admission.CallerFromContext(ctx), e.pools[admission.PoolOperationCost]
	if refused := cost.TryAcquire(caller, operation.cost); refused != nil {
		return Result{Response: e.errorResponse(ctx, refused), Outcome: Overloaded, Refusal: refused}
	}
	defer cost.Release(caller, operation.cost)
	result.Mutation = operation.Operation.Operation == ast.Mutation
	result.Response, spent = e.run(ctx, operation, nil)
	return result
}

func (e *Executor) errorResponse(ctx context.Context, err error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{e.resolver.presentError(ctx, err)}}
}

// prepare prepares the operation of a request. If prepare returns errors, it sets only the field
// named work of the admittedOperation.
func (e *Executor) prepare(ctx context.Context, r Request) (*admittedOperation, Outcome, gqlerror.List) {
	start, o := graphql.Now(), &admittedOperation{}
	principal, access := e.resolver.principal(ctx), e.resolver.access
	if principal.Role == 0 {
		return o, Refused, gqlerror.List{newUnauthenticatedError()}
	}
	quiet := access.HidesSchema(principal)
	doc, work, missing := e.documents.Find(ctx, r.DocumentID, r.Query, r.Extensions, quiet)
	if o.work = work; missing != nil {
		return o, Refused, gqlerror.List{missing}
	}
	chosen := doc.Operation(r.OperationName)
	r.measurement.SetOperation(doc, chosen)
	switch {
	case r.ReadOnly && chosen != nil && chosen.Operation == ast.Mutation:
		// This error takes precedence over errors in the document, because the client must first use
		// another HTTP method.
		return o, MutationNotAllowed, gqlerror.List{errcode.New(chosen.Position, errcode.MethodNotAllowed, "mutations are not allowed in this request: send mutations with POST")}
	case len(doc.Errors(quiet)) > 0:
		return o, Refused, doc.Errors(quiet)
	case chosen == nil:
		return o, Refused, gqlerror.List{doc.OperationNotFoundError(r.OperationName)}
	}
	variables, errs := e.documents.CoerceVariables(doc, chosen, r.Variables, quiet)
	if len(errs) > 0 {
		return o, Refused, errs
	}
	prepared, work := e.preparer.Prepare(doc, chosen, variables)
	o.work.Visited += work.Visited
	if prepared.TooLarge {
		return o, Refused, gqlerror.List{errcode.New(chosen.Position, document.LimitCodes.Cost, "the %s selects more than %d fields, including the fields of fragments: select fewer fields", chosen.Operation, document.MaxExpandedNodes)}
	}
	if err := access.Check(principal, prepared, variables); err != nil {
		return o, Refused, gqlerror.List{err}
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
		RecoverFunc:        panicError,
		ResolverMiddleware: func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) },
		Stats:              graphql.Stats{OperationStart: start},
	}
	return o, Executed, nil
}
