package commerce_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
)

func money(t testing.TB, amount string, c commerce.Currency) commerce.Money {
	t.Helper()
	m, err := commerce.ParseMoney(amount, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// DynamoDB returns 0.10 as 0.1 and 3.00 as 3. Decimal restores the currency's decimal places.
func TestDecimalHasTheCurrencysDigits(t *testing.T) {
	for _, c := range []struct {
		amount   string
		currency commerce.Currency
		want     string
	}{
		{"0.1", "USD", "0.10"},
		{"29.99", "USD", "29.99"},
		{"3", "EUR", "3.00"},
		{"0", "GBP", "0.00"},
		{"-5.5", "USD", "-5.50"},
		{"7", "CHF", "7.00"},
		{"29.999", "USD", "29.999"},
		{"29.9900", "USD", "29.99"},
		{"1200", "JPY", "1200"},
		{"1200.0", "JPY", "1200"},
		{"1200.5", "JPY", "1200.5"},
		{"1.5", "KWD", "1.500"},
		{"1.5", "BHD", "1.500"},
		{"1.2345", "KWD", "1.2345"},
		{"1.5", "ZZZ", "1.50"},
		{"1.5", "no currency", "1.50"},
		{"99999999999999999.99", "USD", "99999999999999999.99"},
	} {
		if got := money(t, c.amount, c.currency).Decimal(); got != c.want {
			t.Errorf("the decimal of %s %s is %q, want %q", c.amount, c.currency, got, c.want)
		}
	}
}

func TestParseMoneyRejects(t *testing.T) {
	for _, s := range []string{"", "x", "NaN", "Infinity", "1,5", "1_000", "0x10", " 1", "1e30", "99999999999999999999", strings.Repeat("9", 10_000)} {
		_, err := commerce.ParseMoney(s, "USD")
		checkInvalidError(t, err, "decimal number")
	}
}

func TestParseCurrency(t *testing.T) {
	for _, s := range []string{"USD", "EUR", "GBP", "JPY", "KWD"} {
		if c, err := commerce.ParseCurrency(s); err != nil || c != commerce.Currency(s) {
			t.Errorf("ParseCurrency(%q) = %q, %v", s, c, err)
		}
	}
	for _, s := range []string{"", "usd", "US", "USDD", "U$D", "QQQ", "USD "} {
		_, err := commerce.ParseCurrency(s)
		checkInvalidError(t, err, "ISO 4217")
	}
}

// Every active currency is accepted with the decimal places of ISO 4217 (list one of 2026-01-01).
// Withdrawn currencies, precious metals and test codes are not.
func TestCurrenciesOfISO4217(t *testing.T) {
	active := map[int]string{
		0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF", 3: "BHD IQD JOD KWD LYD OMR TND", 4: "CLF UYW",
		2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG",
	}
	for digits, codes := range active {
		for code := range strings.FieldsSeq(codes) {
			if c, err := commerce.ParseCurrency(code); err != nil || c.Digits() != digits {
				t.Errorf("%s has %d decimal places, %v, want %d", code, c.Digits(), err, digits)
			}
		}
	}
	for code := range strings.FieldsSeq("ANG BGN HRK SLL MRO STD VEF VEB ZWL ZWR CUC BYR LTL LVL EEK SKK DEM FRF TRL ROL XXX XTS XAU XAG XPT XPD XDR XBA XSU XUA USS") {
		_, err := commerce.ParseCurrency(code)
		checkInvalidError(t, err, "not a currency")
	}
}

func TestTimesAndPlus(t *testing.T) {
	three, err := money(t, "4.99", "USD").Times(3)
	if err != nil || three != money(t, "14.97", "USD") {
		t.Errorf("4.99 times 3 = %v, %v", three, err)
	}
	sum, err := three.Plus(money(t, "79.99", "USD"))
	if err != nil || sum.Decimal() != "94.96" || sum.Currency != "USD" {
		t.Errorf("14.97 plus 79.99 = %v, %v", sum, err)
	}
	if none, err := three.Times(0); err != nil || none.Decimal() != "0.00" {
		t.Errorf("14.97 times 0 = %v, %v", none, err)
	}
	// Floats would make this sum inexact.
	tenths := money(t, "0.1", "EUR")
	if sum, err := tenths.Plus(money(t, "0.2", "EUR")); err != nil || sum != money(t, "0.3", "EUR") {
		t.Errorf("0.1 plus 0.2 = %v, %v", sum, err)
	}
}

func TestPlusRejectsDifferentCurrencies(t *testing.T) {
	_, err := money(t, "1", "USD").Plus(money(t, "1", "EUR"))
	if err == nil || !strings.Contains(err.Error(), "USD") || !strings.Contains(err.Error(), "EUR") {
		t.Errorf("1 USD plus 1 EUR: error %v, want one that names both", err)
	}
}

func TestMoneyTooLarge(t *testing.T) {
	most := money(t, "99999999999999999.99", "USD")
	if product, err := most.Times(1000); err == nil {
		t.Errorf("%s times 1000 = %s, want an error", most.Decimal(), product.Decimal())
	}
	whole := money(t, "9999999999999999999", "JPY")
	if sum, err := whole.Plus(money(t, "1", "JPY")); err == nil {
		t.Errorf("%s plus 1 = %s, want an error", whole.Decimal(), sum.Decimal())
	}
	if subtotal, err := (commerce.LineItem{Quantity: 1000, UnitPrice: most}).Subtotal(); err == nil {
		t.Errorf("a subtotal of %s, want an error", subtotal.Decimal())
	}
}

// Adding an amount n times equals multiplying it by n.
func TestSumOfEqualLinesIsTheProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom([]commerce.Currency{"USD", "JPY", "KWD"}).Draw(t, "currency")
		price := fmt.Sprintf("%d.%03d", rapid.IntRange(0, 1_000_000).Draw(t, "whole"), rapid.IntRange(0, 999).Draw(t, "thousandths"))
		n := rapid.IntRange(1, 60).Draw(t, "n")
		unit, err := commerce.ParseMoney(price, currency)
		if err != nil {
			t.Fatal(err)
		}
		sum := commerce.Money{Currency: currency}
		for range n {
			if sum, err = sum.Plus(unit); err != nil {
				t.Fatal(err)
			}
		}
		product, err := unit.Times(n)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Amount.Cmp(product.Amount) != 0 || sum.Decimal() != product.Decimal() {
			t.Fatalf("%s %d times: sum %s, product %s", price, n, sum.Decimal(), product.Decimal())
		}
	})
}

