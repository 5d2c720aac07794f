package document

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// oneStream holds the root of a subscription to what one stream of events can answer
// (https://spec.graphql.org/September2025/#sec-Single-Root-Field): one field, none of the schema's
// own, and no condition, as without its field there would be nothing to follow. The library's rule
// counts a field of two aliases as one, and lets conditions through.
var oneStream = core.Rule{
	Name: "SingleFieldSubscriptions",
	RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		events.OnOperation(func(_ *core.Walker, o *ast.OperationDefinition) {
			if o.Operation != ast.Subscription {
				return
			}
			name := "" // of the first field, in the response
			visit := FieldVisitor{
				Conditions: func(directives ast.DirectiveList) (in, optional bool) {
					for _, d := range directives {
						if d.Name == "skip" || d.Name == "include" {
							add(core.Message("@%s cannot stand at the root of a subscription: without its field there is nothing to follow", d.Name), core.At(d.Position))
						}
					}
					return true, false
				},
				Field: func(f *ast.Field, _ bool) {
					switch {
					case strings.HasPrefix(f.Name, "__"):
						add(core.Message("a subscription follows one of its own fields, which %s is not: leave it out", f.Name), core.At(f.Position))
					case name == "":
						name = f.Alias
					case name != f.Alias:
						add(core.Message("a subscription has one field at its root: follow the others with subscriptions of their own"), core.At(f.Position))
					}
				},
			}
			visit.Visit(o.SelectionSet, false)
		})
	},
}
