package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// FieldVisitor visits the fields of selection sets, including the fields in fragments. It does not
// visit the selections below these fields. It visits each fragment at its first spread. If
// that spread is conditional, it visits the fragment again at the first unconditional spread.
type FieldVisitor struct {
	// Field is called for each field. optional reports whether @skip or @include with a variable
	// applies to the field.
	Field func(f *ast.Field, optional bool)
	// EvaluateConditions evaluates @skip and @include. in reports whether the selection is included.
	// optional reports whether the inclusion depends on a variable. If EvaluateConditions is nil,
	// every selection is included.
	EvaluateConditions func(ast.DirectiveList) (in, optional bool)
	// Satisfies contains the type conditions of the fragments to visit. If Satisfies is nil, all
	// fragments are visited.
	Satisfies []string
	// Visited is the number of visited selections, including selections that @skip or @include
	// excludes.
	Visited int
	// certain contains the names of the fragments that were spread without a condition. optional
	// contains the names of the fragments that were spread with a condition.
	certain, optional []string
}

// Visit visits the fields of a selection set. optional reports whether a condition applies to the
// entire set.
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

// recordSpread records a spread of a fragment and reports whether to visit the fragment. optional
// reports whether a condition applies to the spread. A fragment is visited at its first spread. If
// that spread is conditional, the fragment is visited again at its first unconditional spread,
// because the fragment's fields are then always selected.
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
