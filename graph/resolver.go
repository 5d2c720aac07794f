// Package graph is the GraphQL face of the order book: documents and their limits, who may use what, resolvers, connections and cursors,
// entities of a federated graph, subscriptions, look-ahead, errors, the explain output, and the most that an operation can ask of DynamoDB
// (bound.go). It knows neither HTTP nor an AWS SDK.
//
// A request runs so: Executor (executor.go) lets it through when its document is within limits and valid, its variables are of their
// types, whoever makes it may use what it selects (access.go), and its cost is not too high, neither at all nor for them now (rate.go); scope gives it loaders and a plan (plan.go) that reads what the operation needs, side by side whatever is known at the same time;
// a walker (walk.go) goes through what is selected, or gqlgen's code does;
// resolvers, each one expression, pick up what was planned; errors.go decides what a client sees of an error. A subscription passes the same
// gates once, and is then executed for each change that it is told of (subscription.go).
package graph

import (
	"context"
	"fmt"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/loaders"
)

// Options are what the GraphQL face needs.
type Options struct {
	Store *dynamo.Store
	// Feed tells subscriptions what changes; nil where the server has none, and refuses them.
	Feed *dynamo.Feed
	// Cursors sign the cursors of lists.
	Cursors Cursors
	// Report is told every error that clients see as UNAVAILABLE or INTERNAL, with the request's context.
	Report func(ctx context.Context, err error)
	// Authenticated tells that requests come with a principal (WithPrincipal), and that those without may do nothing. Else all are
	// commerce.Anonymous.
	Authenticated bool
	// Policy says which role is granted what; nil for commerce.StandardPolicy.
	Policy *commerce.Policy
	// RequestID is the id by which a request stands in the log; nil where it has none.
	RequestID func(ctx context.Context) string
	// Limits bound what a request can ask for; those that are zero have their default.
	Limits Limits
	// Rates are how much each principal may cost.
	Rates Rates
	// NoIntrospection tells that clients may not ask for the schema.
	NoIntrospection bool
	// Documents are trusted documents; see ReadManifest.
	Documents []TrustedDocument
	// TrustedOnly tells that nothing but trusted documents is executed.
	TrustedOnly bool
	// EventTime is how long the operation of a subscription can take for each event; zero where that has no limit.
	EventTime time.Duration
	// Unfit is told each trusted document that does not fit the schema or a limit, with its first error; nil tells nobody.
	Unfit func(TrustedDocument, DocumentError)
}

type principalKey struct{}

// WithPrincipal returns the context of a request that somebody makes.
func WithPrincipal(ctx context.Context, p commerce.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// principal is who makes a request; the zero value where it does not say and has to.
func (r *Resolver) principal(ctx context.Context) commerce.Principal {
	p, ok := ctx.Value(principalKey{}).(commerce.Principal)
	if !ok && !r.authenticated {
		return commerce.Anonymous()
	}
	return p
}

// Resolver is the root of the resolvers.
type Resolver struct {
	store *dynamo.Store
	// feed is nil where subscriptions are refused.
	feed    *dynamo.Feed
	cursors Cursors
	report  func(ctx context.Context, err error)
	// authenticated tells that a request without a principal may do nothing.
	authenticated bool
	access        access
	// requestID is nil where requests have none.
	requestID func(ctx context.Context) string
}

// newSchema is the schema as it is served: without @defer, whose data would be dropped over plain POST; without the
// directives of federation and of access, and the types of their arguments, which only those who compose schemas can use; and without Float, which a
// schema that does not use it must not have (https://spec.graphql.org/September2025/#sec-Scalars.Built-in-Scalars).
func newSchema() *ast.Schema {
	schema := gqlparser.MustLoadSchema(sources...)
	for _, name := range []string{"defer", "link", "key", "shareable", "access"} {
		delete(schema.Directives, name)
	}
	for _, name := range []string{"link__Import", "federation__FieldSet", "Permission", "Float"} {
		delete(schema.Types, name)
	}
	return schema
}

type explainKey struct{}

// WithExplain returns a context in which a query's response explains what it read, to those who are granted commerce.Explain.
func WithExplain(ctx context.Context) context.Context {
	return context.WithValue(ctx, explainKey{}, true)
}

// scope gives every operation its loaders, its plan and, where it is asked for, its explanation.
type scope struct {
	resolver *Resolver
	// plans tells whether to look ahead. Without, the answer is the same and takes more requests.
	plans bool
}

// response wraps the execution of an operation.
func (s scope) response(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	var trace *dynamo.Trace
	if ctx.Value(explainKey{}) != nil && s.resolver.granted(ctx, commerce.Explain) != commerce.None {
		trace = &dynamo.Trace{}
		ctx = trace.Begin(ctx)
	}
	store := s.resolver.store
	if eventOf(ctx) != nil {
		// Who is told of a change sees it, and what was written before it.
		store = store.Consistent()
	}
	l := s.loaders(ctx, store)
	if s.plans {
		s.plan(ctx, l)
	}
	ctx = context.WithValue(dynamo.SpanOf(ctx).Unplanned(ctx, ""), loadersKey{}, l)
	response := next(ctx)
	if trace != nil {
		if response.Extensions == nil {
			response.Extensions = map[string]any{}
		}
		response.Extensions["explain"] = explain(trace)
	}
	return response
}

type readBudgetKey struct{}

// loaders returns loaders on the operation's budget. What a mutation itself reads is not on it, so that none is left half done.
func (s scope) loaders(ctx context.Context, store *dynamo.Store) *loaders.Loaders {
	budget, _ := ctx.Value(readBudgetKey{}).(*dynamo.ReadBudget)
	ctx = budget.On(ctx)
	return loaders.New(ctx, store, s.resolver.viewer(ctx), func(panicked any) { s.resolver.report(ctx, recovered(ctx, panicked)) })
}

// rootField gives each mutation loaders of its own, which have read nothing yet and read consistently: what its payload
// shows is the state that it left, whatever mutations of the same request read or wrote before.
func (s scope) rootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation != ast.Mutation {
		return next(ctx)
	}
	ctx = dynamo.SpanOf(ctx).Unplanned(ctx, graphql.GetRootFieldContext(ctx).Field.Alias)
	return next(context.WithValue(ctx, loadersKey{}, s.loaders(ctx, s.resolver.store.Consistent())))
}

// plan reads what the operation will need, and returns when that is there. A panic here costs requests, not the answer.
func (s scope) plan(ctx context.Context, l *loaders.Loaders) {
	defer func() {
		if panicked := recover(); panicked != nil {
			s.resolver.report(ctx, fmt.Errorf("plan: %w", recovered(ctx, panicked)))
		}
	}()
	operation := graphql.GetOperationContext(ctx)
	change := eventOf(ctx)
	if operation.Operation.Operation != ast.Query && change == nil {
		return
	}
	seen := outlookOf(ctx, operation)
	l.Plan(func(first *loaders.Level) {
		p := newPlan(ctx, s.resolver, l, seen, operation.Variables, first)
		if change != nil {
			p.event(ctx, seen.root, change)
			return
		}
		p.query(ctx, seen.root)
	})
}
