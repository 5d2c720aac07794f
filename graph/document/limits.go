package document

import (
	"reflect"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// PerLimit has one field for each limit of a client's request and its execution. T is int for the
// values of the limits, and string for their error codes. setting.Limits describes the tags.
// Typical requests stay far below the default limits.
type PerLimit[T any] struct {
	Tokens             T `env:"ORDERGRAPH_MAX_TOKENS" default:"2000" code:"TOO_MANY_TOKENS" meaning:"tokens in a document"`
	Depth              T `env:"ORDERGRAPH_MAX_DEPTH" default:"15" code:"TOO_DEEP" meaning:"levels of nested fields, except introspection"`
	Aliases            T `env:"ORDERGRAPH_MAX_ALIASES" default:"100" code:"TOO_MANY_ALIASES" meaning:"aliases, with fragments expanded"`
	RootFields         T `env:"ORDERGRAPH_MAX_ROOT_FIELDS" default:"50" code:"TOO_MANY_ROOT_FIELDS" meaning:"root fields, with fragments expanded"`
	Directives         T `env:"ORDERGRAPH_MAX_DIRECTIVES" default:"50" code:"TOO_MANY_DIRECTIVES" meaning:"directives in a document"`
	ListDepth          T `env:"ORDERGRAPH_MAX_LIST_DEPTH" default:"8" code:"LIST_TOO_DEEP" meaning:"levels of nested lists and objects"`
	IntrospectionDepth T `env:"ORDERGRAPH_MAX_INTROSPECTION_DEPTH" default:"2" code:"INTROSPECTION_TOO_DEEP" meaning:"levels of nested 'fields', 'inputFields', 'interfaces' and 'possibleTypes'"`
	Cost               T `env:"ORDERGRAPH_MAX_COST" default:"100000" code:"TOO_EXPENSIVE" meaning:"cost of an operation"`
	Requests           T `env:"ORDERGRAPH_MAX_REQUESTS" default:"1000" code:"TOO_MANY_REQUESTS" meaning:"DynamoDB reads per operation"`
	Answer             T `env:"ORDERGRAPH_MAX_ANSWER" default:"4194304" code:"ANSWER_TOO_LARGE" meaning:"bytes of 'data' in a response"`
}

// Limits are the values of all limits. A zero value means the default.
type Limits PerLimit[int]

// LimitCodes are the error codes of the limits.
var LimitCodes = setting.ErrorCodes[PerLimit[string]]()

// AllLimitCodes returns the values of all fields of Codes.
func AllLimitCodes() (all []string) {
	codes := reflect.ValueOf(LimitCodes)
	for i := range codes.NumField() {
		all = append(all, codes.Field(i).String())
	}
	return all
}

// Fixed limits. They prevent stack overflows and long run times of the recursive functions in this
// package.
const (
	// maxNesting is the maximum nesting of selection sets, with every spread replaced by its fragment.
	// The parser has the same limit for selection sets without fragments.
	maxNesting = parser.MaxNestingDepth
	// MaxExpandedNodes is the maximum number of fields, fragments, directives and values in a document,
	// with every spread replaced by its fragment. The time of validation, planning and execution is
	// proportional to this number.
	MaxExpandedNodes = 50_000
	// maxName is the maximum length of a name in bytes. Long names are expensive: for each unknown
	// name, validation computes the edit distance to names of the schema.
	maxName = 200
	// maxIntrospectionNesting is the maximum nesting of fields below __schema and __type. The introspection
	// query that tools usually send has 14 levels.
	maxIntrospectionNesting = 20
)

// convertParseError converts an error of the parser. If the document exceeds a limit of the parser, the
// result has a code and a message of this package.
func (l Limits) convertParseError(text string, err error) *gqlerror.Error {
	parserErr := gqlerror.WrapIfUnwrapped(err)
	switch {
	case strings.HasPrefix(parserErr.Message, "exceeded token limit"):
		count, position := countTokens(text, l.Tokens)
		return errcode.New(position, LimitCodes.Tokens, "the document has %d tokens (names, values and punctuation), and the limit is %d: select fewer fields in one request, or move values into variables", count, l.Tokens)
	case strings.HasPrefix(parserErr.Message, "exceeded maximum nesting depth"):
		parserErr.Message = "the document nests brackets more than 1000 levels deep: reduce the nesting"
		return errcode.WithCode(parserErr, LimitCodes.Depth)
	}
	parserErr.Message = errcode.Excerpt(parserErr.Message, maxMessage)
	return parserErr
}

// countTokens counts the tokens of a text as the parser does. firstExcess is the position of the
// first token beyond the limit.
func countTokens(text string, limit int) (count int, firstExcess *ast.Position) {
	l := lexer.New(&ast.Source{Input: text})
	for {
		token, err := l.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return count, firstExcess
		}
		if count++; count == limit+1 {
			position := token.Pos
			firstExcess = &position
		}
	}
}

// maxMessage is the maximum length in bytes of a message from gqlparser. These messages quote parts
// of the document.
const maxMessage = 300
