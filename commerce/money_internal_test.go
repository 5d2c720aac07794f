package commerce

import (
	"testing"

	"github.com/govalues/decimal"
	"pgregory.net/rapid"
)

// The fast path of ParseMoney returns the same amounts as the decimal library.
func TestFastPathOfAmounts(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,4})?`), rapid.StringMatching(`[-+0-9.eE]{0,16}`)).Draw(t, "amount")
		c := rapid.SampledFrom([]Currency{"USD", "JPY", "KWD", "CLF"}).Draw(t, "currency")
		fast, ok := parseSimpleDecimal(text, c.Digits())
		if !ok {
			return
		}
		accepted++
		slow, err := decimal.Parse(text)
		if err != nil {
			t.Fatalf("%q is not an amount: %v", text, err)
		}
		if want := withCurrencyDigits(slow, c); fast != want {
			t.Errorf("%q %s is %v, want %v", text, c, fast, want)
		}
	})
	if accepted == 0 {
		t.Error("the fast path accepted no amount")
	}
}
