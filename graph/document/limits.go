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

// PerLimit has a value for each limit on what one request can ask for; setting.Limits describes the
// tags. An honest client stays far below the defaults.
type PerLimit[T any] struct {
	Tokens             T `env:"ORDERGRAPH_MAX_TOKENS" default:"2000" code:"TOO_MANY_TOKENS" meaning:"tokens in a document; standard introspection has 185"`
	Depth              T `env:"ORDERGRAPH_MAX_DEPTH" default:"15" code:"TOO_DEEP" meaning:"nesting of fields, except below '__schema' and '__type'"`
	Aliases            T `env:"ORDERGRAPH_MAX_ALIASES" default:"100" code:"TOO_MANY_ALIASES" meaning:"aliases, with fragments expanded"`
	RootFields         T `env:"ORDERGRAPH_MAX_ROOT_FIELDS" default:"50" code:"TOO_MANY_ROOT_FIELDS" meaning:"root fields, with fragments expanded"`
	Directives         T `env:"ORDERGRAPH_MAX_DIRECTIVES" default:"50" code:"TOO_MANY_DIRECTIVES" meaning:"directives in a document"`
	ListDepth          T `env:"ORDERGRAPH_MAX_LIST_DEPTH" default:"8" code:"LIST_TOO_DEEP" meaning:"nesting of lists and objects in a value"`
	IntrospectionDepth T `env:"ORDERGRAPH_MAX_INTROSPECTION_DEPTH" default:"2" code:"INTROSPECTION_TOO_DEEP" meaning:"nesting of 'fields', 'inputFields', 'interfaces', 'possibleTypes'"`
	Cost               T `env:"ORDERGRAPH_MAX_COST" default:"100000" code:"TOO_EXPENSIVE" meaning:"cost of an operation"`
	Requests           T `env:"ORDERGRAPH_MAX_REQUESTS" default:"1000" code:"TOO_MANY_REQUESTS" meaning:"DynamoDB reads per operation"`
	Answer             T `env:"ORDERGRAPH_MAX_ANSWER" default:"4194304" code:"ANSWER_TOO_LARGE" meaning:"bytes of 'data' in a response"`
}

// Limits bound what one request can ask for. A zero value stands for its default.
type Limits PerLimit[int]

// Codes are the error codes of the limits.
var Codes = setting.Codes[PerLimit[string]]()

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
		return errcode.New(position, Codes.Tokens, "the document has %d tokens (names, values, brackets and the like), and the limit is %d: ask for less at once, or move values into variables", count, l.Tokens)
	case strings.HasPrefix(told.Message, "exceeded maximum nesting depth"):
		told.Message = "the document has more than 1000 brackets inside one another: write it flatter"
		return errcode.With(told, Codes.Depth)
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
