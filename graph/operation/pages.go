package operation

import "github.com/vektah/gqlparser/v2/ast"

// Page sizes.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// IsPage reports whether a field gives a page of a list: those are the fields with a "first".
func IsPage(f *ast.Field) bool { return f.Definition.Arguments.ForName("first") != nil }

// Beyond tells, for reading from the start and from the end, whether pageInfo is asked for what
// lies beyond.
type Beyond struct{ Next, Previous bool }
