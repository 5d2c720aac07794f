// Package document finds or parses the GraphQL document of a request. It checks the document's
// limits, validates the document and coerces the variables of the request. Within the module, it
// imports only graph/errcode, internal/admission and internal/setting. The schema is a value of
// gqlparser's type ast.Schema, so the package does not depend on DynamoDB or the resolvers.
package document

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// These constants limit the memory of the caches, because clients could otherwise fill it with
// their documents. A document with the default maximum number of tokens needs about half a
// megabyte.
const (
	defaultCacheSize     = 1000
	registeredCacheBytes = 16 << 20
	// recentCacheBytes limits the memory of documents without a registered hash. It is lower,
	// because evicted registered documents must be sent again.
	recentCacheBytes = 8 << 20
)

// Document is a GraphQL document that was parsed, checked against the limits and validated. Several
// requests can share a Document, so after validation only CachePrepared may modify it.
type Document struct {
	Text   string
	Parsed *ast.QueryDocument
	// Trusted is true if the document is one of the server operator's trusted documents.
	Trusted bool
	// errs are the errors of the document. If redactedErrs is not empty, callers who may not see the
	// schema receive redactedErrs instead.
	errs, redactedErrs gqlerror.List
	// prepared contains the cached prepared operations. CachePrepared replaces the whole map while it
	// holds mu. The map itself never changes, so readers need no lock.
	prepared atomic.Pointer[map[PreparedKey]Prepared]
	mu       sync.Mutex
	// preparedBytes is the estimated memory of the operations in the map.
	preparedBytes int
	// nonNullUses lists, for each operation, the uses of nullable variables where null is not
	// allowed. coerceVariables checks the values of these variables.
	nonNullUses map[*ast.OperationDefinition][]*ast.Value
	// conditions contains the names of the variables in @skip and @include. nodes is the number of
	// nodes of the syntax tree.
	conditions []string
	nodes      int
	// work counts the nodes that the server processed to parse and validate the document.
	work ProcessedNodes
}

// ProcessedNodes counts the nodes of a document that the server processed. Rate limits use these
// counts instead of processor time, because the counts are the same for each run.
type ProcessedNodes struct {
	// Parsed is the number of nodes in the syntax trees that the server built.
	Parsed int
	// Visited is the number of nodes that the server visited after parsing. The nodes of a fragment
	// count each time that the server visits the fragment.
	Visited int
}

// Errors returns the errors of the document. If hideSchema is true, the messages reveal nothing
// about the schema.
func (d *Document) Errors(hideSchema bool) gqlerror.List {
	if hideSchema && len(d.redactedErrs) > 0 {
		return d.redactedErrs
	}
	return d.errs
}

// Operation returns the operation with the given name. If the name is empty, it returns the
// document's only operation. It returns nil if there is no such operation.
func (d *Document) Operation(name string) *ast.OperationDefinition {
	if d.Parsed == nil {
		return nil
	}
	return d.Parsed.Operations.ForName(name)
}

// OperationNotFoundError returns the error to report if Operation returns nil for the given name.
func (d *Document) OperationNotFoundError(name string) *gqlerror.Error {
	if name == "" {
		return gqlerror.Errorf("the document has several operations: set operationName to the name of the operation to execute")
	}
	advice := "its only operation has no name, so omit operationName"
	if first := d.Parsed.Operations[0].Name; d.Trusted {
		advice = "correct operationName" // the caller may not know the document
	} else if len(d.Parsed.Operations) > 1 || first != "" {
		advice = fmt.Sprintf("set operationName to the name of one of its operations, such as %q", errcode.Excerpt(first, maxQuotedBytes))
	}
	return gqlerror.Errorf("the document has no operation with the name %q: %s", errcode.Excerpt(name, maxQuotedBytes), advice)
}

// documentHash is the SHA-256 of a document's text.
type documentHash [sha256.Size]byte

