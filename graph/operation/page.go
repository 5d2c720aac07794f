package operation

import "github.com/vektah/gqlparser/v2/ast"

// Page sizes.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
)

// ReturnsPage reports whether a field returns a page of a list. Such a field has the argument
// "first".
func ReturnsPage(f *ast.Field) bool { return f.Definition.Arguments.ForName("first") != nil }

// PageInfoSelection reports whether pageInfo selects hasNextPage and hasPreviousPage.
type PageInfoSelection struct{ HasNextPage, HasPreviousPage bool }
