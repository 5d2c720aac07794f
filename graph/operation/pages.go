package operation

import "github.com/vektah/gqlparser/v2/ast"

// Page sizes.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// IsPage reports whether a field returns a page of a list, which is a field with the argument
// "first".
func IsPage(f *ast.Field) bool { return f.Definition.Arguments.ForName("first") != nil }

// Beyond reports whether pageInfo selects hasNextPage and hasPreviousPage.
type Beyond struct{ Next, Previous bool }
