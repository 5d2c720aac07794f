// Package document finds or parses the document of a request, checks its limits, validates it and
// coerces its variables. Within the module, it imports graph/errcode, internal/admission and
// internal/setting. It uses the schema as gqlparser's AST, and does not depend on DynamoDB or the
// resolvers.
package document

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Limits of the caches for registered and recent documents. Clients decide which documents these
// caches contain, so the number of documents and their memory are limited. A document with the
// default maximum number of tokens needs about half a megabyte.
const (
	defaultCacheSize     = 1000
	registeredCacheBytes = 16 << 20
	// recentCacheBytes is the memory limit of the cache for documents that were sent without a hash.
	// The limit is lower than registeredCacheBytes, because any client can send thousands of such
	// documents. If such a document is evicted, the server only parses it again.
	recentCacheBytes = 8 << 20
)

// Document is a text that was parsed, checked against the limits and validated. Requests share
// documents, so only CachePrepared may modify a document after validation.
type Document struct {
	Text   string
	Parsed *ast.QueryDocument
	// Trusted reports whether the operator of the server trusts the document.
	Trusted bool
	// errs are the reasons why the document cannot be executed. A document with errors is stored only
	// if it is trusted. redactedErrs are the same errors for callers who may not see the schema. The
	// list is empty if all messages are equal to those in errs.
	errs, redactedErrs gqlerror.List
	// prepared are the prepared operations. Reading the map needs no lock, because the map is never
	// modified, only replaced. mu protects the replacement. preparedBytes is the memory of all
	// prepared operations.
	prepared      atomic.Pointer[map[PreparedKey]Prepared]
	mu            sync.Mutex
	preparedBytes int
	// nonNullUses lists the uses of nullable variables in non-null positions, for each operation.
	nonNullUses map[*ast.OperationDefinition][]*ast.Value
	// conditions are the variables of @skip and @include. nodes is the number of nodes of the syntax
	// tree.
	conditions []string
	nodes      int
	// work counts the nodes that were processed to parse and validate the document.
	work ProcessedNodes
}

