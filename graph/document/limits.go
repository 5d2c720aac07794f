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

// PerLimit has one field for each limit. T is int for the limits, and string for their error codes.
// setting.Limits describes the struct tags.
type PerLimit[T any] struct {
	Tokens             T `env:"ORDERGRAPH_MAX_TOKENS" default:"2000" code:"TOO_MANY_TOKENS" meaning:"tokens in a document"`
	Depth              T `env:"ORDERGRAPH_MAX_DEPTH" default:"15" code:"TOO_DEEP" meaning:"levels of nested fields, except introspection"`
	Aliases            T `env:"ORDERGRAPH_MAX_ALIASES" default:"100" code:"TOO_MANY_ALIASES" meaning:"aliases, with fragments expanded"`
	RootFields         T `env:"ORDERGRAPH_MAX_ROOT_FIELDS" default:"50" code:"TOO_MANY_ROOT_FIELDS" meaning:"root fields, with fragments expanded"`
	Directives         T `env:"ORDERGRAPH_MAX_DIRECTIVES" default:"50" code:"TOO_MANY_DIRECTIVES" meaning:"directives in a document"`
	ListDepth          T `env:"ORDERGRAPH_MAX_LIST_DEPTH" default:"8" code:"LIST_TOO_DEEP" meaning:"levels of lists and objects in an input value"`
	IntrospectionDepth T `env:"ORDERGRAPH_MAX_INTROSPECTION_DEPTH" default:"2" code:"INTROSPECTION_TOO_DEEP" meaning:"levels of nested introspection lists: 'fields', 'inputFields', 'interfaces' and 'possibleTypes'"`
	Cost               T `env:"ORDERGRAPH_MAX_COST" default:"100000" code:"TOO_EXPENSIVE" meaning:"cost of an operation"`
	Requests           T `env:"ORDERGRAPH_MAX_REQUESTS" default:"1000" code:"TOO_MANY_REQUESTS" meaning:"DynamoDB reads per operation"`
	Answer             T `env:"ORDERGRAPH_MAX_ANSWER" default:"4194304" code:"ANSWER_TOO_LARGE" meaning:"bytes of 'data', 'errors' and 'extensions.explain' in a response"`
	Errors             T `env:"ORDERGRAPH_MAX_ERRORS" default:"100" code:"TOO_MANY_ERRORS" meaning:"execution errors in a response; the last error then contains the number of omitted errors"`
}

// Limits contains the value of each limit. A value of 0 means the default.
type Limits PerLimit[int]

// LimitCodes contains the error code of each limit. A request that exceeds a limit gets the code of
// that limit.
var LimitCodes = setting.ErrorCodes[PerLimit[string]]()

// AllLimitCodes returns the error codes of all limits in LimitCodes.
func AllLimitCodes() (all []string) {
	codes := reflect.ValueOf(LimitCodes)
	for i := range codes.NumField() {
		all = append(all, codes.Field(i).String())
	}
	return all
}

// These limits cannot be configured. They prevent stack overflows and long run times in the
// recursive functions of this package.
const (
	// maxNesting is the maximum number of levels of nested selection sets, after each fragment
	// spread is replaced by its fragment. The parser has the same limit, but does not replace
	// fragment spreads.
	maxNesting = parser.MaxNestingDepth
	// MaxExpandedNodes is the maximum number of fields, fragments, directives and values, after
	// fragment spreads are replaced. The time for validation, planning and execution is
	// proportional to this number.
	MaxExpandedNodes = 50_000
	// maxName is the maximum length of a name in bytes. Long names are expensive, because
	// validation compares each unknown name with the names of the schema to suggest a similar one.
	maxName = 200
	// maxIntrospectionNesting is the maximum number of levels of nested fields below __schema or
	// __type. The introspection query that most tools send has 14 levels.
	maxIntrospectionNesting = 20
)

// convertParseError prepares an error of the parser for the client. If the document exceeds a limit
// of the parser, convertParseError replaces the message and sets the error code of the limit.
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

// countTokens counts the tokens of a document in the same way as the parser. firstExcess is the
// position of the first token beyond the limit, or nil if the document is within the limit.
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

// maxMessage is the maximum length of a message from gqlparser in bytes. Longer messages are cut,
// because they can quote long parts of the document.
const maxMessage = 300
