package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// maxIDDigits is the maximum length of an ID that a client sends as a number.
const maxIDDigits = 64

// maxQuotedBytes is the maximum length in bytes of a client's name or string that an error message
// quotes.
const maxQuotedBytes = 50

// coerceVariables validates and converts the variables of a request
// (https://spec.graphql.org/September2025/#sec-Coercing-Variable-Values). It does not convert
// custom scalars, and returns at most errcode.MaxErrors errors.
func coerceVariables(schema *ast.Schema, operation *ast.OperationDefinition, values map[string]any, limits Limits, hideSchema bool, nonNullUses ...*ast.Value) (map[string]any, gqlerror.List) {
	variables := map[string]any{}
	c := coercer{schema: schema, hideSchema: hideSchema}
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
	if c.hideSchema {
		expected = "another type"
	}
	c.addError("is %s, expected %s", describeKind(value), expected)
}

func (c *coercer) withPathElement(element string, coerce func()) {
	c.path = append(c.path, element)
	coerce()
	c.path = c.path[:len(c.path)-1]
}

// defaultValue coerces the default value of a variable or of an input field.
func (c *coercer) defaultValue(t *ast.Type, literal *ast.Value) any {
	value, err := literal.Value(nil)
	if err != nil {
		c.addError("has an invalid default value")
		return nil
	}
	return c.value(t, value)
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
		c.addError("has the value %q, which is not a value of %s", errcode.Excerpt(text, maxQuotedBytes), definition.Name)
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
	c.addError("has a field %q, which %s does not have", errcode.Excerpt(name, maxQuotedBytes), definition.Name)
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

func (c *coercer) scalar(name string, value any) any {
	switch name {
	case "Int":
		whole, ok := wholeNumber(value)
		switch {
		case !ok:
			c.addTypeError(value, "an Int, which is a number without a fraction and without quotes")
		case whole < math.MinInt32 || whole > math.MaxInt32:
			c.addError("does not fit into an Int, which has 32 bits")
		}
		return int64(whole)
	case "Float":
		n, ok := toFloat(value)
		if !ok {
			c.addTypeError(value, "a Float, which is a number without quotes")
		}
		return n
	case "Boolean":
		if _, ok := value.(bool); !ok {
			c.addTypeError(value, "a Boolean, which is true or false without quotes")
		}
	case "String":
		if _, ok := value.(string); !ok {
			c.addTypeError(value, "a String")
		}
	case "ID":
		return c.id(value)
	}
	return value
}

// id coerces a string or an integer to an ID. It keeps all digits of an integer, even if the
// integer has more than 32 bits.
func (c *coercer) id(value any) any {
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		if text := value.String(); len(text) <= maxIDDigits && strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == "" {
			return text
		}
	case int64:
		return strconv.FormatInt(value, 10)
	}
	c.addTypeError(value, "an ID, a string")
	return nil
}

// toFloat converts a number from the request's JSON or from the document. It returns false if the
// value is not a number, or if it exceeds the range of a float64.
func toFloat(value any) (float64, bool) {
	switch value := value.(type) {
	case json.Number:
		n, err := value.Float64()
		return n, err == nil
	case int64:
		return float64(value), true
	case int:
		return float64(value), true
	case float64:
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	}
	return 0, false
}

// wholeNumber converts a number to a float64 and reports whether it has no fraction. It accepts
// 1.0, because JSON does not distinguish 1.0 from 1.
func wholeNumber(value any) (float64, bool) {
	n, ok := toFloat(value)
	return n, ok && n == math.Trunc(n)
}

// describeKind returns the kind of a value for an error message, such as "a string". The message
// does not contain the value itself, because it can be long or secret.
func describeKind(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a Boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
