// Package document finds or parses the document of a request, keeps it within limits, validates it
// and coerces its variables. Of the module it imports graph/errcode and internal/admission: it
// knows the schema as gqlparser's AST, and neither DynamoDB nor the resolvers.
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

// Documents that are kept ready besides the trusted ones. Clients decide what is among them, so
// each region is bounded in number and in memory; a request's document, with as many tokens as the
// default limit allows, takes about half a megabyte.
const (
	maxCached         = 1000
	keptDocumentBytes = 16 << 20
	// keptTextBytes is for texts that nobody has registered: they cost one parsing each when they
	// are gone, and anybody can send thousands of them.
	keptTextBytes = 8 << 20
)

// Document is a text that was parsed, kept within limits and validated. Requests share it. Nothing
// writes to it but KeepPrepared: validation has filled in what execution reads.
type Document struct {
	Text   string
	Parsed *ast.QueryDocument
	// errs tell why it cannot be executed; only trusted documents are kept with errors. quietErrs
	// tell the same to those who are not told of the schema, where that is not the same.
	errs, quietErrs gqlerror.List
	// prepared are the prepared operations. Reading takes no lock: the map is replaced and never
	// written to. mu is for adding one; preparedBytes is the memory that all of them take.
	prepared      atomic.Pointer[map[PreparedKey]Prepared]
	mu            sync.Mutex
	preparedBytes int
	// strict has the places of each operation that take no null and have a variable that can be
	// null.
	strict map[*ast.OperationDefinition][]*ast.Value
	// conditions are the variables that decide what the document selects. nodes is the number of
	// nodes of its syntax tree.
	conditions []string
	nodes      int
	// work is what making the document took.
	work Work
}

// Work is how much there was to do for a document: deterministic, where time is not.
type Work struct {
	// Parsed is the number of nodes of syntax trees that were made.
	Parsed int
	// Visited is the number of nodes that were visited with every spread replaced by its fragment.
	Visited int
}

// Errors are the errors as somebody may see them.
func (d *Document) Errors(quiet bool) gqlerror.List {
	if quiet && len(d.quietErrs) > 0 {
		return d.quietErrs
	}
	return d.errs
}

// Operation is the one of a name, or the only one where the name is empty; nil where there is none.
func (d *Document) Operation(name string) *ast.OperationDefinition {
	if d.Parsed == nil {
		return nil
	}
	return d.Parsed.Operations.ForName(name)
}

// NoOperation is the error where Operation finds none: it tells which operations there are.
func (d *Document) NoOperation(name string) *gqlerror.Error {
	if name == "" {
		return gqlerror.Errorf("the request has several operations: name the one to execute with operationName")
	}
	err := gqlerror.Errorf("the document has no operation of the name that operationName gives")
	if len(d.Parsed.Operations) == 1 && d.Parsed.Operations[0].Name == "" {
		err.Message += ": its one operation has no name, so leave operationName out"
	}
	return err
}

// documentHash is the SHA-256 of a document's text.
type documentHash [sha256.Size]byte

