package document

import (
	"cmp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// Limits bound what one request can ask for. Each has an error code of its own; the zero value of
// each stands for its default.
type Limits struct {
	// Tokens is how many tokens a document can have; the introspection query has 184.
	Tokens int
	// Depth is how many fields can stand inside one another. Fields of the schema (inside __schema
	// and __type) do not count.
	Depth int
	// Aliases is how many fields of an operation can have another name than their own, counted
	// wherever a fragment is spread.
	Aliases int
	// RootFields is how many fields an operation can have at its root, counted wherever a fragment
	// is spread.
	RootFields int
	// Directives is how many directives a document can have, as it is written.
	Directives int
	// ListDepth is how many lists and objects can stand inside one another in a value, be it in the
	// document or in the variables.
	ListDepth int
	// IntrospectionDepth is how many of the schema's lists fields, inputFields, interfaces and
	// possibleTypes can stand inside one another; the tools' own query has one, and 2 is what
	// graphql-js allows.
	IntrospectionDepth int
	// Cost is how much an operation can cost; package operation says how it is counted.
	Cost int
	// ConcurrentCost is how much the operations can cost together that are executed at once.
	ConcurrentCost int
	// Requests is how many requests that read one operation can make of DynamoDB.
	Requests int
	// Answer is how many bytes the data of an answer can have.
	Answer int
}

// DefaultLimits are limits that no query of an honest client comes near.
func DefaultLimits() Limits {
	return Limits{Tokens: 2000, Depth: 15, Aliases: 100, RootFields: 50, Directives: 50, ListDepth: 8, IntrospectionDepth: 2, Cost: 100_000, ConcurrentCost: 500_000, Requests: 1000, Answer: 4 << 20}
}

// OrDefaults returns the limits with the default of each that is zero.
func (l Limits) OrDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Tokens: cmp.Or(l.Tokens, d.Tokens), Depth: cmp.Or(l.Depth, d.Depth), Aliases: cmp.Or(l.Aliases, d.Aliases),
		RootFields: cmp.Or(l.RootFields, d.RootFields), Directives: cmp.Or(l.Directives, d.Directives),
		ListDepth: cmp.Or(l.ListDepth, d.ListDepth), IntrospectionDepth: cmp.Or(l.IntrospectionDepth, d.IntrospectionDepth), Cost: cmp.Or(l.Cost, d.Cost),
		ConcurrentCost: cmp.Or(l.ConcurrentCost, d.ConcurrentCost), Requests: cmp.Or(l.Requests, d.Requests), Answer: cmp.Or(l.Answer, d.Answer),
	}
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
