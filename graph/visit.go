package graph

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// fieldVisit visits the fields of selection sets and of the fragments inside them, but not what is
// selected below the fields. It visits each fragment once.
type fieldVisit struct {
	// field is called for each field. optional reports that a condition decides about it.
	field func(f *ast.Field, optional bool)
	// conditions decides directives; nil lets in every selection.
	conditions func(ast.DirectiveList) (in, optional bool)
	// satisfies are the types whose fragments are visited; nil visits all.
	satisfies []string
	// certain and optional are the names of the fragments that were spread, without and with a
	// condition.
	certain, optional []string
}

func (v *fieldVisit) set(set ast.SelectionSet, optional bool) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if in, maybe := v.decide(s.Directives); in {
				v.field(s, optional || maybe)
			}
		case *ast.InlineFragment:
			if in, maybe := v.decide(s.Directives); in && v.applies(s.TypeCondition) {
				v.set(s.SelectionSet, optional || maybe)
			}
		case *ast.FragmentSpread:
			in, maybe := v.decide(s.Directives)
			if in && s.Definition != nil && v.first(s.Name, optional || maybe) && v.applies(s.Definition.TypeCondition) {
				v.set(s.Definition.SelectionSet, optional || maybe)
			}
		}
	}
}

func (v *fieldVisit) decide(directives ast.DirectiveList) (in, optional bool) {
	if v.conditions == nil {
		return true, false
	}
	return v.conditions(directives)
}

// first reports whether a fragment is spread for the first time, and notes that it is. A spread
// without a condition counts again after one with a condition: its fields are certain then.
func (v *fieldVisit) first(fragment string, optional bool) bool {
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

func (v *fieldVisit) applies(condition string) bool {
	return condition == "" || v.satisfies == nil || slices.Contains(v.satisfies, condition)
}
