package commerce

import (
	"testing"

	"github.com/govalues/decimal"
	"pgregory.net/rapid"
)

// Amounts of the usual form are read by a way of their own: it gives what the long way does.
func TestPlainAmounts(t *testing.T) {
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,4})?`), rapid.StringMatching(`[-+0-9.eE]{0,16}`)).Draw(t, "amount")
		c := rapid.SampledFrom([]Currency{"USD", "JPY", "KWD", "CLF"}).Draw(t, "currency")
		short, ok := parsePlain(text, c.Digits())
		if !ok {
			return
		}
		plain++
		long, err := decimal.Parse(text)
		if err != nil {
			t.Fatalf("%q is no amount: %v", text, err)
		}
		if want := trimmed(long, c); short != want {
			t.Errorf("%q %s is %v, want %v", text, c, short, want)
		}
	})
	if plain == 0 {
		t.Error("no amount was of the usual form")
	}
}
