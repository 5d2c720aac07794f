package embedded

import (
	"fmt"
	"slices"
	"strings"
)

// violations collects the parameters of a request that are out of their bounds. DynamoDB reports
// them together, before all other errors of the request.
type violations struct{ found []string }

// error returns a ValidationException if there are violations.
func (v *violations) error() error {
	switch len(v.found) {
	case 0:
		return nil
	case 1:
		return invalid("1 validation error detected: %s", v.found[0])
	}
	return invalid("%d validation errors detected: %s", len(v.found), strings.Join(v.found, "; "))
}

// add adds a violation. value is quoted, unless it is null.
func (v *violations) add(value, field, constraint string) {
	v.found = append(v.found, fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: %s", value, field, constraint))
}

func quote(value string) string { return "'" + value + "'" }

// null adds a violation by a parameter that is missing.
func (v *violations) null(field string) { v.add("null", field, "Member must not be null") }

// table validates the name of a table. It may be an Amazon Resource Name.
func (v *violations) table(name *string) bool {
	if name == nil {
		v.null("tableName")
		return false
	}
	if strings.HasPrefix(*name, "arn:") {
		return true
	}
	v.name(*name, "tableName", 1)
	return len(v.found) == 0
}

// name validates the name of a table or an index.
func (v *violations) name(name, field string, least int) {
	if name != "" && !namePattern.MatchString(name) {
		v.add(quote(name), field, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	}
	if len(name) < least {
		v.add(quote(name), field, fmt.Sprintf("Member must have length greater than or equal to %d", least))
	}
	if len(name) > 255 {
		v.add(quote(name), field, "Member must have length less than or equal to 255")
	}
}

// enum validates a parameter that has a set of values. It may be absent.
func (v *violations) enum(value, field string, values ...string) {
	if value != "" && !slices.Contains(values, value) {
		v.add(quote(value), field, "Member must satisfy enum value set: ["+strings.Join(values, ", ")+"]")
	}
}

// list validates the length of a list that must not be empty, and reports whether it is right.
func (v *violations) list(n, most int, field string, value func() string) bool {
	switch {
	case n == 0:
		v.add(quote(value()), field, "Member must have length greater than or equal to 1")
	case n > most:
		v.add(quote(value()), field, fmt.Sprintf("Member must have length less than or equal to %d", most))
	default:
		return true
	}
	return false
}

func (v *violations) atLeast(value, least int, field string) {
	if value < least {
		v.add(quote(fmt.Sprint(value)), field, fmt.Sprintf("Member must have value greater than or equal to %d", least))
	}
}

func (v *violations) atMost(value, most int, field string) {
	if value > most {
		v.add(quote(fmt.Sprint(value)), field, fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
}

// capacity validates ReturnConsumedCapacity.
func (v *violations) capacity(value string) {
	v.enum(value, "returnConsumedCapacity", "INDEXES", "TOTAL", "NONE")
}

// metrics validates ReturnItemCollectionMetrics.
func (v *violations) metrics(value string) {
	v.enum(value, "returnItemCollectionMetrics", "SIZE", "NONE")
}

// returnValues validates ReturnValues.
func (v *violations) returnValues(value string) {
	v.enum(value, "returnValues", "ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
}

// onFailure validates ReturnValuesOnConditionCheckFailure.
func (v *violations) onFailure(value string) {
	v.enum(value, "returnValuesOnConditionCheckFailure", "ALL_OLD", "NONE")
}