// ProcessedNodes counts the nodes that were processed for a document. Unlike processor time, these counts are
// deterministic.
type ProcessedNodes struct {
	// Parsed is the number of nodes of the syntax trees that were built.
	Parsed int
	// Visited is the number of nodes that were visited, with every spread replaced by its fragment.
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

// Operation returns the operation with this name, or the only operation if the name is empty. It
// returns nil if the operation does not exist.
func (d *Document) Operation(name string) *ast.OperationDefinition {
	if d.Parsed == nil {
		return nil
	}
	return d.Parsed.Operations.ForName(name)
}

// OperationNotFoundError returns the error for a name that Operation does not find.
func (d *Document) OperationNotFoundError(name string) *gqlerror.Error {
	if name == "" {
		return gqlerror.Errorf("the document has several operations: set operationName to the name of the operation to execute")
	}
	err := gqlerror.Errorf("the document has no operation with the name in operationName")
	if len(d.Parsed.Operations) == 1 && d.Parsed.Operations[0].Name == "" {
		err.Message += ": its only operation has no name, so omit operationName"
	}
	return err
}

// documentHash is the SHA-256 of a document's text.
type documentHash [sha256.Size]byte

// parseHash decodes a hash of 64 hexadecimal digits, in upper or lower case.
func parseHash(text string) (hash documentHash, ok bool) {
	if len(text) != hex.EncodedLen(len(hash)) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// Store finds or parses the document of a request. It is safe for concurrent use.
//
// A store contains the operator's trusted documents, the documents that clients registered by hash,
// and the documents of recent requests. Trusted documents are permanent. Registered and recent
// documents have separate caches, so that a flood of new documents cannot evict a registered
// document.
type Store struct {
	schema *ast.Schema
	limits Limits
	// introspection reports whether documents may select __schema and __type.
	introspection bool
	// byID and byHash are the trusted documents. They are immutable.
	byID   map[string]*Document
	byHash map[documentHash]*Document
	// trustedOnly reports whether only trusted documents are executed.
	trustedOnly        bool
	registered, recent *cache
	// preparations limits the number of documents that are parsed at the same time. Nil means no
	// limit.
	preparations *admission.Pool
}

// Options are the options of a Store.
type Options struct {
	Limits Limits
	// NoIntrospection disables __schema and __type.
	NoIntrospection bool
	// Trusted are the trusted documents. TrustedOnly rejects all other documents.
	Trusted     []Trusted
	TrustedOnly bool
	// OnInvalid, if not nil, is called for each trusted document that is invalid or exceeds a limit.
	// It receives the document and its first error.
	OnInvalid func(Trusted, Error)
	// Preparations is admission.PoolParsing. Nil means no limit.
	Preparations *admission.Pool
	// CacheSize is the maximum number of documents in each of the two caches. 0 means 1,000.
	CacheSize int
}

// NewStore returns a store for documents of a schema. It parses the trusted documents.
func NewStore(schema *ast.Schema, opts Options) *Store {
	d := &Store{
		schema:        schema,
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

// Find returns the document of a client's request. The request contains the ID of a trusted
// document, the text of the document, or a hash in the extensions. The document may have errors. If
// hideSchema is true, error messages contain no name of the schema that the request does not
// contain. work counts the nodes that were processed to parse the document. It is zero for a cached
// document.
//
// It returns TIMED_OUT if the context ends while the document waits to be parsed. It returns
// BAD_USER_INPUT if the request specifies no document, two documents or a malformed hash. Package
// errcode describes when Find returns PERSISTED_QUERY_NOT_FOUND, PERSISTED_QUERY_HASH_MISMATCH or
// DOCUMENT_NOT_TRUSTED.
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

// findByID returns a trusted document.
func (d *Store) findByID(id string) (*Document, *gqlerror.Error) {
	if trusted := d.trusted(id); trusted != nil {
		return trusted, nil
	}
	return nil, errcode.New(nil, errcode.UntrustedDocument, "there is no trusted document with this documentId: add the document to the server's manifest")
}

// findByHash returns the trusted or registered document with this hash, as in Apollo's protocol of
// automatic persisted queries. name is the hash or the ID of a trusted document. If text is not
// empty and has this hash, findByHash registers the document.
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
		// Clients recognize a cache miss by the message or the code of this error, and then send the
		// text.
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

// findByText returns a document by its text.
func (d *Store) findByText(ctx context.Context, text string, hideSchema bool) (found *Document, work ProcessedNodes, err *gqlerror.Error) {
	switch {
	case d.trustedOnly:
		return nil, work, newUntrustedError()
	case text == "":
		return nil, work, errcode.New(nil, errcode.BadUserInput, "the request has no document: send its text as query, or the ID of a trusted document as documentId")
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

// newUntrustedError returns the error for a document that is not trusted. Its code is not the code
// of a cache miss. Otherwise, clients would send the text, which the server rejects too.
func newUntrustedError() *gqlerror.Error {
	return errcode.New(nil, errcode.UntrustedDocument, "this server executes only trusted documents: instead of a text, send the ID of a trusted document in documentId or in extensions.persistedQuery.sha256Hash")
}

func newHashMismatchError() *gqlerror.Error {
	return errcode.New(nil, errcode.PersistedQueryMismatch, "extensions.persistedQuery.sha256Hash is not the SHA-256 of the text in query: send the hash of exactly this text, or omit the hash or the text")
}

// CoerceVariables coerces the variables of an operation; see coerceVariables.
func (d *Store) CoerceVariables(doc *Document, operation *ast.OperationDefinition, values map[string]any, hideSchema bool) (map[string]any, gqlerror.List) {
	return coerceVariables(d.schema, operation, values, d.limits, hideSchema, doc.nonNullUses[operation]...)
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

// Parse parses a text, checks the limits and validates the document. The result contains the errors
// that were found. hideSchema affects only error messages, so all callers can share a document
// without errors.
func (d *Store) Parse(text string, hideSchema bool) *Document {
	// The document contains substrings of the text. If text is part of a larger string, such as a URL,
	// the clone prevents the larger string from staying in memory.
	text = strings.Clone(text)
	// The number of nodes is unknown without a syntax tree. Each node takes at least one token and two
	// bytes of text, so this number is an upper bound.
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
		doc.errs = validate(d.schema, parsed, d.introspection, hideSchema, doc.nonNullUsesRule())
	}
	return doc
}
