package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// maxQuotedBytes is the maximum length in bytes of a client's name or string that an error message
// quotes.
const maxQuotedBytes = 50

// coerceVariables validates and converts the variables of a request
// (https://spec.graphql.org/September2025/#sec-Coercing-Variable-Values). It does not convert
// scalars that s does not contain, and returns at most errcode.MaxErrors errors.
func coerceVariables(schema *ast.Schema, s scalars, operation *ast.OperationDefinition, values map[string]any, limits Limits, hideSchema bool, nonNullUses ...*ast.Value) (map[string]any, gqlerror.List) {
	variables := map[string]any{}
	c := coercer{schema: schema, scalars: s, hideSchema: hideSchema}
	for _, d := range operation.VariableDefinitions {
		c.variable, c.path = d, nil
		value, ok := values[d.Variable]
		switch {
		case !ok && d.DefaultValue != nil:
			variables[d.Variable] = c.defaultValue(d.Type, d.DefaultValue)
		case !ok && d.Type.NonNull:
			c.addError("must be defined")
		case !ok:
		case exceedsDepth(value, limits.ListDepth):
			c.errs = append(c.errs, errcode.New(d.Position, LimitCodes.ListDepth, "variable %q nests lists and objects more than %d levels deep: send fewer levels, because no argument of this schema needs more", d.Variable, limits.ListDepth))
		default:
			variables[d.Variable] = c.value(d.Type, value)
		}
		if len(c.errs) >= errcode.MaxErrors {
			break
		}
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	// If one of these variables is null, the specification requires an error during execution
	// (https://spec.graphql.org/September2025/#sec-All-Variable-Usages-Are-Allowed). This function
	// returns the error earlier.
	for _, use := range nonNullUses {
		if value, ok := variables[use.Raw]; ok && value == nil {
			expected := use.ExpectedType.String()
			if hideSchema {
				expected = "a value"
			}
			return nil, gqlerror.List{errcode.New(use.Position, errcode.BadUserInput, "variable %q is null where %s is required: send a value, or omit the variable", use.Raw, expected)}
		}
	}
	return variables, nil
}

// nonNullUsesRule returns a rule that collects uses of nullable variables in d.nonNullUses. The
// rule collects each use in a place where null is not allowed. It reports no errors.
func (d *Document) nonNullUsesRule() core.Rule {
	d.nonNullUses = map[*ast.OperationDefinition][]*ast.Value{}
	return core.Rule{RuleFunc: func(events *core.Events, _ core.AddErrFunc) {
		events.OnValue(func(w *core.Walker, v *ast.Value) {
			definition := v.VariableDefinition
			if v.Kind == ast.Variable && w.CurrentOperation != nil && v.ExpectedType != nil && v.ExpectedType.NonNull && definition != nil && !definition.Type.NonNull {
				d.nonNullUses[w.CurrentOperation] = append(d.nonNullUses[w.CurrentOperation], v)
			}
		})
	}}
}

// exceedsDepth reports whether a value nests lists and objects more than limit levels deep. Its
// recursion stops at the limit, so a deeply nested value cannot exhaust the stack.
func exceedsDepth(value any, limit int) bool {
	switch value := value.(type) {
	case []any:
		return limit == 0 || slices.ContainsFunc(value, func(v any) bool { return exceedsDepth(v, limit-1) })
	case map[string]any:
		if limit == 0 {
			return true
		}
		for _, v := range value {
			if exceedsDepth(v, limit-1) {
				return true
			}
		}
	}
	return false
}

// coercer coerces the variables of one operation. Its recursion is limited, because exceedsDepth
// limits the nesting of values and the parser limits the nesting of types.
type coercer struct {
	schema     *ast.Schema
	scalars    scalars
	hideSchema bool
	variable   *ast.VariableDefinition
	path       []string
	errs       gqlerror.List
}

// addError adds an error about the value at c.path, which is a path within the variable.
func (c *coercer) addError(format string, args ...any) {
	if len(c.errs) >= errcode.MaxErrors {
		return
	}
	where := ""
	if len(c.path) > 0 {
		where = strings.Join(c.path, ".") + " "
	}
	c.errs = append(c.errs, errcode.New(c.variable.Position, errcode.BadUserInput, "variable %q: %s%s", c.variable.Variable, where, fmt.Sprintf(format, args...)))
}

// addTypeError adds an error about a value that does not have the expected type.
func (c *coercer) addTypeError(value any, expected string) {
	c.addError("%s", withoutType(&typeError{value, expected}, c.hideSchema))
}

func (c *coercer) withPathElement(element string, coerce func()) {
	c.path = append(c.path, element)
	coerce()
	c.path = c.path[:len(c.path)-1]
}

// defaultValue coerces the default value of a variable or of an input field.
func (c *coercer) defaultValue(t *ast.Type, literal *ast.Value) any {
	return c.value(t, LiteralValue(literal))
}

func (c *coercer) value(t *ast.Type, value any) any {
	switch {
	case len(c.errs) >= errcode.MaxErrors:
		return nil
	case value == nil && t.NonNull:
		c.addError("cannot be null")
		return nil
	case value == nil:
		return nil
	case t.Elem != nil:
		return c.list(t.Elem, value)
	}
	definition := c.schema.Types[t.NamedType]
	switch definition.Kind {
	case ast.InputObject:
		return c.object(definition, value)
	case ast.Enum:
		return c.enum(definition, value)
	default:
		return c.scalar(t.NamedType, value)
	}
}

// list coerces a list with elements of type t. A single value becomes a list with one element.
func (c *coercer) list(t *ast.Type, value any) any {
	values, ok := value.([]any)
	if !ok {
		return []any{c.value(t, value)}
	}
	list := make([]any, len(values))
	for i, element := range values {
		c.withPathElement(strconv.Itoa(i), func() { list[i] = c.value(t, element) })
	}
	return list
}

func (c *coercer) enum(definition *ast.Definition, value any) any {
	text, ok := value.(string)
	switch {
	case !ok:
		c.addTypeError(value, "a value of "+definition.Name+", as a string")
	case definition.EnumValues.ForName(text) == nil && c.hideSchema:
		c.addError("has the invalid value %q", errcode.Excerpt(text, maxQuotedBytes))
	case definition.EnumValues.ForName(text) == nil:
		known := make([]string, len(definition.EnumValues))
		for i, v := range definition.EnumValues {
			known[i] = v.Name
		}
		c.addError("has the value %q, which is not a value of %s%s", errcode.Excerpt(text, maxQuotedBytes), definition.Name, c.similar(text, known))
	}
	return text
}

func (c *coercer) object(definition *ast.Definition, value any) any {
	values, ok := value.(map[string]any)
	if !ok {
		c.addTypeError(value, "an object of type "+definition.Name)
		return nil
	}
	object := make(map[string]any, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if definition.Fields.ForName(name) == nil {
			c.addUnknownFieldError(definition, name)
		}
	}
	for _, f := range definition.Fields {
		value, ok := values[f.Name]
		c.withPathElement(f.Name, func() {
			switch {
			case ok:
				object[f.Name] = c.value(f.Type, value)
			case f.DefaultValue != nil:
				object[f.Name] = c.defaultValue(f.Type, f.DefaultValue)
			case f.Type.NonNull && !c.hideSchema:
				c.addError("must be defined")
			}
		})
		if !ok && f.DefaultValue == nil && f.Type.NonNull && c.hideSchema {
			c.addError("lacks a required field")
		}
	}
	if definition.Directives.ForName("oneOf") != nil {
		c.checkOneOf(definition, values)
	}
	return object
}

func (c *coercer) addUnknownFieldError(definition *ast.Definition, name string) {
	if c.hideSchema {
		c.addError("has the unknown field %q", errcode.Excerpt(name, maxQuotedBytes))
		return
	}
	known := make([]string, len(definition.Fields))
	for i, f := range definition.Fields {
		known[i] = f.Name
	}
	c.addError("has a field %q, which %s does not have%s", errcode.Excerpt(name, maxQuotedBytes), definition.Name, c.similar(name, known))
}

// similar returns the end of an error message, which asks for the known names that are similar to
// the name. If there are none, it returns an empty string.
func (c *coercer) similar(name string, known []string) string {
	if len(c.errs) >= errcode.MaxErrors {
		return ""
	}
	names := core.SuggestionList(errcode.Excerpt(name, maxQuotedBytes), known)
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + core.QuotedOrList(names...) + "?"
}

// checkOneOf checks an object of an input type with @oneOf. The object must have exactly one field,
// and the field must not be null.
func (c *coercer) checkOneOf(definition *ast.Definition, values map[string]any) {
	if len(values) != 1 {
		c.addError("has %d fields, but exactly one is required", len(values))
		return
	}
	for name, value := range values {
		if value == nil && definition.Fields.ForName(name) != nil {
			c.withPathElement(name, func() { c.addError("cannot be null") })
		}
	}
}
