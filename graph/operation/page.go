package operation

import "github.com/vektah/gqlparser/v2/ast"

// DefaultPageSize is the number of records in a page if the client does not set a size. MaxPageSize
// is the maximum that a client can set.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
)

// ReturnsPage reports whether a field returns a page of a list. Only these fields have the argument
// "first".
func ReturnsPage(f *ast.Field) bool { return f.Definition.Arguments.ForName("first") != nil }

// PageInfoSelection reports whether an operation selects the fields hasNextPage and hasPreviousPage
// of pageInfo.
type PageInfoSelection struct{ HasNextPage, HasPreviousPage bool }
