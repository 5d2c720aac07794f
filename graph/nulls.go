package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// nullChecks refuses a null variable where no null may stand. Validation lets a variable of a nullable type stand there if it
// has a default; what happens when null is given all the same is left to execution
// (https://spec.graphql.org/September2025/#sec-All-Variable-Usages-Are-Allowed), where it would panic in @skip and @include and
// be the text "null" as an ID.
type nullChecks struct{}

var _ interface {
	graphql.HandlerExtension
	graphql.OperationContextMutator
} = nullChecks{}

// ExtensionName is for gqlgen's messages.
func (nullChecks) ExtensionName() string { return "nullChecks" }

// Validate does nothing: nullChecks fits every schema.
func (nullChecks) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses the operation where a null stands in the place of a value.
func (nullChecks) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	null := false
	for _, d := range op.Operation.VariableDefinitions {
		null = null || d.DefaultValue != nil && op.Variables[d.Variable] == nil
	}
	if !null {
		return nil
	}
	c := nullCheck{variables: op.Variables, seen: map[string]bool{}}
	c.directives(op.Operation.Directives)
	c.selections(op.Operation.SelectionSet)
	return c.refused
}

// nullCheck walks an operation, each fragment once.
type nullCheck struct {
	variables map[string]any
	seen      map[string]bool
	refused   *gqlerror.Error
}

func (c *nullCheck) selections(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			c.arguments(s.Arguments)
			c.directives(s.Directives)
			c.selections(s.SelectionSet)
		case *ast.InlineFragment:
			c.directives(s.Directives)
			c.selections(s.SelectionSet)
		case *ast.FragmentSpread:
			c.directives(s.Directives)
			if !c.seen[s.Name] {
				c.seen[s.Name] = true
				c.selections(s.Definition.SelectionSet)
			}
		}
	}
}

func (c *nullCheck) directives(directives ast.DirectiveList) {
	for _, d := range directives {
		c.arguments(d.Arguments)
	}
}

func (c *nullCheck) arguments(arguments ast.ArgumentList) {
	for _, a := range arguments {
		c.value(a.Value)
	}
}

func (c *nullCheck) value(v *ast.Value) {
	if v.Kind == ast.Variable && v.ExpectedType != nil && v.ExpectedType.NonNull && c.variables[v.Raw] == nil && c.refused == nil {
		c.refused = withCode(gqlerror.ErrorPosf(v.Position, "%s", fmt.Sprintf("variable %q is null where %s is wanted: give a value, or leave the variable out", v.Raw, v.ExpectedType)), codeBadUserInput)
	}
	for _, child := range v.Children {
		c.value(child.Value)
	}
}
