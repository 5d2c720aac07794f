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

// maxDigits is how many digits a number has that stands for an ID.
const maxDigits = 64

// maxRepeated is how much of a name or a text of the variables a message repeats, in bytes.
const maxRepeated = 50

// coerceVariables makes the values that execution reads of those that a request gives, and refuses
// what is not of its type (https://spec.graphql.org/September2025/#sec-Coercing-Variable-Values):
// integers as int64, ids as strings, lists as []any, defaults filled in. The generated code would
// read much else as something: the text "1" as a number, "yes" as false, null as the id "null".
// Custom scalars are left to their own readers. Variables that the operation does not define are
// ignored.
//
// With quiet, messages do not name types and fields that the client did not send.
//
// strict are the places that take no null and have a variable that can be null all the same, as it
// or the place has a default. The specification leaves that to execution
// (https://spec.graphql.org/September2025/#sec-All-Variable-Usages-Are-Allowed); here it is
// refused.
//
// Errors: BAD_USER_INPUT, up to MaxErrors, which name the variable and the place in it;
// LIST_TOO_DEEP for values that are deeper than limits allow.
func coerceVariables(schema *ast.Schema, operation *ast.OperationDefinition, given map[string]any, limits Limits, quiet bool, strict ...*ast.Value) (map[string]any, gqlerror.List) {
	variables := map[string]any{}
	c := coercion{schema: schema, quiet: quiet}
	for _, d := range operation.VariableDefinitions {
		c.variable, c.path = d, nil
		value, ok := given[d.Variable]
		switch {
		case !ok && d.DefaultValue != nil:
			variables[d.Variable] = c.literal(d.Type, d.DefaultValue)
		case !ok && d.Type.NonNull:
			c.refuse("must be defined")
		case !ok:
		case deeper(value, limits.ListDepth):
			c.errs = append(c.errs, errcode.New(d.Position, Codes.ListDepth, "variable %q has lists and objects more than %d inside one another, which is the limit: no field here takes so many", d.Variable, limits.ListDepth))
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
	for _, use := range strict {
		if value, ok := variables[use.Raw]; ok && value == nil {
			wanted := use.ExpectedType.String()
			if quiet {
				wanted = "a value"
			}
			return nil, gqlerror.List{errcode.New(use.Position, errcode.BadUserInput, "variable %q is null where %s is wanted: give a value, or leave the variable out", use.Raw, wanted)}
		}
	}
	return variables, nil
}

// strictUses returns a rule that finds no errors. It notes in d where each operation uses a
// variable that can be null although the place takes no null: validation allows that where the
// variable or the place has a default.
func (d *Document) strictUses() core.Rule {
	d.strict = map[*ast.OperationDefinition][]*ast.Value{}
	return core.Rule{RuleFunc: func(events *core.Events, _ core.AddErrFunc) {
		events.OnValue(func(w *core.Walker, v *ast.Value) {
			of := v.VariableDefinition
			if v.Kind == ast.Variable && w.CurrentOperation != nil && v.ExpectedType != nil && v.ExpectedType.NonNull && of != nil && !of.Type.NonNull {
				d.strict[w.CurrentOperation] = append(d.strict[w.CurrentOperation], v)
			}
		})
	}}
}

// deeper reports whether lists and objects stand more than limit inside one another. It goes no
// deeper itself.
func deeper(value any, limit int) bool {
	switch value := value.(type) {
	case []any:
		return limit == 0 || slices.ContainsFunc(value, func(v any) bool { return deeper(v, limit-1) })
	case map[string]any:
		if limit == 0 {
			return true
		}
		for _, v := range value {
			if deeper(v, limit-1) {
				return true
			}
		}
	}
	return false
}

// coercion makes values of one operation's variables. Its recursion is as deep as the values, which
// deeper has bounded, and the types that the client gave its variables, which the parser has.
type coercion struct {
	schema   *ast.Schema
	quiet    bool
	variable *ast.VariableDefinition
	path     []string
	errs     gqlerror.List
}

// refuse tells what is wrong at the path.
func (c *coercion) refuse(format string, args ...any) {
	if len(c.errs) >= errcode.MaxErrors {
		return
	}
	where := ""
	if len(c.path) > 0 {
		where = strings.Join(c.path, ".") + " "
	}
	c.errs = append(c.errs, errcode.New(c.variable.Position, errcode.BadUserInput, "variable %q: %s%s", c.variable.Variable, where, fmt.Sprintf(format, args...)))
}

// mistyped tells that a value is not of its type.
func (c *coercion) mistyped(value any, wanted string) {
	if c.quiet {
		wanted = "something else"
	}
	c.refuse("is %s where %s is wanted", described(value), wanted)
}

func (c *coercion) at(place string, read func()) {
	c.path = append(c.path, place)
	read()
	c.path = c.path[:len(c.path)-1]
}

// literal is a default value of the document, which validation has compared with its type.
func (c *coercion) literal(t *ast.Type, literal *ast.Value) any {
	value, err := literal.Value(nil)
	if err != nil {
		c.refuse("has a default that cannot be read")
		return nil
	}
	return c.value(t, value)
}

func (c *coercion) value(t *ast.Type, value any) any {
	switch {
	case len(c.errs) >= errcode.MaxErrors:
		return nil
	case value == nil && t.NonNull:
		c.refuse("cannot be null")
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

// list makes a list also of a single value.
func (c *coercion) list(t *ast.Type, value any) any {
	given, ok := value.([]any)
	if !ok {
		return []any{c.value(t, value)}
	}
	list := make([]any, len(given))
	for i, element := range given {
		c.at(strconv.Itoa(i), func() { list[i] = c.value(t, element) })
	}
	return list
}

func (c *coercion) enum(definition *ast.Definition, value any) any {
	text, ok := value.(string)
	switch {
	case !ok:
		c.mistyped(value, "a value of "+definition.Name+", as a string,")
	case definition.EnumValues.ForName(text) == nil && c.quiet:
		c.refuse("holds %q, which is not wanted there", errcode.Excerpt(text, maxRepeated))
	case definition.EnumValues.ForName(text) == nil:
		c.refuse("holds %q, which is no value of %s", errcode.Excerpt(text, maxRepeated), definition.Name)
	}
	return text
}

func (c *coercion) object(definition *ast.Definition, value any) any {
	given, ok := value.(map[string]any)
	if !ok {
		c.mistyped(value, "an object of type "+definition.Name)
		return nil
	}
	object := make(map[string]any, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if definition.Fields.ForName(name) == nil {
			c.unknown(definition, name)
		}
	}
	for _, f := range definition.Fields {
		value, ok := given[f.Name]
		c.at(f.Name, func() {
			switch {
			case ok:
				object[f.Name] = c.value(f.Type, value)
			case f.DefaultValue != nil:
				object[f.Name] = c.literal(f.Type, f.DefaultValue)
			case f.Type.NonNull && !c.quiet:
				c.refuse("must be defined")
			}
		})
		if !ok && f.DefaultValue == nil && f.Type.NonNull && c.quiet {
			c.refuse("lacks a field")
		}
	}
	if definition.Directives.ForName("oneOf") != nil {
		c.one(definition, given)
	}
	return object
}

func (c *coercion) unknown(definition *ast.Definition, name string) {
	if c.quiet {
		c.refuse("has a field %q, which is not wanted there", errcode.Excerpt(name, maxRepeated))
		return
	}
	c.refuse("has a field %q, which %s does not have", errcode.Excerpt(name, maxRepeated), definition.Name)
}

// one holds an object of a type with @oneOf to one field that is not null.
func (c *coercion) one(definition *ast.Definition, given map[string]any) {
	if len(given) != 1 {
		c.refuse("has %d fields where exactly one is wanted", len(given))
		return
	}
	for name, value := range given {
		if value == nil && definition.Fields.ForName(name) != nil {
			c.at(name, func() { c.refuse("cannot be null") })
		}
	}
}

func (c *coercion) scalar(name string, value any) any {
	switch name {
	case "Int":
		whole, ok := wholeNumber(value)
		switch {
		case !ok:
			c.mistyped(value, "an Int, a number without a fraction and without quotes,")
		case whole < math.MinInt32 || whole > math.MaxInt32:
			c.refuse("is more than an Int holds, which is 32 bits")
		}
		return int64(whole)
	case "Float":
		n, ok := number(value)
		if !ok {
			c.mistyped(value, "a Float, a number without quotes,")
		}
		return n
	case "Boolean":
		if _, ok := value.(bool); !ok {
			c.mistyped(value, "a Boolean, true or false without quotes,")
		}
	case "String":
		if _, ok := value.(string); !ok {
			c.mistyped(value, "a String")
		}
	case "ID":
		return c.id(value)
	}
	return value
}

// id takes a string, or an integer as it is written: it can be longer than an Int.
func (c *coercion) id(value any) any {
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		if text := value.String(); len(text) <= maxDigits && strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == "" {
			return text
		}
	case int64:
		return strconv.FormatInt(value, 10)
	}
	c.mistyped(value, "an ID, a string,")
	return nil
}

// number is a number of JSON or of the document, if it is one that a float holds.
func number(value any) (float64, bool) {
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

// wholeNumber is a number without a fraction; 1.0 is one, as JSON does not tell it from 1.
func wholeNumber(value any) (float64, bool) {
	n, ok := number(value)
	return n, ok && n == math.Trunc(n)
}

// described names the kind of a value, not the value: it can be long, or secret.
func described(value any) string {
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
