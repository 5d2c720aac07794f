package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/dynamo"
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
}

// Outcome tells how far a request came.
type Outcome int

// Outcomes.
const (
	// Executed requests have data, which is null where a fault took all of it away.
	Executed Outcome = iota
	// Refused requests were not executed: the response has errors and no data.
	Refused
	// Overloaded requests were refused because those that are under way cost too much together; see Limits.ConcurrentCost.
	Overloaded
	// NotReadOnly requests were refused because Request.ReadOnly allows no mutations.
	NotReadOnly
	// RateLimited requests were refused because who makes them has asked for too much lately; see Rates.
	RateLimited
)

// Result is the answer to a request.
type Result struct {
	*graphql.Response
	Outcome Outcome
	// Mutation tells that the request was a mutation and executed, so that it is not to be sent again without a thought.
	Mutation bool
	// RetryAfter is how long it takes until a RateLimited request fits.
	RetryAfter time.Duration
}

// Executor answers GraphQL requests. It is safe for concurrent use.
//
// A request goes through gates, and nothing is read for one that does not pass them all: the document is found, or parsed,
// kept within limits and validated (documents.go, limits.go); its operation is chosen; the variables are checked
// (variables.go); who makes the request may use all that it selects (access.go); the cost is counted (cost.go), whoever asks has so much left
// (rate.go), and there is room for it beside what is being executed (load.go). Then scope and the generated code execute it, with a budget of
// requests (Limits.Requests) and room for so long an answer (answer_size.go).
type Executor struct {
	resolver *Resolver
	schema   *executableSchema
	// walkers are nil where gqlgen's code executes everything.
	walkers   *walkResolvers
	scope     scope
	limits    Limits
	costs     costs
	rates     *rates
	load      *load
	documents *documents
	// eventTime is how long each event's execution can take, events is what they cost at once, and followed are the documents that
	// subscriptions hold.
	eventTime time.Duration
	events    *load
	followed  *followedDocuments
}

// operation is one that can be executed.
type operation struct {
	*graphql.OperationContext
	cost     int
	document *document
	// paid is what was taken for it; nil where there are no rate limits.
	paid *payment
}

// NewExecutor returns an Executor.
func NewExecutor(opts Options) *Executor {
	return newExecutor(opts, newSchema())
}

func newExecutor(opts Options, served *ast.Schema) *Executor {
	r := &Resolver{
		store: opts.Store, feed: opts.Feed, cursors: opts.Cursors, report: opts.Report, authenticated: opts.Authenticated, requestID: opts.RequestID,
		access: newAccess(served, opts.Policy, !opts.NoIntrospection),
	}
	schema := NewExecutableSchema(Config{Resolvers: r, Schema: served}).(*executableSchema)
	limits := opts.Limits.orDefaults()
	if opts.Rates.Burst > 0 {
		limits.Cost = min(limits.Cost, opts.Rates.Burst) // what never fits is not told to wait
	}
	return &Executor{
		resolver:  r,
		schema:    schema,
		walkers:   newWalkers(r, schema),
		scope:     scope{resolver: r, plans: true},
		limits:    limits,
		costs:     newCosts(schema.Schema(), limits),
		rates:     newRates(opts.Rates),
		load:      newLoad(limits.ConcurrentCost),
		documents: newDocuments(schema.Schema(), opts),
		eventTime: opts.EventTime,
		events:    newLoad(max(1, limits.ConcurrentCost/eventShare)),
		followed:  newFollowedDocuments(followedBytes),
	}
}

// Execute answers one request. All that goes wrong is in the result. A subscription is refused, as it has more than one answer: see Start.
func (e *Executor) Execute(ctx context.Context, r Request) (result Result) {
	ctx = withReported(ctx)
	defer func() {
		if panicked := recover(); panicked != nil {
			result = Result{Response: e.refusal(ctx, recovered(ctx, panicked)), Outcome: Refused}
		}
	}()
	operation, refused := e.admit(ctx, r)
	if refused != nil {
		return *refused
	}
	if operation.Operation.Operation == ast.Subscription {
		operation.paid.settle(nil)
		return Result{Response: e.refusal(ctx, refusedAt(operation.Operation.Position, CodeBadUserInput, "a subscription has more than one answer: send it over WebSocket (graphql-transport-ws), or accept text/event-stream")), Outcome: Refused}
	}
	return e.execute(ctx, operation)
}

// admit makes an operation that can be executed of a request, and takes what it can cost; or it is the answer that tells why not.
func (e *Executor) admit(ctx context.Context, r Request) (*operation, *Result) {
	principal := e.resolver.principal(ctx).ID
	if wait, ok := e.rates.take(principal, refusedCost, 0); !ok {
		refused := e.rates.refused(principal, nil, refusedCost, 0, wait)
		return nil, &refused
	}
	operation, outcome, errs := e.prepare(ctx, r)
	if len(errs) > 0 {
		refused := Result{Response: &graphql.Response{}, Outcome: outcome}
		for _, err := range errs[:min(len(errs), maxErrors)] {
			refused.Errors = append(refused.Errors, e.resolver.present(ctx, err))
		}
		return nil, &refused
	}
	paid, wait := e.rates.pay(principal, operation.cost, refusedCost)
	if wait > 0 {
		refused := e.rates.refused(principal, operation.Operation.Position, operation.cost, refusedCost, wait)
		return nil, &refused
	}
	operation.paid = paid
	return operation, nil
}

