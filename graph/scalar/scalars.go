// Package scalar marshals and unmarshals the scalars of the schema. Within the module, it imports
// only commerce.
package scalar

import (
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
)

// dateTimeLayout is the format of RFC 3339 in UTC, with milliseconds. Order IDs have the same
// precision.
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

// unmarshalTime parses a string. noun describes the value in messages. It must not be the name of a
// type, because messages must not reveal a hidden schema. form is an example of the format.
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

// UnmarshalDecimal unmarshals a Decimal from a string or a number. The parser may have converted a
// number to a float64. A float64 is exact for the 15 digits that an amount can have.
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
