// Package graph is the GraphQL API of the order book. It contains the executor, plans, resolvers,
// federation entities, subscriptions and errors. Within the module, it imports
// its subpackages, commerce, dynamo, loaders, internal/admission, internal/price and
// internal/setting. It depends neither on HTTP nor on an AWS SDK.
//
// A request is processed in these steps:
//
//   - Executor (executor.go) uses package document to find or parse the document, to check its
//     limits and to validate it.
//   - Package operation prepares the operation as one tree of the selected fields. All later steps
//     use this tree.
//   - The executor checks permissions, cost (package operation) and rate limits (package rate)
//     before anything is read.
//   - A plan (plan.go) reads the records that the operation needs. Reads with known keys run
//     concurrently.
//   - An execution (execute.go) visits the fields, calls the resolvers and writes the response.
//     Resolvers are one expression each and use the planned records.
//   - errors.go converts errors for the client.
//
// A subscription passes the checks once and is executed for each event (subscription.go). Package
// explain describes the DynamoDB requests of a response. Package bound computes the maximum
// DynamoDB requests of an operation without executing it.
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
	"github.com/ordergraph/ordergraph/graph/observe"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/price"
)

// Options are the options of an Executor.
type Options struct {
	Store *dynamo.Store
	// Feed delivers the events of subscriptions. If Feed is nil, the server rejects subscriptions.
	Feed *feed.Feed
	// Cursors signs the cursors of lists.
	Cursors paging.CursorSigner
	// Report logs an error, with the context of its request. It is called for every error that clients
	// see as UNAVAILABLE or INTERNAL.
	Report func(ctx context.Context, err error)
	// Authenticated reports whether requests must have a principal (WithPrincipal). If it is false,
	// requests without a principal have the permissions of an administrator.
	Authenticated bool
	// Policy grants permissions to roles. Nil means commerce.StandardPolicy.
	Policy *commerce.Policy
	// RequestID returns the ID that identifies a request in the log. It is nil if requests have no ID.
	RequestID func(ctx context.Context) string
	// Limits are the limits of a client's request. A zero limit means the default.
	Limits document.Limits
	// Admission limits the resources that callers share. Nil means limits of the default sizes.
	Admission *admission.Controller
	// Prices are the prices in the explain output. The zero value means price.Standard.
	Prices price.Prices
	// Rates are the rate limits of each principal.
	Rates rate.Options
	// NoIntrospection disables introspection.
	NoIntrospection bool
	// Documents are the trusted documents; internal/manifest reads them.
	Documents []document.Trusted
	// TrustedOnly rejects all documents that are not trusted.
	TrustedOnly bool
	// EventTime is the time limit for executing one event of a subscription. Zero means no limit.
	EventTime time.Duration
	// Observer, if not nil, is notified of all operations.
	Observer observe.Observer
	// ObserveBatch, if not nil, is called for each batch of reads. pattern is the ID of the access
	// pattern, and keys is the number of keys.
	ObserveBatch func(pattern string, keys int)
	// OnInvalidDocument, if not nil, is called with each trusted document that is invalid or exceeds a
	// limit, and with its first error.
	OnInvalidDocument func(document.Trusted, document.Error)
}

type principalKey struct{}

// WithPrincipal returns a context with the principal of a request.
func WithPrincipal(ctx context.Context, p commerce.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// principal returns the principal of a request. It returns the zero value if authentication is
// required and the request has no principal.
func (r *Resolver) principal(ctx context.Context) commerce.Principal {
	p, ok := ctx.Value(principalKey{}).(commerce.Principal)
	if !ok && !r.authenticated {
		return commerce.AnonymousAdmin()
	}
	return p
}

// Resolver is the root of the resolvers.
type Resolver struct {
	store         *dynamo.Store
	feed          *feed.Feed
	cursors       paging.CursorSigner
	report        func(ctx context.Context, err error)
	authenticated bool
	access        operation.AccessChecker
	entityTypes   []entityType
	requestID     func(ctx context.Context) string
	observeBatch  func(pattern string, keys int)
}

// Schema returns the schema that clients see. It omits @defer, because deferred data would be lost
// over plain POST. It omits the directives for federation, permissions and the generator, and the
// types of their arguments, because clients cannot use them. It omits Float, because a schema must
// not contain an unused built-in scalar
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

// WithExplain returns a context that requests the explain output (extensions.explain). Only callers
// with commerce.PermissionExplain receive it.
func WithExplain(ctx context.Context) context.Context {
	return context.WithValue(ctx, explainKey{}, true)
}