// execute executes a query or a mutation, if there is room for what it costs.
func (e *Executor) execute(ctx context.Context, operation *operation) (result Result) {
	defer func() { operation.paid.settle(result.Response) }()
	if !e.load.begin(operation.cost) {
		return Result{Response: e.refusal(ctx, refusedAt(nil, CodeOverloaded, "the server is busy with operations that cost as much together as it takes on at once: try again in a moment, or ask for less")), Outcome: Overloaded}
	}
	defer e.load.end(operation.cost)
	return Result{Response: e.run(withOutlooks(withPayment(ctx, operation.paid), operation.document), operation), Mutation: operation.Operation.Operation == ast.Mutation}
}

// maxErrors is how many errors of one document are told; the client mends the first anyway.
const maxErrors = 20

func (e *Executor) refusal(ctx context.Context, err error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{e.resolver.present(ctx, err)}}
}

// prepare makes an operation that can be executed of a request, or tells what is wrong with it.
func (e *Executor) prepare(ctx context.Context, r Request) (*operation, Outcome, gqlerror.List) {
	start := graphql.Now()
	who, access := e.resolver.principal(ctx), e.resolver.access
	if who.Role == 0 {
		return nil, Refused, gqlerror.List{unauthenticated()}
	}
	quiet := access.quiet(who)
	document, missing := e.documents.find(r, quiet)
	if missing != nil {
		return nil, Refused, gqlerror.List{missing}
	}
	chosen := document.operation(r.OperationName)
	switch {
	case r.ReadOnly && chosen != nil && chosen.Operation == ast.Mutation:
		// Whatever else is wrong with it.
		return nil, NotReadOnly, gqlerror.List{refusedAt(chosen.Position, CodeMethodNotAllowed, "this way of asking changes nothing: send a mutation with POST")}
	case len(document.errs) > 0:
		return nil, Refused, document.told(quiet)
	case chosen == nil:
		return nil, Refused, gqlerror.List{notFound(document.parsed, r.OperationName)}
	}
	variables, errs := coerceVariables(e.schema.Schema(), chosen, r.Variables, e.limits, quiet)
	if len(errs) > 0 {
		return nil, Refused, errs
	}
	facts := document.facts(access, chosen)
	if !facts.allows(access.policy, who) {
		if errs := access.check(who, chosen, variables); len(errs) > 0 {
			return nil, Refused, errs
		}
	}
	cost := facts.cost(e.costs, chosen, variables)
	if err := e.costs.refused(chosen, cost); err != nil {
		return nil, Refused, gqlerror.List{err}
	}
	return &operation{cost: cost, document: document, OperationContext: &graphql.OperationContext{
		RawQuery:           document.text,
		Variables:          variables,
		OperationName:      r.OperationName,
		Doc:                document.parsed,
		Operation:          chosen,
		RecoverFunc:        recovered,
		ResolverMiddleware: func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) },
		Stats:              graphql.Stats{OperationStart: start},
	}}, Executed, nil
}

// notFound tells which operations there are.
func notFound(document *ast.QueryDocument, name string) *gqlerror.Error {
	if name == "" {
		return gqlerror.Errorf("the request has several operations: name the one to execute with operationName")
	}
	err := gqlerror.Errorf("the document has no operation of the name that operationName gives")
	if len(document.Operations) == 1 && document.Operations[0].Name == "" {
		err.Message += ": its one operation has no name, so leave operationName out"
	}
	return err
}

// run executes a query or a mutation: by a walk (walk.go) where it can, else by gqlgen's generated code.
func (e *Executor) run(ctx context.Context, operation *operation) *graphql.Response {
	size, paid := &answerSize{left: e.limits.Answer}, paymentOf(ctx)
	if tree := e.walkTree(operation.document, operation.OperationContext); tree != nil {
		return e.answered(e.begun(ctx, operation.OperationContext), operation.Operation, size, func(ctx context.Context) *graphql.Response {
			return e.walk(ctx, operation.OperationContext, tree, func(w *walker) []byte { return w.query(tree.root, size) })
		})
	}
	operation.RootResolverMiddleware = func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
		return size.bound(paid.rootField(e.scope.rootField(ctx, next), operation.Operation.Operation))
	}
	paid.watch(operation.OperationContext)
	ctx = e.begun(ctx, operation.OperationContext)
	return e.answered(ctx, operation.Operation, size, e.schema.Exec(ctx))
}

// begun returns the context in which an operation is executed: with what it is, its budget, and a place for its errors.
func (e *Executor) begun(ctx context.Context, operation *graphql.OperationContext) context.Context {
	ctx = context.WithValue(ctx, readBudgetKey{}, dynamo.NewReadBudget(e.limits.Requests))
	ctx = graphql.WithOperationContext(ctx, operation)
	return graphql.WithResponseContext(ctx, e.resolver.present, recovered)
}

// answered executes an operation in its scope, and makes its answer complete.
func (e *Executor) answered(ctx context.Context, operation *ast.OperationDefinition, size *answerSize, execute graphql.ResponseHandler) *graphql.Response {
	return e.scope.response(ctx, func(ctx context.Context) *graphql.Response {
		response := execute(ctx)
		if size.left < 0 {
			response.Data = nil
			response.Errors = gqlerror.List{size.refused(operation, e.limits.Answer)}
		}
		response.Errors = append(response.Errors, graphql.GetErrors(ctx)...)
		return response
	})
}
