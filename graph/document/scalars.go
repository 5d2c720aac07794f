package document

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// CoerceScalar validates an input value of a scalar and converts it to the form in which resolvers
// receive it. A string is a Go string, a number is a json.Number, and other values have the types of
// package encoding/json. The text of an error continues a sentence whose subject is the value, and
// contains no names of the schema.
type CoerceScalar = func(value any) (any, error)

// scalars contains the coercions of all scalars, by name. Literals in documents and the values of
// variables are both checked with it. A scalar that is missing accepts all values.
type scalars map[string]CoerceScalar

// newScalars returns the coercions of GraphQL's built-in scalars and of custom scalars.
func newScalars(custom map[string]CoerceScalar) scalars {
	all := scalars{"Int": coerceInt, "Float": coerceFloat, "Boolean": coerceBoolean, "String": coerceString, "ID": coerceID}
	maps.Copy(all, custom)
	return all
}

// typeError is the error for a value of a built-in scalar that has another type.
type typeError struct {
	value    any
	expected string
}

func (e *typeError) Error() string { return "is " + describeKind(e.value) + ", expected " + e.expected }

// withoutType returns an error that names no type of the schema, if hideSchema is true. Otherwise,
// it returns err.
func withoutType(err error, hideSchema bool) error {
	if wrong := (*typeError)(nil); hideSchema && errors.As(err, &wrong) {
		return &typeError{wrong.value, "another type"}
	}
	return err
}

func coerceInt(value any) (any, error) {
	whole, ok := wholeNumber(value)
	switch {
	case !ok:
		return nil, &typeError{value, "an Int, which is a number without a fraction and without quotes"}
	case whole < math.MinInt32 || whole > math.MaxInt32:
		return nil, errors.New("does not fit into an Int, which has 32 bits: use -2147483648 to 2147483647")
	}
	return int64(whole), nil
}

func coerceFloat(value any) (any, error) {
	n, ok := toFloat(value)
	if !ok {
		return nil, &typeError{value, "a Float, which is a number without quotes"}
	}
	return n, nil
}

func coerceBoolean(value any) (any, error) {
	if _, ok := value.(bool); !ok {
		return nil, &typeError{value, "a Boolean, which is true or false without quotes"}
	}
	return value, nil
}

func coerceString(value any) (any, error) {
	if _, ok := value.(string); !ok {
		return nil, &typeError{value, "a String"}
	}
	return value, nil
}

// maxIDDigits is the maximum length of an ID that a client sends as a number.
const maxIDDigits = 64

// coerceID coerces a string or an integer to an ID. It keeps all digits of an integer, even if the
// integer has more than 32 bits.
func coerceID(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number:
		if text := value.String(); len(text) <= maxIDDigits && strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == "" {
			return text, nil
		}
	}
	return nil, &typeError{value, "an ID, a string"}
}

