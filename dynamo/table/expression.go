package table

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Expression collects the attribute names and values in the expressions of one write. The
// expressions contain a placeholder for each name, because some names, such as "status", are
// reserved words of DynamoDB.
type Expression struct {
	Names  map[string]string
	Values model.Record
}

// namePlaceholder adds an attribute name to e and returns its placeholder.
func (e *Expression) namePlaceholder(attribute string) string {
	if e.Names == nil {
		e.Names = map[string]string{}
	}
	e.Names["#"+attribute] = attribute
	return "#" + attribute
}

// ValuePlaceholder adds a value to e and returns its placeholder.
func (e *Expression) ValuePlaceholder(v types.AttributeValue) string {
	if e.Values == nil {
		e.Values = model.Record{}
	}
	placeholder := ":v" + strconv.Itoa(len(e.Values))
	e.Values[placeholder] = v
	return placeholder
}

// Condition returns the text of a condition expression. It adds the attribute names and values of
// the condition to e.
type Condition func(e *Expression) string

// AllOf returns a condition that is true if all the given conditions are true.
func AllOf(conditions ...Condition) Condition {
	return func(e *Expression) string {
		texts := make([]string, len(conditions))
		for i, c := range conditions {
			texts[i] = c(e)
		}
		return strings.Join(texts, " AND ")
	}
}

// AnyOf returns a condition that is true if a or b is true.
func AnyOf(a, b Condition) Condition {
	return func(e *Expression) string { return "(" + a(e) + " OR " + b(e) + ")" }
}

// AttributeExists is the condition that the record has the attribute.
func AttributeExists(attribute string) Condition {
	return func(e *Expression) string { return "attribute_exists(" + e.namePlaceholder(attribute) + ")" }
}

// AttributeNotExists is the condition that the record lacks the attribute or does not exist.
func AttributeNotExists(attribute string) Condition {
	return func(e *Expression) string { return "attribute_not_exists(" + e.namePlaceholder(attribute) + ")" }
}

// RecordExists is the condition that the record exists.
func RecordExists(e *Expression) string { return AttributeExists(model.AttrPK)(e) }

// RecordNotExists is the condition that the record does not exist.
func RecordNotExists(e *Expression) string { return AttributeNotExists(model.AttrPK)(e) }

// CompareAttribute is a condition that compares the value of an attribute with v. relation is the
// comparison operator, such as "=" or ">=".
func CompareAttribute(attribute, relation string, v types.AttributeValue) Condition {
	return func(e *Expression) string {
		return e.namePlaceholder(attribute) + " " + relation + " " + e.ValuePlaceholder(v)
	}
}

// AttributeIsNumber is the condition that the attribute is a number.
func AttributeIsNumber(attribute string) Condition {
	return func(e *Expression) string {
		return "attribute_type(" + e.namePlaceholder(attribute) + ", " + e.ValuePlaceholder(model.Str("N")) + ")"
	}
}

// RecordHasNumber reports whether the record r has the attribute and the attribute is a number.
func RecordHasNumber(r model.Record, attribute string) bool {
	_, ok := r[attribute].(*types.AttributeValueMemberN)
	return ok
}

// AttributesUnchanged is the condition that the record exists, and that the given attributes have
// not changed. The parameter before contains their old values. If it lacks an attribute, the record
// must lack it, too.
func AttributesUnchanged(before model.Record, attributes ...string) Condition {
	return func(e *Expression) string {
		texts := []string{RecordExists(e)}
		for _, a := range attributes {
			if v, ok := before[a]; ok {
				texts = append(texts, CompareAttribute(a, "=", v)(e))
			} else {
				texts = append(texts, AttributeNotExists(a)(e))
			}
		}
		return strings.Join(texts, " AND ")
	}
}

