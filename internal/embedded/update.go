package embedded

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/truora/minidyn/interpreter/language"
	"github.com/truora/minidyn/server"
)

// errBeyond is the error for update expressions that only the engine executes: updates of elements
// in lists and maps, updates of sets and appends to lists.
var errBeyond = errors.New("the embedded store supports only SET, REMOVE and ADD of numbers, for top-level attributes")

// update is the state of an update expression that is applied to a record.
type update struct {
	names  map[string]string
	values record
	// old is the record before the update, which right sides refer to. next is the updated record.
	old, next record
	// touched has the attributes on the left sides of the expression.
	touched []string
}

// apply applies an update expression with the engine's parser. A new record begins with its key.
//
// It returns errBeyond, a ValidationException for an invalid expression, or a refused error for an
// expression that is invalid for this record.
func (u *update) apply(expression string, key record) error {
	parser := language.NewUpdateParser(language.NewLexer(expression))
	root, ok := parser.ParseUpdateExpression().Expression.(*language.UpdateExpression)
	if len(parser.Errors()) > 0 || !ok {
		return invalid("Invalid UpdateExpression: Syntax error; %s", strings.Join(parser.Errors(), "; "))
	}
	// The parser accepts an empty last clause.
	if last := tokensOf(expression); slices.Contains([]language.TokenType{language.SET, language.REMOVE, language.ADD, language.DELETE}, last[len(last)-1].Type) {
		return invalid("Invalid UpdateExpression: Syntax error; an empty %s clause", last[len(last)-1].Literal)
	}
	u.next = maps.Clone(u.old)
	if u.next == nil {
		u.next = maps.Clone(key)
	}
	for _, e := range root.Expressions {
		action, ok := e.(*language.ActionExpression)
		if !ok {
			return invalid("Invalid UpdateExpression: Syntax error")
		}
		if err := u.act(action, key); err != nil {
			return err
		}
	}
	return nil
}

// act applies one action of a clause.
func (u *update) act(action *language.ActionExpression, key record) error {
	name, err := u.path(action.Left)
	if err != nil {
		return err
	}
	if slices.Contains(u.touched, name) {
		return invalid("Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path: [%s]", name)
	}
	u.touched = append(u.touched, name)
	if key[name] != nil {
		return refused("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", name)
	}
	switch action.Token.Type {
	case language.SET:
		v, err := u.assigned(action.Right)
		if err != nil {
			return err
		}
		u.next[name] = v
	case language.REMOVE:
		delete(u.next, name)
	case language.ADD:
		v, err := u.value(action.Right)
		if err != nil {
			return err
		}
		if v.N == nil {
			return errBeyond
		}
		if old := u.old[name]; old != nil {
			if v, err = arithmetic(old, v, false); err != nil {
				return err
			}
		}
		u.next[name] = v
	default:
		return errBeyond
	}
	return nil
}

// assigned returns the right side of a SET: an operand, or two operands with + or -.
func (u *update) assigned(e language.Expression) (*server.AttributeValue, error) {
	infix, ok := e.(*language.InfixExpression)
	if !ok {
		return u.operand(e)
	}
	left, err := u.operand(infix.Left)
	if err != nil {
		return nil, err
	}
	right, err := u.operand(infix.Right)
	if err != nil {
		return nil, err
	}
	return arithmetic(left, right, infix.Token.Type == language.MINUS)
}

// operand returns a :value, an attribute, or if_not_exists of an attribute and an operand. As in
// DynamoDB, the operand of if_not_exists must be valid even if the attribute exists.
func (u *update) operand(e language.Expression) (*server.AttributeValue, error) {
	switch e := e.(type) {
	case *language.Identifier:
		if e.Value[0] == ':' {
			return u.value(e)
		}
		name, err := u.path(e)
		if err != nil {
			return nil, err
		}
		if v := u.old[name]; v != nil {
			return v, nil
		}
		return nil, refused("The provided expression refers to an attribute that does not exist in the item")
	case *language.IndexExpression:
		return nil, errBeyond
	case *language.CallExpression:
		switch function, _ := e.Function.(*language.Identifier); {
		case function != nil && function.Value == "list_append":
			return nil, errBeyond
		case function == nil || function.Value != "if_not_exists" || len(e.Arguments) != 2:
			return nil, invalid("Invalid UpdateExpression: Invalid function or number of operands")
		}
		name, err := u.path(e.Arguments[0])
		if err != nil {
			return nil, err
		}
		otherwise, err := u.operand(e.Arguments[1])
		if err != nil {
			return nil, err
		}
		if v := u.old[name]; v != nil {
			return v, nil
		}
		return otherwise, nil
	}
	return nil, invalid("Invalid UpdateExpression: Syntax error")
}

// value returns the value of a :placeholder.
func (u *update) value(e language.Expression) (*server.AttributeValue, error) {
	if id, ok := e.(*language.Identifier); ok {
		if v := u.values[id.Value]; v != nil {
			return v, nil
		}
	}
	return nil, invalid("Invalid UpdateExpression: Syntax error; expected a value")
}

// path returns the name of a top-level attribute.
func (u *update) path(e language.Expression) (string, error) {
	switch e := e.(type) {
	case *language.IndexExpression:
		return "", errBeyond
	case *language.Identifier:
		switch e.Value[0] {
		case '#':
			return u.names[e.Value], nil
		case ':':
			return "", invalid("Invalid UpdateExpression: Operator or function requires a document path, not %s", e.Value)
		}
		return e.Value, nil
	}
	return "", invalid("Invalid UpdateExpression: Syntax error; expected a path")
}

// arithmetic adds or subtracts two numbers.
func arithmetic(left, right *server.AttributeValue, minus bool) (*server.AttributeValue, error) {
	if left.N == nil || right.N == nil {
		return nil, refused("An operand in the update expression has an incorrect data type")
	}
	n, err := sum(*left.N, *right.N, minus)
	if err != nil {
		return nil, err
	}
	return &server.AttributeValue{N: &n}, nil
}
