// Package scalar marshals, unmarshals and validates the scalars of the GraphQL schema. Within the
// module, it imports only commerce.
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
	return zero, commerce.NewInvalidError("must be %s, as a string of the form %s", noun, form)
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

// UnmarshalDecimal returns the text of a decimal number. null becomes the empty text. All other
// values than strings cause a commerce.InvalidError, because Coercions converts numbers to strings.
func UnmarshalDecimal(v any) (string, error) {
	text, ok := v.(string)
	if !ok && v != nil {
		return "", commerce.NewInvalidError("must be a decimal number, as a string such as \"29.99\" or as a number")
	}
	return text, nil
}

// Coercions returns the functions that validate the input values of the custom scalars, by the name
// of the scalar. Package document calls them for literals and variables, before an operation is
// executed. _Any has no function, because it accepts all values.
func Coercions() map[string]func(any) (any, error) {
	return map[string]func(any) (any, error){
		"DateTime":     check(UnmarshalDateTime),
		"Date":         check(UnmarshalDate),
		"Decimal":      coerceDecimal,
		"CurrencyCode": coerceCurrency,
	}
}

// check returns a coercion that keeps the value if unmarshal accepts it.
func check[T any](unmarshal func(any) (T, error)) func(any) (any, error) {
	return func(v any) (any, error) {
		_, err := unmarshal(v)
		return v, err
	}
}

// coerceDecimal converts a number to its text, so that no digits are lost. The currency of the
// amount does not matter, because it does not change which numbers are valid.
func coerceDecimal(v any) (any, error) {
	if number, ok := v.(json.Number); ok {
		v = number.String()
	}
	text, err := UnmarshalDecimal(v)
	if err == nil {
		_, err = commerce.ParseMoney(text, "")
	}
	return text, err
}

func coerceCurrency(v any) (any, error) {
	text, ok := v.(string)
	if !ok {
		return nil, commerce.NewInvalidError("must be a currency code, as a string such as \"USD\"")
	}
	_, err := commerce.ParseCurrency(text)
	return text, err
}