// parseHash reads a hash as clients spell it: 64 hexadecimal digits, in either case.
func parseHash(text string) (hash documentHash, ok bool) {
	if len(text) != hex.EncodedLen(len(hash)) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// Store finds the document that a request wants. It is safe for concurrent use.
//
// There are three places to look: the trusted documents, which the operator has given and which
// stay; those that clients have registered by their hash; and the texts that were sent last. The
// latter two are apart, so that a flood of texts that are sent once pushes out no registered
// document.
type Store struct {
	schema *ast.Schema
	limits Limits
	// introspection reports whether documents may ask for the schema.
	introspection bool
	// byID and byHash are the trusted documents. Nothing changes them.
	byID   map[string]*Document
	byHash map[documentHash]*Document
	// trustedOnly reports whether only these are parsed and executed.
	trustedOnly        bool
	registered, recent *cache
	// preparations are the documents that are parsed at the same time, nil for no limit.
	preparations *admission.Pool
}

// Options are the settings of the documents that a server executes.
type Options struct {
	Limits Limits
	// NoIntrospection reports that documents may not ask for the schema.
	NoIntrospection bool
	// Trusted are the trusted documents. TrustedOnly reports that no others are executed.
	Trusted     []Trusted
	TrustedOnly bool
	// Unfit is called for each trusted document that does not fit the schema or a limit, with its
	// first error; nil for no call.
	Unfit func(Trusted, Error)
	// Preparations is admission.Preparations; nil for no limit.
	Preparations *admission.Pool
	// Kept is the number of documents that are kept of those that clients register, and of those
	// that they send; 0 for 1,000.
	Kept int
}

// NewStore returns the documents of a server with this schema. It parses the trusted ones.
func NewStore(schema *ast.Schema, opts Options) *Store {
	d := &Store{
		schema:        schema,
		limits:        setting.OrDefaults(opts.Limits),
		introspection: !opts.NoIntrospection,
		byID:          map[string]*Document{},
		byHash:        map[documentHash]*Document{},
		trustedOnly:   opts.TrustedOnly,
		preparations:  opts.Preparations,
		registered:    newCache(cmp.Or(opts.Kept, maxCached), keptDocumentBytes),
		recent:        newCache(cmp.Or(opts.Kept, maxCached), keptTextBytes),
	}
	d.trust(opts.Trusted, opts.Unfit)
	return d
}

// Find returns the document that a request names by the ID of a trusted document, by its text or by
// its extensions. The document may have errors. With quiet, errors do not tell of the schema what
// the request does not.
//
// Errors: TIMED_OUT where the context ends before it is the caller's turn to have the document
// parsed; BAD_USER_INPUT for a request that names no document, or two, or names it in another form
// than those that are known; PERSISTED_QUERY_NOT_FOUND, PERSISTED_QUERY_HASH_MISMATCH and
// DOCUMENT_NOT_TRUSTED.
//
// work is what parsing the document took, nothing for a document that was kept.
func (d *Store) Find(ctx context.Context, id, text string, extensions map[string]any, quiet bool) (found *Document, work Work, err *gqlerror.Error) {
	hash, given, err := persistedQuery(extensions)
	switch {
	case err != nil:
		return nil, work, err
	case id != "" && (given || text != ""):
		return nil, work, errcode.New(nil, errcode.BadUserInput, "the request names a document with documentId and gives another in query or extensions.persistedQuery: send one of them")
	case id != "":
		found, err = d.withID(id)
		return found, work, err
	case given:
		return d.withHash(ctx, hash, text, quiet)
	default:
		return d.withText(ctx, text, quiet)
	}
}

// withID finds a trusted document.
func (d *Store) withID(id string) (*Document, *gqlerror.Error) {
	if trusted := d.trusted(id); trusted != nil {
		return trusted, nil
	}
	return nil, errcode.New(nil, errcode.UntrustedDocument, "there is no trusted document with this documentId: have it added to the server's manifest")
}

// withHash finds a document as Apollo's protocol names it: a trusted one, whose id need not be a
// hash, or one that was registered. A text that comes with the hash is registered.
func (d *Store) withHash(ctx context.Context, name, text string, quiet bool) (found *Document, work Work, err *gqlerror.Error) {
	if trusted := d.trusted(name); trusted != nil {
		if text != "" && text != trusted.Text {
			return nil, work, mismatch()
		}
		return trusted, work, nil
	}
	if d.trustedOnly {
		return nil, work, untrusted()
	}
	hash, ok := parseHash(name)
	switch {
	case !ok:
		return nil, work, errcode.New(nil, errcode.BadUserInput, "extensions.persistedQuery.sha256Hash is neither the id of a trusted document nor a SHA-256: write it as 64 hexadecimal digits")
	case text != "" && sha256.Sum256([]byte(text)) != hash:
		return nil, work, mismatch()
	}
	found = d.registered.get(hash)
	if found == nil && text == "" {
		// Clients know this answer by its message or by its code, and send the text.
		return nil, work, errcode.New(nil, errcode.PersistedQueryNotFound, "PersistedQueryNotFound")
	}
	if found == nil {
		if found = d.recent.get(hash); found == nil {
			if found, err = d.parse(ctx, text, quiet); err != nil {
				return nil, work, err
			}
			work = found.work
		}
		d.registered.add(hash, found)
	}
	return found, work, nil
}

// withText finds a document by its text.
func (d *Store) withText(ctx context.Context, text string, quiet bool) (found *Document, work Work, err *gqlerror.Error) {
	switch {
	case d.trustedOnly:
		return nil, work, untrusted()
	case text == "":
		return nil, work, errcode.New(nil, errcode.BadUserInput, "the request has no document: send its text as query, or its name as documentId")
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
	if found, err = d.parse(ctx, text, quiet); err != nil {
		return nil, work, err
	}
	d.recent.add(hash, found)
	return found, found.work, nil
}

// untrusted is an answer that no client takes for a miss, so none sends the text.
func untrusted() *gqlerror.Error {
	return errcode.New(nil, errcode.UntrustedDocument, "only trusted documents are executed here: send the id of one, as documentId or as extensions.persistedQuery.sha256Hash, instead of a text")
}

func mismatch() *gqlerror.Error {
	return errcode.New(nil, errcode.PersistedQueryMismatch, "extensions.persistedQuery.sha256Hash is not of the text in query: send the SHA-256 of exactly this text, or leave one of them out")
}

// Variables are the coerced values of the variables of an operation of a document: see
// coerceVariables.
func (d *Store) Variables(of *Document, operation *ast.OperationDefinition, given map[string]any, quiet bool) (map[string]any, gqlerror.List) {
	return coerceVariables(d.schema, operation, given, d.limits, quiet, of.strict[operation]...)
}

// parse is Parse, when it is the turn of the caller of a context.
func (d *Store) parse(ctx context.Context, text string, quiet bool) (*Document, *gqlerror.Error) {
	if d.preparations == nil {
		return d.Parse(text, quiet), nil
	}
	caller := admission.CallerOf(ctx)
	if d.preparations.Await(ctx, caller, 1) != nil {
		return nil, errcode.New(nil, errcode.TimedOut, "the document was not parsed in time, as the server is busy: try again in a moment")
	}
	defer d.preparations.Give(caller, 1)
	return d.Parse(text, quiet), nil
}

// Parse makes a document of a text: parsed, within limits and valid, or with errors. A document
// without errors is the same whether quiet or not, so that all share it.
func (d *Store) Parse(text string, quiet bool) *Document {
	// Parts of the text live as long as the document, and a text can be part of something larger:
	// of a URL, say.
	text = strings.Clone(text)
	// A token takes two bytes, with what separates it from the next.
	unmeasured := Work{Parsed: min(len(text)/2, d.limits.Tokens)}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, d.limits.Tokens)
	if err != nil {
		return &Document{Text: text, errs: gqlerror.List{d.limits.parseError(text, err)}, work: unmeasured}
	}
	if len(parsed.Operations) == 0 {
		return &Document{Text: text, errs: gqlerror.List{gqlerror.Errorf("the document has no operation: send a query or a mutation")}, work: unmeasured}
	}
	measured := d.limits.measure(parsed)
	made := &Document{Text: text, Parsed: parsed, errs: measured.errs, nodes: measured.nodes, conditions: measured.conditions, work: Work{Parsed: measured.nodes}}
	if len(made.errs) == 0 {
		made.work.Visited = measured.expanded
		made.errs = validate(d.schema, parsed, d.introspection, quiet, made.strictUses())
	}
	return made
}
