package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// FieldVisitor visits the fields of selection sets, including the fields in fragments, but not
// nested selection sets. It visits a fragment at most twice, as recordSpread explains.
type FieldVisitor struct {
	// Field is called for each field. optional is true if the field depends on a variable in @skip
	// or @include.
	Field func(f *ast.Field, optional bool)
	// EvaluateConditions evaluates @skip and @include. Its first result is true if the directives
	// include the selection. Its second result is true if the first result depends on a variable.
	// If EvaluateConditions is nil, every selection is included.
	EvaluateConditions func(ast.DirectiveList) (in, optional bool)
	// Satisfies contains names of types. A fragment with a type condition is visited only if its
	// type is in Satisfies. If Satisfies is nil, all fragments are visited.
	Satisfies []string
	// Visited is the number of visited selections. Selections that @skip or @include excludes are
	// counted, too.
	Visited int
	// These are the names of the fragments in the recorded spreads. A spread in optional depends on
	// a variable in @skip or @include. A spread in certain does not.
	certain, optional []string
}

// Visit visits the fields of a selection set. optional is true if the entire selection set depends
// on a variable in @skip or @include.
func (v *FieldVisitor) Visit(set ast.SelectionSet, optional bool) {
	v.Visited += len(set)
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if in, conditional := v.evaluateDirectives(s.Directives); in {
				v.Field(s, optional || conditional)
			}
		case *ast.InlineFragment:
			if in, conditional := v.evaluateDirectives(s.Directives); in && v.satisfiesTypeCondition(s.TypeCondition) {
				v.Visit(s.SelectionSet, optional || conditional)
			}
		case *ast.FragmentSpread:
			in, conditional := v.evaluateDirectives(s.Directives)
			if in && s.Definition != nil && v.recordSpread(s.Name, optional || conditional) && v.satisfiesTypeCondition(s.Definition.TypeCondition) {
				v.Visit(s.Definition.SelectionSet, optional || conditional)
			}
		}
	}
}

func (v *FieldVisitor) evaluateDirectives(directives ast.DirectiveList) (in, optional bool) {
	if v.EvaluateConditions == nil {
		return true, false
	}
	return v.EvaluateConditions(directives)
}

// recordSpread records a spread of a fragment and reports whether to visit the fragment. A fragment
// is visited at its first spread. If this spread is optional, the fragment is visited again at its
// first spread that is not optional.
func (v *FieldVisitor) recordSpread(fragment string, optional bool) bool {
	switch {
	case slices.Contains(v.certain, fragment), optional && slices.Contains(v.optional, fragment):
		return false
	case optional:
		v.optional = append(v.optional, fragment)
	default:
		v.certain = append(v.certain, fragment)
	}
	return true
}

func (v *FieldVisitor) satisfiesTypeCondition(condition string) bool {
	return condition == "" || v.Satisfies == nil || slices.Contains(v.Satisfies, condition)
}
