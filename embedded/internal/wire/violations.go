package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Violations collects the invalid parameters of a request. DynamoDB reports all of them in one
// error, before it reports any other error of the request.
type Violations struct{ found []string }

// Err returns a ValidationException that lists the violations, or nil if there are no violations.
func (v *Violations) Err() error {
	switch len(v.found) {
	case 0:
		return nil
	case 1:
		return Invalid("1 validation error detected: %s", v.found[0])
	}
	return Invalid("%d validation errors detected: %s", len(v.found), strings.Join(v.found, "; "))
}

// Add adds a violation: a parameter does not satisfy a constraint. field is the name of the
// parameter. value is its value, quoted with Quote, or null without quotes.
func (v *Violations) Add(value, field, constraint string) {
	v.found = append(v.found, fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: %s", value, field, constraint))
}

// AddMessage adds a violation with a complete message. Use it if Add cannot produce this message.
func (v *Violations) AddMessage(message string) { v.found = append(v.found, message) }

// Found reports whether there are violations.
func (v *Violations) Found() bool { return len(v.found) > 0 }

// Quote puts a value in single quotes, as DynamoDB's messages do.
func Quote(value string) string { return "'" + value + "'" }

// AddMissing adds a violation: the parameter field is missing.
func (v *Violations) AddMissing(field string) { v.Add("null", field, "Member must not be null") }

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

// CheckTableName validates the name or Amazon Resource Name of a table, and reports whether it is
// valid. After an earlier violation, the result can be false for a valid name.
func (v *Violations) CheckTableName(name *string) bool {
	if name == nil {
		v.AddMissing("tableName")
		return false
	}
	if strings.HasPrefix(*name, "arn:") {
		return true
	}
	v.CheckName(*name, "tableName", 1)
	return len(v.found) == 0
}

// CheckName validates the name of a table or an index. least is the minimum length of the name.
func (v *Violations) CheckName(name, field string, least int) {
	if name != "" && !namePattern.MatchString(name) {
		v.Add(Quote(name), field, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	}
	v.CheckLength(name, field, least)
}

// CheckLength validates the length of a name. least is its minimum length.
func (v *Violations) CheckLength(name, field string, least int) {
	if len(name) < least {
		v.Add(Quote(name), field, fmt.Sprintf("Member must have length greater than or equal to %d", least))
	}
	if len(name) > 255 {
		v.Add(Quote(name), field, "Member must have length less than or equal to 255")
	}
}

// CheckEnum validates a parameter that must have one of the given values. The parameter is
// optional: an empty value means that it is absent.
func (v *Violations) CheckEnum(value, field string, values ...string) {
	if value != "" && !slices.Contains(values, value) {
		v.Add(Quote(value), field, "Member must satisfy enum value set: ["+strings.Join(values, ", ")+"]")
	}
}

// CheckListLength reports whether a list of length n has from 1 to most elements. If not, it adds a
// violation. The function value returns the list in the notation of error messages.
func (v *Violations) CheckListLength(n, most int, field string, value func() string) bool {
	switch {
	case n == 0:
		v.Add(Quote(value()), field, "Member must have length greater than or equal to 1")
	case n > most:
		v.Add(Quote(value()), field, fmt.Sprintf("Member must have length less than or equal to %d", most))
	default:
		return true
	}
	return false
}

// AtLeast adds a violation if value is less than least.
func (v *Violations) AtLeast(value, least int, field string) {
	if value < least {
		v.Add(Quote(fmt.Sprint(value)), field, fmt.Sprintf("Member must have value greater than or equal to %d", least))
	}
}

// AtMost adds a violation if value is greater than most.
func (v *Violations) AtMost(value, most int, field string) {
	if value > most {
		v.Add(Quote(fmt.Sprint(value)), field, fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
}

// CheckReturnCapacity validates ReturnConsumedCapacity.
func (v *Violations) CheckReturnCapacity(value string) {
	v.CheckEnum(value, "returnConsumedCapacity", "INDEXES", "TOTAL", "NONE")
}

// CheckReturnMetrics validates ReturnItemCollectionMetrics.
func (v *Violations) CheckReturnMetrics(value string) {
	v.CheckEnum(value, "returnItemCollectionMetrics", "SIZE", "NONE")
}

// CheckReturnValues validates ReturnValues.
func (v *Violations) CheckReturnValues(value string) {
	v.CheckEnum(value, "returnValues", "ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
}

// CheckReturnOnFailure validates ReturnValuesOnConditionCheckFailure.
func (v *Violations) CheckReturnOnFailure(value string) {
	v.CheckEnum(value, "returnValuesOnConditionCheckFailure", "ALL_OLD", "NONE")
}

// Parameter is a parameter of a request. Set reports whether the request contains the parameter.
type Parameter struct {
	Name string
	Set  bool
}

// CheckLegacy returns an error if the request contains a legacy parameter. The list old contains
// DynamoDB's legacy parameters. The list expressions contains the parameters that replace them.
func CheckLegacy(old, expressions []Parameter) error {
	names := func(from []Parameter) string {
		var set []string
		for _, p := range from {
			if p.Set {
				set = append(set, p.Name)
			}
		}
		return strings.Join(set, ", ")
	}
	switch {
	case names(old) == "":
		return nil
	case names(expressions) != "":
		return Invalid("Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}", names(old), names(expressions))
	}
	return Invalid("The legacy parameters {%s} are not supported: use expressions", names(old))
}
