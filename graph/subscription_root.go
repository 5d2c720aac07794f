package graph

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// oneStream holds the root of a subscription to what one stream of events can answer
// (https://spec.graphql.org/September2025/#sec-Single-Root-Field): one field, none of the schema's own, and no condition, as without
// its field there would be nothing to follow. The library's rule counts a field of two aliases as one, and lets conditions through.
var oneStream = core.Rule{
	Name: "SingleFieldSubscriptions",
	RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		events.OnOperation(func(_ *core.Walker, o *ast.OperationDefinition) {
			if o.Operation == ast.Subscription {
				root := subscriptionRoot{add: add, spread: map[string]bool{}}
				root.walk(o.SelectionSet)
			}
		})
	},
}

// subscriptionRoot walks what stands at the root of a subscription, each fragment once.
type subscriptionRoot struct {
	add    core.AddErrFunc
	spread map[string]bool
	// field is the name in the answer of the first field.
	field string
}

func (r *subscriptionRoot) walk(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			r.conditions(s.Directives)
			switch {
			case strings.HasPrefix(s.Name, "__"):
				r.add(core.Message("a subscription follows one of its own fields, which %s is not: leave it out", s.Name), core.At(s.Position))
			case r.field == "":
				r.field = s.Alias
			case r.field != s.Alias:
				r.add(core.Message("a subscription has one field at its root: follow the others with subscriptions of their own"), core.At(s.Position))
			}
		case *ast.InlineFragment:
			r.conditions(s.Directives)
			r.walk(s.SelectionSet)
		case *ast.FragmentSpread:
			r.conditions(s.Directives)
			if s.Definition != nil && !r.spread[s.Name] {
				r.spread[s.Name] = true
				r.walk(s.Definition.SelectionSet)
			}
		}
	}
}

func (r *subscriptionRoot) conditions(directives ast.DirectiveList) {
	for _, d := range directives {
		if d.Name == "skip" || d.Name == "include" {
			r.add(core.Message("@%s cannot stand at the root of a subscription: without its field there is nothing to follow", d.Name), core.At(d.Position))
		}
	}
}
