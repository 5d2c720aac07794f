// Package graph is the GraphQL API of the order book. It executes operations: executor, plan,
// execution, resolvers, entities of a federated graph, subscriptions, errors and the explain
// output. It may import the packages below it, commerce, dynamo and loaders, and knows neither HTTP
// nor an AWS SDK.
//
// A request takes this path. Executor (executor.go) has package document find or parse the
// document, keep it within limits and validate it. Package operation prepares the operation: one
// tree of the selected fields, which all later steps read. Permissions, cost (package operation)
// and rate limits (package rate) are checked before anything is read. A plan (plan.go) reads what
// the operation needs, side by side where the keys are known at the same time. An execution
// (execute.go) visits the fields, calls resolvers, each one expression, which pick up what was
// planned, and writes the response. errors.go decides what a client sees of an error. A
// subscription takes this path once, and is then executed for each event (subscription.go). Package
// bound computes the maximum DynamoDB requests of an operation without executing it.
package graph

import (
	"context"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// Options are what the GraphQL face needs.
type Options struct {
	Store *dynamo.Store
	// Feed tells subscriptions what changes; nil where the server has none, and refuses them.
	Feed *feed.Feed
	// Cursors sign the cursors of lists.
	Cursors paging.Cursors
	// Report is told every error that clients see as UNAVAILABLE or INTERNAL, with the request's
	// context.
	Report func(ctx context.Context, err error)
	// Authenticated reports whether requests need a principal (WithPrincipal). If it is false, every
	// request without one is made by commerce.Everybody.
	Authenticated bool
	// Policy says which role is granted what; nil for commerce.StandardPolicy.
	Policy *commerce.Policy
	// RequestID is the id by which a request stands in the log; nil where it has none.
	RequestID func(ctx context.Context) string
	// Limits bound what a request can ask for; those that are zero have their default.
	Limits document.Limits
	// Admission has the pools that callers share; nil for pools of the default sizes.
	Admission *admission.Controller
	// Rates are how much each principal may cost.
	Rates rate.Options
	// NoIntrospection is whether clients are refused the schema.
	NoIntrospection bool
	// Documents are trusted documents; internal/manifest reads them.
	Documents []document.Trusted
	// TrustedOnly is whether only trusted documents are executed.
	TrustedOnly bool
	// EventTime is how long the operation of a subscription can take for each event; zero where
	// that has no limit.
	EventTime time.Duration
	// Unfit is told each trusted document that does not fit the schema or a limit, with its first
	// error; nil tells nobody.
	Unfit func(document.Trusted, document.Error)
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
		return commerce.Everybody()
	}
	return p
}

// Resolver is the root of the resolvers.
type Resolver struct {
	store *dynamo.Store
	// feed is nil where subscriptions are refused.
	feed    *feed.Feed
	cursors paging.Cursors
	report  func(ctx context.Context, err error)
	// authenticated is Options.Authenticated.
	authenticated bool
	access        operation.Access
	entityTypes   []entityType
	// requestID is nil where requests have none.
	requestID func(ctx context.Context) string
}

// Schema returns the schema as it is served: without @defer, whose data would be dropped over plain
// POST; without the directives of federation, access and the generator, and the types of their
// arguments, which only those who compose schemas can use; and without Float, which a schema that
// does not use it must not have
// (https://spec.graphql.org/September2025/#sec-Scalars.Built-in-Scalars).
func Schema() *ast.Schema {
	schema := gqlparser.MustLoadSchema(sources...)
	for _, name := range []string{"defer", "link", "key", "shareable", "access", operation.ReadsDirective, "userErrors"} {
		delete(schema.Directives, name)
	}
	for _, name := range []string{"link__Import", "federation__FieldSet", "Float"} {
		delete(schema.Types, name)
	}
	return schema
}

type explainKey struct{}

// WithExplain returns a context in which a query's response explains what it read, to those who are
// granted commerce.Explain.
func WithExplain(ctx context.Context) context.Context {
	return context.WithValue(ctx, explainKey{}, true)
}
