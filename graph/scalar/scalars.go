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
// time in an order ID has the same precision.
const dateTimeLayout = "2006-01-02T15:04:05.000Z"

// MarshalDateTime marshals a DateTime.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(dateTimeLayout)))
	})
}

// UnmarshalDateTime converts a string in RFC 3339 format to a time. null becomes the zero time. All
// other values cause a commerce.InvalidError.
func UnmarshalDateTime(v any) (time.Time, error) {
	return unmarshalTime(v, "a date with a time", "2026-02-01T09:30:00Z", commerce.ParseDateTime)
}

// unmarshalTime parses a date or a time. noun and form appear in error messages. noun must not be
// the name of a GraphQL type, because some callers must not see the schema.
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

// UnmarshalDate converts a string of the form 2026-02-01 to a date. null becomes the empty date.
// All other values cause a commerce.InvalidError.
func UnmarshalDate(v any) (commerce.Date, error) {
	return unmarshalTime(v, "a date", "2026-02-01", commerce.ParseDate)
}

// MarshalDecimal marshals a Decimal.
func MarshalDecimal(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalDecimal converts a string or a number to the text of a decimal number. A float64 is
// precise enough, because a price has at most 15 digits. All other types cause a
// commerce.InvalidError.
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
