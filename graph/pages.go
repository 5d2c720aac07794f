package graph

import "github.com/vektah/gqlparser/v2/ast"

// Page sizes.
const (
	defaultPage = 20
	maxPage     = 100
)

// isPage tells whether a field gives a page of a list: those are the fields with a "first".
func isPage(f *ast.Field) bool { return f.Definition.Arguments.ForName("first") != nil }

// beyond tells, for reading from the start and from the end, whether pageInfo is asked for what
// lies beyond.
type beyond struct{ next, previous bool }