// UpdateRecord returns the update expression that changes the old version of a record (before) to
// the new version (after). It ignores the attributes pk and sk. If the versions are equal, the
// result is empty.
func (e *Expression) UpdateRecord(before, after model.Record) string {
	var sets, removes []string
	for _, a := range SortedAttributeNames(after) {
		if a != model.AttrPK && a != model.AttrSK && !model.EqualValues(before[a], after[a]) {
			sets = append(sets, e.namePlaceholder(a)+" = "+e.ValuePlaceholder(after[a]))
		}
	}
	for _, a := range SortedAttributeNames(before) {
		if _, kept := after[a]; !kept && a != model.AttrPK && a != model.AttrSK {
			removes = append(removes, e.namePlaceholder(a))
		}
	}
	return UpdateExpression(sets, removes)
}

// Increment returns the update expression that adds the values in deltas to number attributes. If
// a revision is missing, it counts as 0 (model.IsRevision). If any other attribute is missing, DynamoDB
// rejects the update.
func (e *Expression) Increment(deltas map[string]int) string {
	var sets []string
	for _, a := range slices.Sorted(maps.Keys(deltas)) {
		switch {
		case model.IsRevision(a):
			sets = append(sets, e.incrementFromZero(a, model.Num(deltas[a])))
		case deltas[a] < 0:
			sets = append(sets, fmt.Sprintf("%s = %s - %s", e.namePlaceholder(a), e.namePlaceholder(a), e.ValuePlaceholder(model.Num(-deltas[a]))))
		default:
			sets = append(sets, fmt.Sprintf("%s = %s + %s", e.namePlaceholder(a), e.namePlaceholder(a), e.ValuePlaceholder(model.Num(deltas[a]))))
		}
	}
	return UpdateExpression(sets, nil)
}

// IncrementAndSet returns the update expression that adds the values in deltas to number
// attributes. A missing number counts as 0. The expression also sets the attributes in the
// parameter others, except pk, sk and the attributes that deltas contains.
func (e *Expression) IncrementAndSet(deltas, others model.Record) string {
	var sets []string
	for _, a := range SortedAttributeNames(deltas) {
		sets = append(sets, e.incrementFromZero(a, deltas[a]))
	}
	for _, a := range SortedAttributeNames(others) {
		if deltas[a] == nil && a != model.AttrPK && a != model.AttrSK {
			sets = append(sets, e.namePlaceholder(a)+" = "+e.ValuePlaceholder(others[a]))
		}
	}
	return UpdateExpression(sets, nil)
}

// incrementFromZero returns a SET action that adds delta to a number attribute. If the attribute is
// missing, it counts as 0.
func (e *Expression) incrementFromZero(attribute string, delta types.AttributeValue) string {
	name := e.namePlaceholder(attribute)
	return fmt.Sprintf("%s = if_not_exists(%s, %s) + %s", name, name, e.ValuePlaceholder(model.Num(0)), e.ValuePlaceholder(delta))
}

// Add returns the end of an update expression, which adds the values in deltas to number attributes. A
// missing number counts as 0.
func (e *Expression) Add(deltas map[string]int) string {
	var adds []string
	for _, a := range slices.Sorted(maps.Keys(deltas)) {
		adds = append(adds, e.namePlaceholder(a)+" "+e.ValuePlaceholder(model.Num(deltas[a])))
	}
	return " ADD " + strings.Join(adds, ", ")
}

// SortedAttributeNames returns the names of a record's attributes in sorted order. Writes with the
// same attributes therefore have the same expression.
func SortedAttributeNames(r model.Record) []string { return slices.Sorted(maps.Keys(r)) }

// UpdateExpression returns the update expression with the given SET and REMOVE actions.
func UpdateExpression(sets, removes []string) string {
	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	return strings.Join(parts, " ")
}

// ExternalPlaceholder adds an attribute name to e and returns its placeholder. A new placeholder
// contains a number instead of the name. Other software may use names with characters that are not
// allowed in placeholders.
func (e *Expression) ExternalPlaceholder(attribute string) string {
	for placeholder, name := range e.Names {
		if name == attribute {
			return placeholder
		}
	}
	placeholder := e.namePlaceholder("a" + strconv.Itoa(len(e.Names)))
	e.Names[placeholder] = attribute
	return placeholder
}
