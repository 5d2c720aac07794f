package document

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// singleRootFieldRule checks that a subscription has exactly one root field
// (https://spec.graphql.org/September2025/#sec-Single-Root-Field). Unlike gqlparser's rule, it
// rejects @skip and @include, and also the same field with two aliases.
var singleRootFieldRule = core.Rule{
	Name: "SingleFieldSubscriptions",
	RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		events.OnOperation(func(_ *core.Walker, o *ast.OperationDefinition) {
			if o.Operation != ast.Subscription {
				return
			}
			name := "" // response name of the first root field
			visit := FieldVisitor{
				EvaluateConditions: func(directives ast.DirectiveList) (in, optional bool) {
					for _, d := range directives {
						if d.Name == "skip" || d.Name == "include" {
							add(core.Message("@%s is not allowed at the root of a subscription: remove it, because a subscription needs its root field", d.Name), core.At(d.Position))
						}
					}
					return true, false
				},
				Field: func(f *ast.Field, _ bool) {
					switch {
					case strings.HasPrefix(f.Name, "__"):
						add(core.Message("%s is not allowed at the root of a subscription: remove this field", f.Name), core.At(f.Position))
					case name == "":
						name = f.Alias
					case name != f.Alias:
						add(core.Message("the subscription has more than one root field: send a separate subscription for each field"), core.At(f.Position))
					}
				},
			}
			visit.Visit(o.SelectionSet, false)
		})
	},
}
