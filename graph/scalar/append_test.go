package scalar

import (
	"bytes"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

// The Append functions write the same bytes as gqlgen's Marshal functions.
func TestAppendEqualsMarshal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("a\"\\\t\r\n\b\x00\x1f\x7fé\u2028")), 0, 12, -1), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, "text")
		number := rapid.Int().Draw(rt, "number")
		moment := time.UnixMilli(rapid.Int64Range(-1<<45, 1<<47).Draw(rt, "moment")).In(time.FixedZone("", rapid.IntRange(-40_000, 40_000).Draw(rt, "zone")))
		amount, err := commerce.ParseMoney(rapid.StringMatching(`-?[0-9]{1,9}(\.[0-9]{1,6})?`).Draw(rt, "amount"), rapid.SampledFrom([]commerce.Currency{"USD", "JPY", "BHD"}).Draw(rt, "currency"))
		if err != nil {
			rt.Fatal(err)
		}
		for name, c := range map[string]struct {
			appended  []byte
			marshaler graphql.Marshaler
		}{
			"String":   {AppendString(nil, text), graphql.MarshalString(text)},
			"ID":       {AppendID(nil, text), graphql.MarshalID(text)},
			"Date":     {AppendDate(nil, commerce.Date(text)), MarshalDate(commerce.Date(text))},
			"Int":      {AppendInt(nil, number), graphql.MarshalInt(number)},
			"Int32":    {AppendInt32(nil, int32(number)), graphql.MarshalInt32(int32(number))},
			"Boolean":  {AppendBoolean(nil, number%2 == 0), graphql.MarshalBoolean(number%2 == 0)},
			"DateTime": {AppendDateTime(nil, moment), MarshalDateTime(moment)},
			"Decimal":  {AppendText(nil, amount.AppendDecimal), MarshalDecimal(amount.Decimal())},
		} {
			var want bytes.Buffer
			c.marshaler.MarshalGQL(&want)
			if !bytes.Equal(c.appended, want.Bytes()) {
				rt.Errorf("%s: the Append function writes %s, MarshalGQL writes %s", name, c.appended, want.Bytes())
			}
		}
	})
}