// toFloat converts a number from the request's JSON or from the document. It returns false if the
// value is not a number, or if it exceeds the range of a float64.
func toFloat(value any) (float64, bool) {
	switch value := value.(type) {
	case json.Number:
		n, err := value.Float64()
		return n, err == nil
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

// LiteralValue converts a literal without variables to the types in which the same value arrives in
// JSON. A name without quotes becomes a string, as in other GraphQL servers.
func LiteralValue(v *ast.Value) any {
	switch v.Kind {
	case ast.NullValue:
		return nil
	case ast.IntValue, ast.FloatValue:
		return json.Number(v.Raw)
	case ast.BooleanValue:
		return v.Raw == "true"
	case ast.ListValue:
		list := make([]any, len(v.Children))
		for i, child := range v.Children {
			list[i] = LiteralValue(child.Value)
		}
		return list
	case ast.ObjectValue:
		object := make(map[string]any, len(v.Children))
		for _, child := range v.Children {
			object[child.Name] = LiteralValue(child.Value)
		}
		return object
	default:
		return v.Raw
	}
}

// coerceLiteral coerces a literal. If the literal is null, or its type is not a scalar with a
// coercion, checked is false. The elements of a list are coerced separately.
func (s scalars) coerceLiteral(v *ast.Value) (coerced any, checked bool, err error) {
	if v.Definition == nil || v.ExpectedType == nil || v.Kind == ast.Variable || v.Kind == ast.NullValue || v.Kind == ast.ListValue && v.ExpectedType.Elem != nil {
		return nil, false, nil
	}
	coerce, ok := s[v.Definition.Name]
	if !ok {
		return nil, false, nil
	}
	coerced, err = coerce(LiteralValue(v))
	return coerced, true, err
}

// numberLiteralsRule replaces the literal number of a scalar by a literal string, if the scalar's
// values are strings, such as IDs. Otherwise, execution would convert the number to 64 bits. This
// rule must precede ValuesOfCorrectType, and reports no errors.
func (s scalars) numberLiteralsRule() core.Rule {
	return core.Rule{RuleFunc: func(events *core.Events, _ core.AddErrFunc) {
		events.OnValue(func(_ *core.Walker, v *ast.Value) {
			if v.Kind != ast.IntValue && v.Kind != ast.FloatValue {
				return
			}
			coerced, checked, err := s.coerceLiteral(v)
			if text, ok := coerced.(string); ok && err == nil {
				v.Kind, v.Raw = ast.StringValue, text
			} else if _, err := v.Value(nil); err != nil && !checked {
				v.Kind = ast.StringValue // the number is part of a value that can have any type
			}
		})
	}}
}

// scalarLiterals is the name of the rule that scalars.literalsRule returns.
const scalarLiterals = "ScalarLiterals"

// literalsRule returns a rule that checks the literals of scalars with their coercions. gqlparser's
// ValuesOfCorrectType does not check the range of an Int, the literals of custom scalars, and an
// empty object in the place of a scalar or an enum.
func (s scalars) literalsRule(hideSchema bool) core.Rule {
	return core.Rule{Name: scalarLiterals, RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		check := literalCheck{scalars: s, hideSchema: hideSchema, add: add}
		events.OnField(func(_ *core.Walker, f *ast.Field) { check.arguments(f.Arguments) })
		events.OnDirective(func(_ *core.Walker, d *ast.Directive) { check.arguments(d.Arguments) })
		events.OnOperation(func(_ *core.Walker, o *ast.OperationDefinition) {
			for _, d := range o.VariableDefinitions {
				if d.DefaultValue != nil {
					check.value("variable", d.Variable, d.DefaultValue)
				}
			}
		})
	}}
}

// literalCheck checks the literals of a document. Its recursion is limited, because the size of a
// document is checked first.
type literalCheck struct {
	scalars    scalars
	hideSchema bool
	add        core.AddErrFunc
}

func (c literalCheck) arguments(arguments ast.ArgumentList) {
	for _, a := range arguments {
		c.value("argument", a.Name, a.Value)
	}
}

// value checks a literal and the values that it contains. kind and name describe the argument,
// input field or variable for errors.
func (c literalCheck) value(kind, name string, v *ast.Value) {
	_, checked, err := c.scalars.coerceLiteral(v)
	if !checked && v.Kind == ast.ObjectValue && v.Definition != nil && v.Definition.Kind == ast.Enum {
		err = errors.New("is an object: use a name without quotes")
	}
	if err != nil {
		c.add(core.Message("%s %q %s", kind, name, withoutType(err, c.hideSchema)), core.At(v.Position))
		return
	}
	for _, child := range v.Children {
		if v.Kind == ast.ObjectValue {
			kind, name = "argument", child.Name
		}
		c.value(kind, name, child.Value)
	}
}

// scalar coerces the value of a scalar within a variable.
func (c *coercer) scalar(name string, value any) any {
	coerce, ok := c.scalars[name]
	if !ok {
		return value
	}
	coerced, err := coerce(value)
	if err != nil {
		c.addError("%s", errcode.Excerpt(withoutType(err, c.hideSchema).Error(), maxMessage))
	}
	return coerced
}
