package commerce_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/govalues/decimal"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

func TestParseCustomField(t *testing.T) {
	most := decimal.MustParse("10")
	money, err := commerce.ParseMoney("1.50", "USD")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field       commerce.CustomField
		value, want any
		problem     string
	}{
		{commerce.CustomField{Type: commerce.CustomString, MaxLength: 9}, " a\r\n\n  b ", "a\n\n  b", ""},
		{commerce.CustomField{Type: commerce.CustomString, MaxLength: 3}, "abcd", nil, "has 4 bytes: use at most 3"},
		{commerce.CustomField{Type: commerce.CustomString, MaxLength: 3}, "a\nb\nc", nil, "has 5 bytes: use at most 3"},
		{commerce.CustomField{Type: commerce.CustomString, MaxLength: 3}, json.Number("1"), nil, "must be a text"},
		{commerce.CustomField{Type: commerce.CustomString, MaxLength: 9}, "a\tb\nc", nil, "contains a control character or invalid UTF-8 at byte 1: remove it"},
		{commerce.CustomField{Type: commerce.CustomInt}, json.Number("5.0"), json.Number("5"), ""},
		{commerce.CustomField{Type: commerce.CustomInt}, int64(-2147483648), json.Number("-2147483648"), ""},
		{commerce.CustomField{Type: commerce.CustomInt}, json.Number("2147483648"), nil, "must be a whole number with at most 32 bits"},
		{commerce.CustomField{Type: commerce.CustomInt, Max: &most}, json.Number("11"), nil, "is 11: use at most 10"},
		{commerce.CustomField{Type: commerce.CustomDecimal}, "1E+2", json.Number("100"), ""},
		{commerce.CustomField{Type: commerce.CustomDecimal}, "1.50", json.Number("1.5"), ""},
		{commerce.CustomField{Type: commerce.CustomDecimal}, "1.23456789012345678901", nil, "must be a number of at most 19 digits"},
		{commerce.CustomField{Type: commerce.CustomBoolean}, "true", nil, "must be true or false"},
		{commerce.CustomField{Type: commerce.CustomMoney}, map[string]any{"amount": json.Number("1.5"), "currency": "USD"}, money, ""},
		{commerce.CustomField{Type: commerce.CustomDateTime}, "2026-02-01T10:30:00+01:00", "2026-02-01T09:30:00.000Z", ""},
		{commerce.CustomField{Type: commerce.CustomDate}, "2026-02-30", nil, `is "2026-02-30": use a date of the form 2026-02-01`},
		{commerce.CustomField{Type: commerce.CustomEnum, EnumValues: []string{"A", "B"}}, "C", nil, `is "C": use A, B`},
		{commerce.CustomField{Type: commerce.CustomID, List: true, MaxItems: 1, MaxLength: 3}, "a", []any{"a"}, ""},
		{commerce.CustomField{Type: commerce.CustomID, List: true, MaxItems: 1, MaxLength: 3}, []any{"a", "b"}, nil, "has 2 values: use at most 1"},
		{commerce.CustomField{Type: commerce.CustomID, List: true, MaxItems: 1, MaxLength: 3}, []any{nil}, nil, `argument "0" must be a text`},
		{commerce.CustomField{Type: commerce.CustomInt, Required: true}, nil, nil, "is null: set a value"},
		{commerce.CustomField{Type: commerce.CustomInt}, nil, nil, ""},
	} {
		got, err := c.field.Parse(c.value)
		if problem := ""; err != nil {
			if problem = err.Error(); problem != c.problem {
				t.Errorf("%s: %#v has the problem %q, want %q", c.field.Type, c.value, problem, c.problem)
			}
		} else if c.problem != "" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %#v becomes %#v, want %#v %s", c.field.Type, c.value, got, c.want, c.problem)
		}
	}
}

// A parsed value has its normal form, and the largest value is valid.
func TestParsedCustomFieldsAreNormal(t *testing.T) {
	types := []commerce.CustomFieldType{
		commerce.CustomString, commerce.CustomID, commerce.CustomInt, commerce.CustomBoolean, commerce.CustomDecimal,
		commerce.CustomMoney, commerce.CustomDate, commerce.CustomDateTime, commerce.CustomEnum,
	}
	rapid.Check(t, func(t *rapid.T) {
		f := commerce.CustomField{
			Type: rapid.SampledFrom(types).Draw(t, "type"), EnumValues: []string{"A", "BB"},
			List: rapid.Bool().Draw(t, "list"), MaxItems: 3, MaxLength: rapid.IntRange(1, 50).Draw(t, "length"),
		}
		scalar := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.StringMatching(`-?[0-9]{1,12}(\.[0-9]{1,4})?`), func(s string) any { return json.Number(s) }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(rapid.StringMatching(`[0-9]{1,9}`), func(s string) any { return map[string]any{"amount": s, "currencyCode": "USD"} }),
			rapid.Just(f.Largest()),
		)
		value := rapid.OneOf(scalar, rapid.Map(rapid.SliceOfN(scalar, 0, 4), func(l []any) any { return l })).Draw(t, "value")
		once, err := f.Parse(value)
		if err != nil {
			return
		}
		if twice, err := f.Parse(once); err != nil || !reflect.DeepEqual(once, twice) {
			t.Fatalf("%#v becomes %#v, %v", once, twice, err)
		}
		if _, err := f.Parse(f.Largest()); err != nil {
			t.Fatalf("the largest value %v %v", f.Largest(), err)
		}
	})
}