// The result of Decimal parses to the same amount.
func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{"29.99", "0.1", "-0", "1e5", "1e-19", "9999999999999999999", "NaN", ".5", "0.0000000000000000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := commerce.ParseMoney(s, "USD")
		if err != nil {
			checkInvalidError(t, err)
			return
		}
		if again := money(t, m.Decimal(), "USD"); again.Amount.Cmp(m.Amount) != 0 {
			t.Errorf("the decimal of %q is %q, which parses to %v", s, m.Decimal(), again.Amount)
		}
	})
}

// ParseMoney, Times and Plus never round, although the decimal library does.
func TestMoneyIsNeverRounded(t *testing.T) {
	for _, amount := range []string{"0.12345678901234567890123", "1e-30", "1e-999999999", "1e999999999", "12345678901234567890", "0." + strings.Repeat("0", 100)} {
		if m, err := commerce.ParseMoney(amount, "USD"); err == nil {
			t.Errorf("ParseMoney(%q) = %v, want an error", amount, m.Amount)
		}
	}
	for amount, want := range map[string]string{"9.496E1": "94.96", "1E+2": "100.00", "5.0": "5.00", "00000000000000000000001.5": "1.50"} {
		if m, err := commerce.ParseMoney(amount, "USD"); err != nil || m.Decimal() != want {
			t.Errorf("ParseMoney(%q) = %v, %v, want %s", amount, m.Decimal(), err, want)
		}
	}
	tiny, err := commerce.ParseMoney("0.9999999999999999999", "USD")
	if err != nil {
		t.Fatal(err)
	}
	if product, err := tiny.Times(2); err == nil {
		t.Errorf("2 times %v = %v, want an error", tiny.Amount, product.Amount)
	}
	large, err := commerce.ParseMoney("99999999999999999.99", "USD")
	if err != nil {
		t.Fatal(err)
	}
	small, err := commerce.ParseMoney("0.001", "USD")
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := large.Plus(small); err == nil {
		t.Errorf("%v + %v = %v, want an error", large.Amount, small.Amount, sum.Amount)
	}
}

// Digits follows ISO 4217 even for currencies that people use with fewer digits.
func TestDigitsFollowISO4217(t *testing.T) {
	for currency, want := range map[commerce.Currency]int{"USD": 2, "COP": 2, "IDR": 2, "JPY": 0, "KWD": 3, "IQD": 3, "CLF": 4} {
		if got := currency.Digits(); got != want {
			t.Errorf("%s has %d digits, want %d", currency, got, want)
		}
	}
}
