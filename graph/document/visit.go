package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// FieldVisitor visits the fields of selection sets, including the fields in fragments. It does not
// visit the selections below these fields. It visits each fragment once.
type FieldVisitor struct {
	// Field is called for each field. optional reports whether @skip or @include with a variable
	// applies to the field.
	Field func(f *ast.Field, optional bool)
	// EvaluateConditions evaluates @skip and @include. in reports whether the selection is included.
	// optional reports whether that depends on a variable. If Conditions is nil, every selection is
	// included.
	EvaluateConditions func(ast.DirectiveList) (in, optional bool)
	// Satisfies are the type conditions of the fragments to visit. Nil means all fragments.
	Satisfies []string
	// Visited is the number of selections that were visited, including those that are not included.
	Visited int
	// certain and optional are the names of the visited fragments whose spreads have no condition and
	// a condition, respectively.
	certain, optional []string
}

// Visit visits the fields of a selection set. optional reports whether a condition applies to the
// whole set.
func (v *FieldVisitor) Visit(set ast.SelectionSet, optional bool) {
	v.Visited += len(set)
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if in, conditional := v.evaluate(s.Directives); in {
				v.Field(s, optional || conditional)
			}
		case *ast.InlineFragment:
			if in, conditional := v.evaluate(s.Directives); in && v.applies(s.TypeCondition) {
				v.Visit(s.SelectionSet, optional || conditional)
			}
		case *ast.FragmentSpread:
			in, conditional := v.evaluate(s.Directives)
			if in && s.Definition != nil && v.firstSpread(s.Name, optional || conditional) && v.applies(s.Definition.TypeCondition) {
				v.Visit(s.Definition.SelectionSet, optional || conditional)
			}
		}
	}
}

func (v *FieldVisitor) evaluate(directives ast.DirectiveList) (in, optional bool) {
	if v.EvaluateConditions == nil {
		return true, false
	}
	return v.EvaluateConditions(directives)
}

// firstSpread reports whether this is the first spread of a fragment, and records it. A spread
// without a condition also counts if all earlier spreads had one, because its fields are not
// optional.
func (v *FieldVisitor) firstSpread(fragment string, optional bool) bool {
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

func (v *FieldVisitor) applies(condition string) bool {
	return condition == "" || v.Satisfies == nil || slices.Contains(v.Satisfies, condition)
}
