// Package scalar marshals and unmarshals the scalars of the GraphQL schema. Within the module, it
// imports only commerce.
package scalar

import (
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
)

// dateTimeLayout is the layout of a DateTime in responses: RFC 3339 in UTC, with milliseconds. The
// time in an order ID also has milliseconds.
const dateTimeLayout = "2006-01-02T15:04:05.000Z"

// MarshalDateTime marshals a DateTime.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(dateTimeLayout)))
	})
}

// UnmarshalDateTime unmarshals a DateTime. It returns the zero time for null. In a range, the zero
// time means that the range has no start or no end.
//
// It returns a commerce.InvalidError if v is neither null nor a string in RFC 3339 format.
func UnmarshalDateTime(v any) (time.Time, error) {
	return unmarshalTime(v, "a date with a time", "2026-02-01T09:30:00Z", func(s string) (time.Time, error) {
		t, err := time.Parse(time.RFC3339Nano, s)
		return t.UTC(), err
	})
}

// unmarshalTime parses a date or a time. It uses noun and form in the error message for an invalid
// value. noun describes the value. It must not be the name of a GraphQL type, because error
// messages must not reveal a hidden schema. form is an example of a valid value.
func unmarshalTime[T any](v any, noun, form string, parse func(string) (T, error)) (T, error) {
	var zero T
	if v == nil {
		return zero, nil
	}
	if s, ok := v.(string); ok {
		if parsed, err := parse(s); err == nil {
			return parsed, nil
		}
	}
	return zero, commerce.NewInvalidError("%s must be a string of the form %s", noun, form)
}

// MarshalDate marshals a Date.
func MarshalDate(d commerce.Date) graphql.Marshaler { return graphql.MarshalString(string(d)) }

// UnmarshalDate unmarshals a Date. It returns the empty date for null. In a range, the empty date
// means that the range has no start or no end.
//
// It returns a commerce.InvalidError if v is neither null nor a string of the form 2026-02-01.
func UnmarshalDate(v any) (commerce.Date, error) {
	return unmarshalTime(v, "a date", "2026-02-01", commerce.ParseDate)
}

// MarshalDecimal marshals a Decimal.
func MarshalDecimal(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalDecimal unmarshals a Decimal from a string or a number. A number can be a float64, which
// keeps 15 digits. This is enough, because prices have at most 15 digits.
//
// It returns a commerce.InvalidError if v is neither a string nor a number.
func UnmarshalDecimal(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return "", commerce.NewInvalidError("a decimal number must be a string such as \"29.99\" or a number")
	}
}
