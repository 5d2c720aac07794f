package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// FieldVisitor visits the fields of selection sets and of the fragments inside them, but not what
// is selected below the fields. It visits each fragment once.
type FieldVisitor struct {
	// Field is called for each field. optional reports that a condition decides about it.
	Field func(f *ast.Field, optional bool)
	// Conditions decides directives; nil lets in every selection.
	Conditions func(ast.DirectiveList) (in, optional bool)
	// Satisfies are the types whose fragments are visited; nil visits all.
	Satisfies []string
	// Visited is the number of selections that were visited, those that were left out included.
	Visited int
	// certain and optional are the names of the fragments that were spread, without and with a
	// condition.
	certain, optional []string
}

// Visit visits the fields of a selection set. With optional, a condition decides about all of them.
func (v *FieldVisitor) Visit(set ast.SelectionSet, optional bool) {
	v.Visited += len(set)
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if in, maybe := v.decide(s.Directives); in {
				v.Field(s, optional || maybe)
			}
		case *ast.InlineFragment:
			if in, maybe := v.decide(s.Directives); in && v.applies(s.TypeCondition) {
				v.Visit(s.SelectionSet, optional || maybe)
			}
		case *ast.FragmentSpread:
			in, maybe := v.decide(s.Directives)
			if in && s.Definition != nil && v.first(s.Name, optional || maybe) && v.applies(s.Definition.TypeCondition) {
				v.Visit(s.Definition.SelectionSet, optional || maybe)
			}
		}
	}
}

func (v *FieldVisitor) decide(directives ast.DirectiveList) (in, optional bool) {
	if v.Conditions == nil {
		return true, false
	}
	return v.Conditions(directives)
}

// first reports whether a fragment is spread for the first time, and notes that it is. A spread
// without a condition counts again after one with a condition: its fields are certain then.
func (v *FieldVisitor) first(fragment string, optional bool) bool {
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
