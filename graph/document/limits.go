package document

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Limits bound what one request can ask for. A zero value stands for its default; Settings says
// what each one means.
type Limits struct {
	Tokens, Depth, Aliases, RootFields, Directives, ListDepth, IntrospectionDepth int
	Cost, ConcurrentCost, Requests, Answer                                        int
}

// Settings are the rows of the limits. An honest client stays far below their defaults.
func (l *Limits) Settings() []setting.Setting {
	return []setting.Setting{
		{Name: "ORDERGRAPH_MAX_TOKENS", Value: setting.Limit(&l.Tokens, 2000), Exceeded: setting.Code(errcode.TooManyTokens), Meaning: "maximum tokens in a document; the introspection query that tools send has 185"},
		{Name: "ORDERGRAPH_MAX_DEPTH", Value: setting.Limit(&l.Depth, 15), Exceeded: setting.Code(errcode.TooDeep), Meaning: "maximum nesting of fields; fields below `__schema` and `__type` do not count"},
		{Name: "ORDERGRAPH_MAX_ALIASES", Value: setting.Limit(&l.Aliases, 100), Exceeded: setting.Code(errcode.TooManyAliases), Meaning: "maximum aliases in an operation, counted wherever a fragment is spread"},
		{Name: "ORDERGRAPH_MAX_ROOT_FIELDS", Value: setting.Limit(&l.RootFields, 50), Exceeded: setting.Code(errcode.TooManyRootFields), Meaning: "maximum root fields of an operation, counted wherever a fragment is spread"},
		{Name: "ORDERGRAPH_MAX_DIRECTIVES", Value: setting.Limit(&l.Directives, 50), Exceeded: setting.Code(errcode.TooManyDirectives), Meaning: "maximum directives in a document"},
		{Name: "ORDERGRAPH_MAX_LIST_DEPTH", Value: setting.Limit(&l.ListDepth, 8), Exceeded: setting.Code(errcode.ListTooDeep), Meaning: "maximum nesting of lists and objects in a value, in the document or in the variables"},
		{Name: "ORDERGRAPH_MAX_INTROSPECTION_DEPTH", Value: setting.Limit(&l.IntrospectionDepth, 2), Exceeded: setting.Code(errcode.IntrospectionTooDeep), Meaning: "maximum nesting of `fields`, `inputFields`, `interfaces` and `possibleTypes` in an introspection; the query that tools send has 1"},
		{Name: "ORDERGRAPH_MAX_COST", Value: setting.Limit(&l.Cost, 100_000), Exceeded: setting.Code(errcode.TooExpensive), Meaning: "maximum cost of an operation"},
		{Name: "ORDERGRAPH_MAX_CONCURRENT_COST", Value: setting.Limit(&l.ConcurrentCost, 500_000), Exceeded: setting.Code(errcode.Overloaded) + " (503)", Meaning: "maximum total cost of the operations that are executed at the same time"},
		{Name: "ORDERGRAPH_MAX_REQUESTS", Value: setting.Limit(&l.Requests, 1000), Exceeded: setting.Code(errcode.TooManyRequests), Meaning: "maximum DynamoDB reads per operation"},
		{Name: "ORDERGRAPH_MAX_ANSWER", Value: setting.Limit(&l.Answer, 4<<20), Exceeded: setting.Code(errcode.AnswerTooLarge), Meaning: "maximum bytes of `data` in a response"},
	}
}

// DefaultLimits are the defaults of Settings.
func DefaultLimits() Limits { return Limits{}.OrDefaults() }

// OrDefaults returns the limits with the default of each that is zero.
func (l Limits) OrDefaults() Limits {
	setting.FillDefaults(l.Settings())
	return l
}

// Bounds that no setting moves: they keep the walks that follow within their stacks and their time.
const (
	// maxNesting is how many selection sets can stand inside one another, those of fragments where
	// they are spread. The parser holds documents to as many without fragments.
	maxNesting = parser.MaxNestingDepth
	// MaxExpanded is how many fields, fragments, directives and values a document has at most when
	// every spread is replaced by its fragment. Validation, planning and execution take time for
	// each.
	MaxExpanded = 50_000
	// maxName is how long a name in a document can be, in bytes. Validation compares names that are
	// wrong with those of the schema, letter by letter.
	maxName = 200
	// maxSchemaNesting is how many fields can stand inside one another below __schema and __type;
	// the tools' own query has 14.
	maxSchemaNesting = 20
)

// parseError puts the parser's own limits into our words and codes.
func (l Limits) parseError(text string, err error) *gqlerror.Error {
	told := gqlerror.WrapIfUnwrapped(err)
	switch {
	case strings.HasPrefix(told.Message, "exceeded token limit"):
		count, position := tokens(text, l.Tokens)
		return errcode.New(position, errcode.TooManyTokens, "the document has %d tokens (names, values, brackets and the like), and the limit is %d: ask for less at once, or move values into variables", count, l.Tokens)
	case strings.HasPrefix(told.Message, "exceeded maximum nesting depth"):
		told.Message = "the document has more than 1000 brackets inside one another: write it flatter"
		return errcode.With(told, errcode.TooDeep)
	}
	told.Message = errcode.Excerpt(told.Message, maxMessage)
	return told
}

// tokens counts a text's tokens as the parser does, and finds the one that is over the limit.
func tokens(text string, limit int) (count int, over *ast.Position) {
	l := lexer.New(&ast.Source{Input: text})
	for {
		token, err := l.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return count, over
		}
		if count++; count == limit+1 {
			position := token.Pos
			over = &position
		}
	}
}

// maxMessage is how long the library's messages can get, in bytes: they repeat what was sent.
const maxMessage = 300
