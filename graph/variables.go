package graph

import (
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
)

// coerceVariables makes the values that execution reads of those that a request gives, and refuses what is not of its type.
//
// Beyond what validation refuses are enum values in another case, which the generated code would read as no value; and null
// where no null may stand. For that, validation
// is satisfied if the variable has a default; what happens when null is given all the same is left to execution
// (https://spec.graphql.org/September2025/#sec-All-Variable-Usages-Are-Allowed), where it would panic in @skip and @include
// and be the text "null" as an ID.
func coerceVariables(schema *ast.Schema, operation *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error) {
	variables, err := validator.VariableValues(schema, operation, given)
	if err != nil {
		return nil, gqlerror.WrapIfUnwrapped(err)
	}
	null := false
	for _, d := range operation.VariableDefinitions {
		value := variables[d.Variable]
		null = null || d.DefaultValue != nil && value == nil
		if wrong, ok := wrongEnum(d.Type, value); ok {
			return nil, refusedAt(d.Position, CodeBadUserInput, "variable %q holds %q, which is no value of %s", d.Variable, wrong, d.Type.Name())
		}
	}
	if !null {
		return variables, nil
	}
	c := nullCheck{variables: variables, seen: map[string]bool{}}
	c.directives(operation.Directives)
	c.selections(operation.SelectionSet)
	return variables, c.refused
}

// wrongEnum finds a text in a variable's value that should be an enum's and is not. Input objects of this schema hold no enums.
func wrongEnum(t *ast.Type, value any) (string, bool) {
	if t.Elem != nil {
		// Validation makes a list of a single value, and not always of the type []any.
		values := reflect.ValueOf(value)
		if values.Kind() != reflect.Slice {
			return wrongEnum(t.Elem, value)
		}
		for i := range values.Len() {
			if wrong, found := wrongEnum(t.Elem, values.Index(i).Interface()); found {
				return wrong, true
			}
		}
		return "", false
	}
	definition := parsedSchema.Types[t.NamedType]
	text, ok := value.(string)
	if !ok || definition == nil || definition.Kind != ast.Enum || definition.EnumValues.ForName(text) != nil {
		return "", false
	}
	return text, true
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
		c.refused = refusedAt(v.Position, CodeBadUserInput, "variable %q is null where %s is wanted: give a value, or leave the variable out", v.Raw, v.ExpectedType)
	}
	for _, child := range v.Children {
		c.value(child.Value)
	}
}