// parseHash decodes a SHA-256 from 64 hexadecimal digits, in upper or lower case. For any other
// text, ok is false.
func parseHash(text string) (hash documentHash, ok bool) {
	if len(text) != hex.EncodedLen(len(hash)) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// Store finds or parses the document of a request. It is safe for concurrent use.
type Store struct {
	schema  *ast.Schema
	scalars scalars
	limits  Limits
	// introspection is true if documents may select __schema and __type.
	introspection bool
	// byID and byHash contain the trusted documents. NewStore fills both maps, and they do not
	// change later.
	byID   map[string]*Document
	byHash map[documentHash]*Document
	// trustedOnly is true if the store rejects all documents that are not trusted.
	trustedOnly bool
	// registered contains the documents that clients registered by hash. recent contains other
	// documents. The caches are separate, so recent documents cannot evict registered ones.
	registered, recent *cache
	// preparations limits how many documents are parsed at the same time. If it is nil, there is no
	// limit.
	preparations *admission.Pool
}

// Options are the options of a Store.
type Options struct {
	Limits Limits
	// Scalars contains the coercions of the custom scalars, by name. A custom scalar without a
	// coercion accepts all values.
	Scalars map[string]CoerceScalar
	// If NoIntrospection is true, the store rejects documents that select __schema or __type.
	NoIntrospection bool
	// Trusted contains the trusted documents. If TrustedOnly is true, the store rejects all other
	// documents.
	Trusted     []TrustedDocument
	TrustedOnly bool
	// If OnInvalid is not nil, NewStore calls it for each trusted document that is invalid or
	// exceeds a limit. The arguments are the document and its first error.
	OnInvalid func(TrustedDocument, Error)
	// Preparations is the pool that limits how many documents are parsed at the same time
	// (admission.PoolParsing). If it is nil, there is no limit.
	Preparations *admission.Pool
	// CacheSize is the maximum number of documents in each of the store's two caches. 0 means
	// 1,000.
	CacheSize int
}

// NewStore returns a Store for documents that use the given schema. It parses and validates the
// trusted documents.
func NewStore(schema *ast.Schema, opts Options) *Store {
	d := &Store{
		schema:        schema,
		scalars:       newScalars(opts.Scalars),
		limits:        setting.OrDefaults(opts.Limits),
		introspection: !opts.NoIntrospection,
		byID:          map[string]*Document{},
		byHash:        map[documentHash]*Document{},
		trustedOnly:   opts.TrustedOnly,
		preparations:  opts.Preparations,
		registered:    newCache(cmp.Or(opts.CacheSize, defaultCacheSize), registeredCacheBytes),
		recent:        newCache(cmp.Or(opts.CacheSize, defaultCacheSize), recentCacheBytes),
	}
	d.loadTrusted(opts.Trusted, opts.OnInvalid)
	return d
}

// Find returns the document with the given ID or text, or with the hash in extensions. The document
// can have errors (Document.Errors).
//
// The errors of Find are TIMED_OUT, BAD_USER_INPUT, PERSISTED_QUERY_NOT_FOUND,
// PERSISTED_QUERY_HASH_MISMATCH and DOCUMENT_NOT_TRUSTED.
func (d *Store) Find(ctx context.Context, id, text string, extensions map[string]any, hideSchema bool) (found *Document, work ProcessedNodes, err *gqlerror.Error) {
	hash, byHash, err := persistedQueryHash(extensions)
	switch {
	case err != nil:
		return nil, work, err
	case id != "" && (byHash || text != ""):
		return nil, work, errcode.New(nil, errcode.BadUserInput, "the request has both documentId and a document in query or extensions.persistedQuery: send only one of them")
	case id != "":
		found, err = d.findByID(id)
		return found, work, err
	case byHash:
		return d.findByHash(ctx, hash, text, hideSchema)
	default:
		return d.findByText(ctx, text, hideSchema)
	}
}

// findByID returns the trusted document with the given ID.
func (d *Store) findByID(id string) (*Document, *gqlerror.Error) {
	if trusted := d.trusted(id); trusted != nil {
		return trusted, nil
	}
	return nil, errcode.New(nil, errcode.UntrustedDocument, "there is no trusted document with this documentId: add the document to the server's manifest")
}

// findByHash returns the document with the hash in name. For a trusted document, name can also be
// its ID. If text is a document that is not registered yet, findByHash registers it.
func (d *Store) findByHash(ctx context.Context, name, text string, hideSchema bool) (found *Document, work ProcessedNodes, err *gqlerror.Error) {
	if trusted := d.trusted(name); trusted != nil {
		if text != "" && text != trusted.Text {
			return nil, work, newHashMismatchError()
		}
		return trusted, work, nil
	}
	if d.trustedOnly {
		return nil, work, newUntrustedError()
	}
	hash, ok := parseHash(name)
	switch {
	case !ok:
		return nil, work, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.sha256Hash is neither the ID of a trusted document nor a SHA-256: send 64 hexadecimal digits")
	case text != "" && sha256.Sum256([]byte(text)) != hash:
		return nil, work, newHashMismatchError()
	}
	found = d.registered.get(hash)
	if found == nil && text == "" {
		// Clients that use Apollo's protocol recognize this error by its message or its code. They
		// then send the text together with the hash.
		return nil, work, errcode.New(nil, errcode.PersistedQueryNotFound, "PersistedQueryNotFound")
	}
	if found == nil {
		if found = d.recent.get(hash); found == nil {
			if found, err = d.parse(ctx, text, hideSchema); err != nil {
				return nil, work, err
			}
			work = found.work
		}
		d.registered.add(hash, found)
	}
	return found, work, nil
}

// findByText returns the document with the given text. It parses the text if the store does not
// contain the document.
func (d *Store) findByText(ctx context.Context, text string, hideSchema bool) (found *Document, work ProcessedNodes, err *gqlerror.Error) {
	switch {
	case d.trustedOnly:
		return nil, work, newUntrustedError()
	case text == "":
		return nil, work, errcode.New(nil, errcode.BadUserInput, "the request has no document: send the text of a document in query, or the ID of a trusted document in documentId")
	}
	hash := documentHash(sha256.Sum256([]byte(text)))
	if trusted := d.byHash[hash]; trusted != nil {
		return trusted, work, nil
	}
	for _, cache := range []*cache{d.registered, d.recent} {
		if found := cache.get(hash); found != nil {
			return found, work, nil
		}
	}
	if found, err = d.parse(ctx, text, hideSchema); err != nil {
		return nil, work, err
	}
	d.recent.add(hash, found)
	return found, found.work, nil
}

// RefuseIntrospection returns the error for a request for something that reveals the schema, if the
// store rejects introspection for all callers. Otherwise, it returns nil.
func (d *Store) RefuseIntrospection(requested string) *gqlerror.Error {
	switch {
	case d.trustedOnly:
		return errcode.New(nil, errcode.UntrustedDocument, "this server executes only trusted documents, so it does not serve %s: send the request to a server without ORDERGRAPH_TRUSTED_ONLY", requested)
	case !d.introspection:
		return errcode.New(nil, errcode.IntrospectionOff, "introspection is disabled on this server, so it does not serve %s: send the request to a server with introspection", requested)
	}
	return nil
}

// newUntrustedError returns the error for a document that is not trusted, if the server executes
// only trusted documents. The code is not PERSISTED_QUERY_NOT_FOUND, because clients would then
// send the text, which the server also rejects.
func newUntrustedError() *gqlerror.Error {
	return errcode.New(nil, errcode.UntrustedDocument, "this server executes only trusted documents: instead of a text, send the ID of a trusted document in documentId or in extensions.persistedQuery.sha256Hash")
}

func newHashMismatchError() *gqlerror.Error {
	return errcode.New(nil, errcode.PersistedQueryMismatch, "extensions.persistedQuery.sha256Hash is not the SHA-256 of the text in query: send the hash of exactly this text, or omit the hash or the text")
}

// CoerceVariables validates the variables of a request and converts them to the types that the
// operation declares. See coerceVariables for the details.
func (d *Store) CoerceVariables(doc *Document, operation *ast.OperationDefinition, values map[string]any, hideSchema bool) (map[string]any, gqlerror.List) {
	return coerceVariables(d.schema, d.scalars, operation, values, d.limits, hideSchema, doc.nonNullUses[operation]...)
}

// parse waits for a free slot in the pool d.preparations, and then calls Parse.
func (d *Store) parse(ctx context.Context, text string, hideSchema bool) (*Document, *gqlerror.Error) {
	if d.preparations == nil {
		return d.Parse(text, hideSchema), nil
	}
	caller := admission.CallerFromContext(ctx)
	if d.preparations.Acquire(ctx, caller, 1) != nil {
		return nil, errcode.New(nil, errcode.TimedOut, "the document was not parsed in time because the server is busy: try again later")
	}
	defer d.preparations.Release(caller, 1)
	return d.Parse(text, hideSchema), nil
}

// Parse parses a document, checks its limits and validates it. The returned Document contains the
// errors. hideSchema changes only the messages of errors. If a document has no errors, all callers
// can therefore share it.
func (d *Store) Parse(text string, hideSchema bool) *Document {
	// The Document keeps substrings of text. If text is part of a larger string, such as a URL, the
	// copy prevents the larger string from staying in memory.
	text = strings.Clone(text)
	// If the document cannot be parsed or has no operation, its nodes are not counted. This upper
	// bound is used instead. Each node takes at least one token and two bytes of text.
	unmeasured := ProcessedNodes{Parsed: min(len(text)/2, d.limits.Tokens)}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, d.limits.Tokens)
	if err != nil {
		return &Document{Text: text, errs: gqlerror.List{d.limits.convertParseError(text, err)}, work: unmeasured}
	}
	if len(parsed.Operations) == 0 {
		return &Document{Text: text, errs: gqlerror.List{gqlerror.Errorf("the document has no operation: send a query or a mutation")}, work: unmeasured}
	}
	measured := d.limits.measure(parsed)
	doc := &Document{Text: text, Parsed: parsed, errs: measured.errs, nodes: measured.nodes, conditions: measured.conditions, work: ProcessedNodes{Parsed: measured.nodes}}
	if len(doc.errs) == 0 {
		doc.work.Visited = measured.expanded
		doc.errs = validate(d.schema, d.scalars, parsed, d.introspection, hideSchema, doc.nonNullUsesRule())
	}
	return doc
}
