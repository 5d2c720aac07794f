// Package scalar reads and writes the scalars of the schema. Of the module it imports commerce
// only.
package scalar

import (
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
)

// dateTimeLayout is RFC 3339 in UTC with milliseconds, which is what order ids can tell.
const dateTimeLayout = "2006-01-02T15:04:05.000Z"

// MarshalDateTime writes a DateTime.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(dateTimeLayout)))
	})
}

// UnmarshalDateTime reads a DateTime.
//
// A null in a range is an open end, as if it were left out.
//
// Errors: commerce.InvalidError for anything but null and a string of RFC 3339.
func UnmarshalDateTime(v any) (time.Time, error) {
	return unmarshalTime(v, "a date with a time", "2026-02-01T09:30:00Z", func(s string) (time.Time, error) {
		t, err := time.Parse(time.RFC3339Nano, s)
		return t.UTC(), err
	})
}

func unmarshalTime[T any](v any, name, form string, parse func(string) (T, error)) (t T, err error) {
	s, ok := v.(string)
	switch {
	case v == nil:
		return t, nil
	case !ok:
		return t, commerce.Invalid("%s is a string", name)
	}
	parsed, err := parse(s)
	if err != nil {
		return t, commerce.Invalid("%s has the form %s", name, form)
	}
	return parsed, nil
}

// MarshalDate writes a Date.
func MarshalDate(d commerce.Date) graphql.Marshaler { return graphql.MarshalString(string(d)) }

// UnmarshalDate reads a Date.
//
// A null in a range is an open end, as if it were left out.
//
// Errors: commerce.InvalidError for anything but null and a string of a day.
func UnmarshalDate(v any) (commerce.Date, error) {
	return unmarshalTime(v, "a date", "2026-02-01", commerce.ParseDate)
}

// MarshalDecimal writes a Decimal.
func MarshalDecimal(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalDecimal reads a Decimal. A number is taken as it is spelled, as far as the parser kept
// that: floats are exact up to 15 digits, which is as many as an amount can have.
//
// Errors: commerce.InvalidError for anything but a string or a number.
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
		return "", commerce.Invalid("a decimal number is a string such as \"29.99\"")
	}
}
