// Package graph is the GraphQL API of Ordergraph. It contains the executor, plans, resolvers,
// federation entities, subscriptions and errors. Within the module, it imports its subpackages,
// commerce, dynamo, loaders, internal/admission, internal/price and internal/setting. It depends
// neither on HTTP nor on an AWS SDK.
//
// A request is processed in these steps:
//
//   - Executor (executor.go) uses package document to find or parse the document, to check its
//     limits and to validate it.
//   - Package operation prepares the operation as one tree of the selected fields. All later steps
//     use this tree.
//   - The executor checks permissions, cost (package operation) and rate limits (package rate)
//     before it reads a record.
//   - A plan (plan.go) reads the records that the operation needs. Reads run concurrently if their
//     keys are known.
//   - An execution (execute.go) visits the fields, calls the resolvers and writes the response.
//     Each resolver is one expression and uses the planned records.
//   - errors.go converts errors for the client.
//
// A subscription passes the checks once. Its operation is then executed for each event
// (subscription.go). Package explain describes the DynamoDB requests of a response. Package bound
// computes the maximum DynamoDB requests of an operation without executing it.
package graph

import (
	"context"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/extension"
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
	// Extension contains the custom fields of the schema. The caller must also have declared them
	// (Extension.Declare).
	Extension extension.Extension
	// Feed delivers the events of subscriptions. If Feed is nil, the server rejects subscriptions.
	Feed *feed.Feed
	// Cursors signs the cursors of lists.
	Cursors paging.CursorSigner
	// Report logs an error, with the context of its request. It is called for errors whose cause the
	// client does not see, such as UNAVAILABLE, TIMED_OUT and INTERNAL errors.
	Report func(ctx context.Context, err error)
	// If Authenticated is true, requests must have a principal (WithPrincipal). If it is false, a
	// request without a principal has the permissions of an administrator.
	Authenticated bool
	// Policy grants permissions to roles. If it is nil, access.StandardPolicy is used.
	Policy *access.Policy
	// RequestID returns the ID of a request in the log. If requests have no ID, it is nil.
	RequestID func(ctx context.Context) string
	// Limits are the limits of a single request. If a limit is 0, its default is used.
	Limits document.Limits
	// Admission limits the resources that all requests share. If nil, default sizes are used.
	Admission *admission.Controller
	// Prices are for the explain output. If they are the zero value, price.Standard is used.
	Prices price.Prices
	// Rates are the rate limits of each principal.
	Rates rate.Options
	// If NoIntrospection is true, introspection is disabled.
	NoIntrospection bool
	// Documents are the trusted documents. Package internal/manifest reads them.
	Documents []document.TrustedDocument
	// If TrustedOnly is true, all documents that are not trusted are rejected.
	TrustedOnly bool
	// CheckWebhookURL returns a commerce.InvalidInput if events cannot be sent to the URL of a new
	// webhook. The default accepts URLs with https and a host.
	CheckWebhookURL func(url string) error
	// EventTime limits the execution of one event of a subscription. 0 means no limit.
	EventTime time.Duration
	// Observer is notified of all operations. It may be nil.
	Observer observe.Observer
	// ObserveBatch is called for each batch of reads. pattern is the ID of the access pattern, and
	// keys is the number of keys. ObserveBatch may be nil.
	ObserveBatch func(pattern string, keys int)
	// OnInvalidDocument is called with each trusted document that is invalid or exceeds a limit, and
	// with its first error. It may be nil.
	OnInvalidDocument func(document.TrustedDocument, document.Error)
}

type principalKey struct{}

// WithPrincipal returns a context that contains the principal of a request.
func WithPrincipal(ctx context.Context, p access.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// principal returns the principal of a request. If authentication is required, a request
// without a principal returns the zero value. Otherwise, it returns an administrator.
func (r *Resolver) principal(ctx context.Context) access.Principal {
	p, ok := ctx.Value(principalKey{}).(access.Principal)
	if !ok && !r.authenticated {
		return access.AnonymousAdmin()
	}
	return p
}

// Resolver implements ResolverRoot, through which gqlgen's generated code finds the resolvers.
type Resolver struct {
	store         *dynamo.Store
	feed          *feed.Feed
	cursors       paging.CursorSigner
	report        func(ctx context.Context, err error)
	authenticated bool
	access        operation.AccessChecker
	entityTypes   []entityType
	extension     extension.Extension
	// documents contains the trusted documents. checkWebhookURL is Options.CheckWebhookURL.
	documents       *document.Store
	checkWebhookURL func(string) error
	// queries contains the queries by custom fields, by their names.
	queries      map[string]model.CustomQuery
	requestID    func(ctx context.Context) string
	observeBatch func(pattern string, keys int)
}

// Schema returns the schema that clients see, without custom fields. It omits definitions that clients
// cannot use.
func Schema() *ast.Schema {
	return loadSchema(servedSources(extension.Extension{}))
}

type explainKey struct{}

// WithExplain returns a context that requests the explain output (extensions.explain). Only callers
// with access.PermissionExplain receive it.
func WithExplain(ctx context.Context) context.Context {
	return context.WithValue(ctx, explainKey{}, true)
}
