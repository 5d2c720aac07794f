package expr

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// KeyAttribute is one attribute in the key of a table or index.
type KeyAttribute struct {
	Name string
	Kind attr.Kind
	Sort bool // Sort reports whether the attribute belongs to the sort key
}

// KeyRange is the range of keys that a key condition selects. It consists of one partition, and
// optionally of bounds for the sort key.
type KeyRange struct {
	// Partition contains the values of the partition key. Equal contains the values of the sort key
	// attributes with equality conditions. The other fields contain the condition on the sort key
	// attribute that follows.
	Partition, Equal []attr.Value
	// Prefix is the operand of begins_with, or nil if the key condition does not use begins_with.
	Prefix *attr.Value
	// Low and High are the lower and upper bounds. A bound that does not exist is nil.
	Low, High         *attr.Value
	LowOpen, HighOpen bool // LowOpen and HighOpen report whether the range excludes its bounds.
}

var mirroredOperators = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// KeyExpression is a parsed key condition.
type KeyExpression struct {
	conditions map[string]node // conditions maps each attribute name to its condition
	count      int
}

// ParseKeyCondition parses a key condition.
func ParseKeyCondition(text string, p *Placeholders) (*KeyExpression, error) {
	s, err := newParser(KeyConditionExpression, text, p)
	if err != nil {
		return nil, err
	}
	root, err := s.or()
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		return nil, err
	}
	k := &KeyExpression{conditions: map[string]node{}}
	return k, s.splitKeyConditions(root, func(name string, n node) error {
		if k.count++; k.conditions[name] != nil {
			return s.errorf("KeyConditionExpressions must only contain one condition per key")
		}
		k.conditions[name] = n
		return nil
	})
}

// KeyRange returns the range of keys that the key condition selects. key contains the key
// attributes of the table or index.
func (e *KeyExpression) KeyRange(key []KeyAttribute) (*KeyRange, error) {
	if e.count > len(key) && e.count > 2 {
		return nil, fmt.Errorf("The number of query conditions (%d) exceeds the number of key attributes defined in the schema (%d)", e.count, len(key))
	}
	others := maps.Clone(e.conditions) // the conditions on attributes that are not in the key
	for _, k := range key {
		delete(others, k.Name)
	}
	r := &KeyRange{}
	var open []string // the sort key attributes without an equality condition
	for _, k := range key {
		n := e.conditions[k.Name]
		switch {
		case n == nil && (!k.Sort || len(others) > 0):
			return nil, fmt.Errorf("Query condition missed key schema element: %s", k.Name)
		case n == nil:
			open = append(open, k.Name)
			continue
		case len(open) > 0:
			return nil, fmt.Errorf("RANGE key attributes %s must have equality conditions specified in the query because a condition is present on key attribute %s", strings.Join(open, ", "), k.Name)
		}
		equal, err := r.addCondition(n, k)
		if err != nil {
			return nil, err
		}
		if !equal {
			open = append(open, k.Name)
		}
	}
	if len(others) > 0 {
		return nil, errors.New("Query key condition not supported")
	}
	return r, nil
}

// splitKeyConditions splits a key condition at each AND, and calls add for the condition on each
// attribute.
func (s *parser) splitKeyConditions(n node, add func(name string, n node) error) error {
	operator := func(name string) error {
		return s.errorf("Invalid operator used in KeyConditionExpression: %s", name)
	}
	var operands []operand
	switch n := n.(type) {
	case group:
		return s.splitKeyConditions(n.node, add)
	case and:
		if err := s.splitKeyConditions(n.a, add); err != nil {
			return err
		}
		return s.splitKeyConditions(n.b, add)
	case or:
		return operator("OR")
	case not:
		return operator("NOT")
	case in:
		return operator("IN")
	case compare:
		if n.operator == "<>" {
			return operator("<>")
		}
		operands = []operand{n.a, n.b}
		if _, reversed := n.a.(*literal); reversed {
			operands = []operand{n.b, n.a}
			n = compare{mirroredOperators[n.operator], n.b, n.a}
		}
		return s.checkKeyCondition(operands, func(name string) error { return add(name, n) })
	case between:
		operands = []operand{n.a, n.low, n.high}
	case function:
		if n.name != "begins_with" {
			return operator(n.name)
		}
		operands = n.args
	}
	return s.checkKeyCondition(operands, func(name string) error { return add(name, n) })
}

// checkKeyCondition verifies that the first operand is a top-level attribute and the other
// operands are values. Then it calls add with the attribute's name.
func (s *parser) checkKeyCondition(operands []operand, add func(name string) error) error {
	path, ok := operands[0].(Path)
	if _, size := operands[0].(sizeOf); size {
		return s.errorf("KeyConditionExpressions cannot contain nested operations")
	}
	if !ok {
		return s.errorf("Invalid condition in KeyConditionExpression: No key attribute specified")
	}
	if len(path) > 1 {
		return s.errorf("KeyConditionExpressions cannot have conditions on nested attributes")
	}
	for _, o := range operands[1:] {
		if _, ok := o.(*literal); ok {
			continue
		}
		if _, size := o.(sizeOf); size {
			return s.errorf("KeyConditionExpressions cannot contain nested operations")
		}
		return s.errorf("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
	}
	return add(path[0].Name)
}

// addCondition adds the condition on one key attribute to the range. equal reports whether the
// condition is an equality condition.
func (r *KeyRange) addCondition(n node, key KeyAttribute) (equal bool, _ error) {
	var values []operand
	switch n := n.(type) {
	case compare:
		values = []operand{n.b}
	case between:
		values = []operand{n.low, n.high}
	case function:
		values = n.args[1:]
	}
	found := make([]*attr.Value, len(values))
	for i, o := range values {
		v := o.(*literal).Value
		if v.Kind != key.Kind {
			return false, errors.New("One or more parameter values were invalid: Condition parameter type does not match schema type")
		}
		if v.Text == "" {
			return false, EmptyKeyError(key)
		}
		if key.Sort && v.Size() > MaxSortKeyBytes {
			return false, ErrLongSortKey
		}
		found[i] = &v
	}
	c, isCompare := n.(compare)
	switch {
	case !key.Sort && (!isCompare || c.operator != "="):
		return false, errors.New("Query key condition not supported")
	case !key.Sort:
		r.Partition = append(r.Partition, *found[0])
	case isCompare && c.operator == "=":
		r.Equal = append(r.Equal, *found[0])
	case isCompare && strings.HasPrefix(c.operator, "<"):
		r.High, r.HighOpen = found[0], c.operator == "<"
	case isCompare:
		r.Low, r.LowOpen = found[0], c.operator == ">"
	case len(found) == 2:
		r.Low, r.High = found[0], found[1]
	default:
		r.Prefix = found[0]
	}
	return isCompare && c.operator == "=", nil
}

// The maximum sizes of keys in bytes.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	MaxPartitionKeyBytes = 2048
	MaxSortKeyBytes      = 1024
)

// The errors for key values that exceed the maximum sizes.
var (
	ErrLongPartitionKey = errors.New("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	ErrLongSortKey      = errors.New("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
)

// EmptyKeyError returns the error for a key attribute with an empty value.
func EmptyKeyError(key KeyAttribute) error {
	kind := "string"
	if key.Kind == attr.Binary {
		kind = "binary"
	}
	return fmt.Errorf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, key.Name)
}
