package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression collects the names and values of the expressions of one write. Every name goes by a
// placeholder: name, status and total are words of DynamoDB's own.
type expression struct {
	names  map[string]string
	values record
}

func (e *expression) name(attribute string) string {
	if e.names == nil {
		e.names = map[string]string{}
	}
	e.names["#"+attribute] = attribute
	return "#" + attribute
}

func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = record{}
	}
	placeholder := ":v" + strconv.Itoa(len(e.values))
	e.values[placeholder] = v
	return placeholder
}

// condition writes a condition into an expression.
type condition func(e *expression) string

// all is the condition that all of them hold.
func all(conditions ...condition) condition {
	return func(e *expression) string {
		texts := make([]string, len(conditions))
		for i, c := range conditions {
			texts[i] = c(e)
		}
		return strings.Join(texts, " AND ")
	}
}

// either is the condition that one of two holds.
func either(a, b condition) condition {
	return func(e *expression) string { return "(" + a(e) + " OR " + b(e) + ")" }
}

// has is the condition that the record has an attribute, lacks that it does not.
func has(attribute string) condition {
	return func(e *expression) string { return "attribute_exists(" + e.name(attribute) + ")" }
}

func lacks(attribute string) condition {
	return func(e *expression) string { return "attribute_not_exists(" + e.name(attribute) + ")" }
}

// present is the condition that there is a record, absent that there is none.
func present(e *expression) string { return has(attrPK)(e) }

func absent(e *expression) string { return lacks(attrPK)(e) }

// is compares an attribute with a value: relation is =, >= or the like.
func is(attribute, relation string, v types.AttributeValue) condition {
	return func(e *expression) string { return e.name(attribute) + " " + relation + " " + e.value(v) }
}

// counted is the condition that the record has a number there.
func counted(attribute string) condition {
	return func(e *expression) string {
		return "attribute_type(" + e.name(attribute) + ", " + e.value(str("N")) + ")"
	}
}

// isCounted tells whether the record has a number there.
func isCounted(r record, attribute string) bool {
	_, ok := r[attribute].(*types.AttributeValueMemberN)
	return ok
}

// still is the condition that the record still has the attributes that it had, each with its value
// or not at all.
func still(before record, attributes ...string) condition {
	return func(e *expression) string {
		texts := []string{present(e)}
		for _, a := range attributes {
			if v, ok := before[a]; ok {
				texts = append(texts, is(a, "=", v)(e))
			} else {
				texts = append(texts, lacks(a)(e))
			}
		}
		return strings.Join(texts, " AND ")
	}
}

// setting is the update expression that makes after of before: attributes that differ are set,
// those that after lacks are removed. Keys are not touched. It is empty where nothing differs.
func (e *expression) setting(before, after record) string {
	var sets, removes []string
	for _, a := range attributeNames(after) {
		if a != attrPK && a != attrSK && !sameValue(before[a], after[a]) {
			sets = append(sets, e.name(a)+" = "+e.value(after[a]))
		}
	}
	for _, a := range attributeNames(before) {
		if _, kept := after[a]; !kept && a != attrPK && a != attrSK {
			removes = append(removes, e.name(a))
		}
	}
	return clauses(sets, removes)
}

// adding is the update expression that adds to numbers. Versions and stock revisions start at 0
// where they are absent; the other numbers have to be there.
func (e *expression) adding(deltas map[string]int) string {
	var sets []string
	for _, a := range slices.Sorted(maps.Keys(deltas)) {
		name := e.name(a)
		switch {
		case a == attrVersion, a == attrStockRevision:
			sets = append(sets, fmt.Sprintf("%s = if_not_exists(%s, %s) + %s", name, name, e.value(num(0)), e.value(num(deltas[a]))))
		case deltas[a] < 0:
			sets = append(sets, fmt.Sprintf("%s = %s - %s", name, name, e.value(num(-deltas[a]))))
		default:
			sets = append(sets, fmt.Sprintf("%s = %s + %s", name, name, e.value(num(deltas[a]))))
		}
	}
	return clauses(sets, nil)
}

// attributeNames are a record's, in order, so that equal writes have equal expressions.
func attributeNames(r record) []string { return slices.Sorted(maps.Keys(r)) }

func clauses(sets, removes []string) string {
	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	return strings.Join(parts, " ")
}

// foreign is the placeholder of an attribute that may be of other software, and be called anything.
func (e *expression) foreign(attribute string) string {
	for short, long := range e.names {
		if long == attribute {
			return short
		}
	}
	short := e.name("a" + strconv.Itoa(len(e.names)))
	e.names[short] = attribute
	return short
}
