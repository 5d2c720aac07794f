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

// Expression collects the names and values of the expressions of one write. Every name goes by a
// placeholder: name, status and total are words of DynamoDB's own.
type Expression struct {
	Names  map[string]string
	Values model.Record
}

func (e *Expression) name(attribute string) string {
	if e.Names == nil {
		e.Names = map[string]string{}
	}
	e.Names["#"+attribute] = attribute
	return "#" + attribute
}

// Value returns the placeholder of a value.
func (e *Expression) Value(v types.AttributeValue) string {
	if e.Values == nil {
		e.Values = model.Record{}
	}
	placeholder := ":v" + strconv.Itoa(len(e.Values))
	e.Values[placeholder] = v
	return placeholder
}

// Condition writes a condition into an expression.
type Condition func(e *Expression) string

// AllOf is the condition that all of them hold.
func AllOf(conditions ...Condition) Condition {
	return func(e *Expression) string {
		texts := make([]string, len(conditions))
		for i, c := range conditions {
			texts[i] = c(e)
		}
		return strings.Join(texts, " AND ")
	}
}

// Either is the condition that one of two holds.
func Either(a, b Condition) Condition {
	return func(e *Expression) string { return "(" + a(e) + " OR " + b(e) + ")" }
}

// Has is the condition that the record has an attribute, lacks that it does not.
func Has(attribute string) Condition {
	return func(e *Expression) string { return "attribute_exists(" + e.name(attribute) + ")" }
}

// Lacks is the condition that a record has no such attribute.
func Lacks(attribute string) Condition {
	return func(e *Expression) string { return "attribute_not_exists(" + e.name(attribute) + ")" }
}

// Present is the condition that there is a record, absent that there is none.
func Present(e *Expression) string { return Has(model.AttrPK)(e) }

// Absent is the condition that there is no record.
func Absent(e *Expression) string { return Lacks(model.AttrPK)(e) }

// Is compares an attribute with a value: relation is =, >= or the like.
func Is(attribute, relation string, v types.AttributeValue) Condition {
	return func(e *Expression) string { return e.name(attribute) + " " + relation + " " + e.Value(v) }
}

// Counted is the condition that the record has a number there.
func Counted(attribute string) Condition {
	return func(e *Expression) string {
		return "attribute_type(" + e.name(attribute) + ", " + e.Value(model.Str("N")) + ")"
	}
}

// IsCounted reports whether the record has a number there.
func IsCounted(r model.Record, attribute string) bool {
	_, ok := r[attribute].(*types.AttributeValueMemberN)
	return ok
}

// Still is the condition that the record still has the attributes that it had, each with its value
// or not at all.
func Still(before model.Record, attributes ...string) Condition {
	return func(e *Expression) string {
		texts := []string{Present(e)}
		for _, a := range attributes {
			if v, ok := before[a]; ok {
				texts = append(texts, Is(a, "=", v)(e))
			} else {
				texts = append(texts, Lacks(a)(e))
			}
		}
		return strings.Join(texts, " AND ")
	}
}

// Setting is the update expression that makes after of before: attributes that differ are set,
// those that after lacks are removed. Keys are not touched. It is empty where nothing differs.
func (e *Expression) Setting(before, after model.Record) string {
	var sets, removes []string
	for _, a := range AttributeNames(after) {
		if a != model.AttrPK && a != model.AttrSK && !model.SameValue(before[a], after[a]) {
			sets = append(sets, e.name(a)+" = "+e.Value(after[a]))
		}
	}
	for _, a := range AttributeNames(before) {
		if _, kept := after[a]; !kept && a != model.AttrPK && a != model.AttrSK {
			removes = append(removes, e.name(a))
		}
	}
	return Clauses(sets, removes)
}

// Adding is the update expression that adds to numbers. Versions and stock revisions start at 0
// where they are absent; the other numbers have to be there.
func (e *Expression) Adding(deltas map[string]int) string {
	var sets []string
	for _, a := range slices.Sorted(maps.Keys(deltas)) {
		switch {
		case a == model.AttrVersion, a == model.AttrStockRevision:
			sets = append(sets, e.addingFrom0(a, model.Num(deltas[a])))
		case deltas[a] < 0:
			sets = append(sets, fmt.Sprintf("%s = %s - %s", e.name(a), e.name(a), e.Value(model.Num(-deltas[a]))))
		default:
			sets = append(sets, fmt.Sprintf("%s = %s + %s", e.name(a), e.name(a), e.Value(model.Num(deltas[a]))))
		}
	}
	return Clauses(sets, nil)
}

// Counting is the update expression that adds to numbers, which start at 0 where they are absent,
// and sets the other attributes of a record.
func (e *Expression) Counting(deltas, others model.Record) string {
	var sets []string
	for _, a := range AttributeNames(deltas) {
		sets = append(sets, e.addingFrom0(a, deltas[a]))
	}
	for _, a := range AttributeNames(others) {
		if deltas[a] == nil && a != model.AttrPK && a != model.AttrSK {
			sets = append(sets, e.name(a)+" = "+e.Value(others[a]))
		}
	}
	return Clauses(sets, nil)
}

func (e *Expression) addingFrom0(attribute string, delta types.AttributeValue) string {
	name := e.name(attribute)
	return fmt.Sprintf("%s = if_not_exists(%s, %s) + %s", name, name, e.Value(model.Num(0)), e.Value(delta))
}

// AttributeNames are a record's, in order, so that equal writes have equal expressions.
func AttributeNames(r model.Record) []string { return slices.Sorted(maps.Keys(r)) }

// Clauses joins the SET and REMOVE clauses of an update.
func Clauses(sets, removes []string) string {
	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	return strings.Join(parts, " ")
}

// Foreign is the placeholder of an attribute that may be of other software, and be called anything.
func (e *Expression) Foreign(attribute string) string {
	for short, long := range e.Names {
		if long == attribute {
			return short
		}
	}
	short := e.name("a" + strconv.Itoa(len(e.Names)))
	e.Names[short] = attribute
	return short
}
