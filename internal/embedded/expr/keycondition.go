package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

// KeyAttribute is an attribute of a key and its type.
type KeyAttribute struct {
	Name string
	Kind attr.Kind
}

// KeyRange is a parsed key condition: a partition, and the beginning and end of the sort keys.
type KeyRange struct {
	Partition attr.Value
	// Prefix is the prefix of begins_with, nil without begins_with.
	Prefix *attr.Value
	// Low and High are the bounds, nil without a bound.
	Low, High         *attr.Value
	LowOpen, HighOpen bool // LowOpen and HighOpen report whether the bounds are excluded.
}

var mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// ParseKeyCondition parses a key condition for a table's or index's key.
func ParseKeyCondition(text string, p *Placeholders, key []KeyAttribute) (*KeyRange, error) {
	s, err := newParser(KeyCondition, text, p)
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
	conditions := map[string]node{}
	count := 0
	if err := s.split(root, func(name string, n node) error {
		if count++; conditions[name] != nil {
			return s.errorf("KeyConditionExpressions must only contain one condition per key")
		}
		conditions[name] = n
		return nil
	}); err != nil {
		return nil, err
	}
	if count > len(key) && count > 2 {
		return nil, fmt.Errorf("The number of query conditions (%d) exceeds the number of key attributes defined in the schema (%d)", count, len(key))
	}
	r := &KeyRange{}
	for i, k := range key {
		n := conditions[k.Name]
		if n == nil {
			if i == 0 || len(conditions) > 0 {
				return nil, fmt.Errorf("Query condition missed key schema element: %s", k.Name)
			}
			continue
		}
		delete(conditions, k.Name)
		if err := r.add(n, k, i == 0); err != nil {
			return nil, err
		}
		if i == 0 && len(key) == 1 && len(conditions) > 0 {
			return nil, errors.New("Query key condition not supported")
		}
	}
	return r, nil
}

// split calls add for every condition on an attribute.
func (s *parser) split(n node, add func(name string, n node) error) error {
	operator := func(name string) error {
		return s.errorf("Invalid operator used in KeyConditionExpression: %s", name)
	}
	var operands []operand
	switch n := n.(type) {
	case group:
		return s.split(n.node, add)
	case and:
		if err := s.split(n.a, add); err != nil {
			return err
		}
		return s.split(n.b, add)
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
			n = compare{mirrored[n.operator], n.b, n.a}
		}
		return s.attributeCondition(operands, func(name string) error { return add(name, n) })
	case between:
		operands = []operand{n.a, n.low, n.high}
	case function:
		if n.name != "begins_with" {
			return operator(n.name)
		}
		operands = n.args
	}
	return s.attributeCondition(operands, func(name string) error { return add(name, n) })
}

// attributeCondition verifies that the first operand is an attribute and the others are values.
func (s *parser) attributeCondition(operands []operand, add func(name string) error) error {
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

// add adds the condition on one attribute of the key.
func (r *KeyRange) add(n node, key KeyAttribute, partition bool) error {
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
			return errors.New("One or more parameter values were invalid: Condition parameter type does not match schema type")
		}
		if v.Text == "" {
			return EmptyKey(key)
		}
		if !partition && v.Size() > MaxSortKey {
			return ErrLongSortKey
		}
		found[i] = &v
	}
	c, isCompare := n.(compare)
	if partition {
		if !isCompare || c.operator != "=" {
			return errors.New("Query key condition not supported")
		}
		r.Partition = *found[0]
		return nil
	}
	switch {
	case isCompare && c.operator == "=":
		r.Low, r.High = found[0], found[0]
	case isCompare && strings.HasPrefix(c.operator, "<"):
		r.High, r.HighOpen = found[0], c.operator == "<"
	case isCompare:
		r.Low, r.LowOpen = found[0], c.operator == ">"
	case len(found) == 2:
		r.Low, r.High = found[0], found[1]
	default:
		r.Prefix = found[0]
	}
	return nil
}

// The maximum sizes of keys in bytes.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	MaxPartitionKey = 2048
	MaxSortKey      = 1024
)

// Errors for values of keys that exceed the maximum sizes.
var (
	ErrLongPartitionKey = errors.New("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	ErrLongSortKey      = errors.New("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
)

// EmptyKey returns the error for an empty value of a key's attribute.
func EmptyKey(key KeyAttribute) error {
	kind := "string"
	if key.Kind == attr.Binary {
		kind = "binary"
	}
	return fmt.Errorf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, key.Name)
}
