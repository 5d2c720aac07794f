package commerce_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
)

func TestParsePrice(t *testing.T) {
	for _, c := range []struct {
		amount   string
		currency commerce.Currency
		decimal  string
	}{
		{"0", "USD", "0.00"}, {"29.99", "USD", "29.99"}, {"29.9", "USD", "29.90"}, {"29.990", "USD", "29.99"}, {"1200", "JPY", "1200"},
		{"1.234", "KWD", "1.234"}, {"9999999999999.99", "USD", "9999999999999.99"}, {"999999999999999", "JPY", "999999999999999"}, {"1e3", "USD", "1000.00"},
	} {
		m, err := commerce.ParsePrice(c.amount, c.currency)
		if err != nil || m.Decimal() != c.decimal || m.Currency != c.currency {
			t.Errorf("ParsePrice(%s, %s) = %v, %v", c.amount, c.currency, m, err)
		}
	}
	for _, c := range []struct {
		amount   string
		currency commerce.Currency
		says     string
	}{
		{"", "USD", "decimal number"}, {"abc", "USD", "decimal number"}, {"-0.01", "USD", "must not be negative"}, {"0.001", "USD", "2 decimal places"},
		{"1.5", "JPY", "0 decimal places"}, {"10000000000000.00", "USD", "15 digits"}, {"10000000000000", "USD", "15 digits"}, {"1000000000000000", "JPY", "15 digits"},
	} {
		_, err := commerce.ParsePrice(c.amount, c.currency)
		checkInvalidError(t, err, c.says)
	}
}

func TestBoundsOfNumbers(t *testing.T) {
	for _, c := range []struct {
		name      string
		parse     func(int) (int, error)
		good, bad []int
	}{
		{"quantity", commerce.ParseQuantity, []int{1, commerce.MaxQuantity}, []int{0, -1, commerce.MaxQuantity + 1}},
		{"level", commerce.ParseInventoryLevel, []int{0, commerce.MaxInventoryLevel}, []int{-1, commerce.MaxInventoryLevel + 1}},
		{"delta", commerce.ParseInventoryDelta, []int{1, -1, commerce.MaxInventoryLevel, -commerce.MaxInventoryLevel}, []int{0, commerce.MaxInventoryLevel + 1, -commerce.MaxInventoryLevel - 1}},
	} {
		for _, n := range c.good {
			if got, err := c.parse(n); err != nil || got != n {
				t.Errorf("%s %d: %d, %v", c.name, n, got, err)
			}
		}
		for _, n := range c.bad {
			_, err := c.parse(n)
			checkInvalidError(t, err, "use ")
		}
	}
}

func TestCheckLines(t *testing.T) {
	if err := errors.Join(commerce.CheckLineCount(1), commerce.CheckLineCount(commerce.MaxLines)); err != nil {
		t.Error(err)
	}
	if r := userErrorsOf(t, commerce.CheckLineCount(0)); r[0].Code() != commerce.CodeInvalid {
		t.Error(r)
	}
	if r, ok := errors.AsType[commerce.TooManyLines](commerce.CheckLineCount(commerce.MaxLines + 1)); !ok || r.Limit != commerce.MaxLines || !strings.Contains(r.Message, fmt.Sprint(commerce.MaxLines+1)) {
		t.Error(r)
	}
}

func TestParseName(t *testing.T) {
	for _, s := range []string{"x", "Bob #1", "日本", strings.Repeat("x", 20)} {
		if got, err := commerce.ParseName(s, 20); err != nil || got != s {
			t.Errorf("ParseName(%q) = %q, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{
		strings.Join([]string{"", "Ann", "", "Lee\u00a0"}, " "): "Ann  Lee", "Jose\u0301": "José", "👩\u200d💻": "👩\u200d💻", "علی\u200cرضا": "علی\u200cرضا", "❤\ufe0f": "❤\ufe0f", "1\ufe0f\u20e3": "1\ufe0f\u20e3", "葛\U000e0100": "葛\U000e0100",
	} {
		if got, err := commerce.ParseName(s, 20); err != nil || got != want {
			t.Errorf("ParseName(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"a\u200bb", "a\u200db", "a\u200c", "\u200d👩", "a\u2060", "\ufeffa", "s\u00adh", "\u202eevil", "a\u2066b\u2069", "\u200fa", "a\u061c", "a\u2028b", "a\u3164", "a\ufe0f", "\ufe0f❤", "a \ufe0f"} {
		_, err := commerce.ParseName(s, 20)
		checkInvalidError(t, err, "invisible character")
	}
	for _, s := range []string{"", " ", "\u00a0 ", "a\nb", "a\x00", "\x7f", "\xff", strings.Repeat("x", 21)} {
		_, err := commerce.ParseName(s, 20)
		checkInvalidError(t, err)
	}
	if _, err := commerce.ParseSearchableName("Bob", 20); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"a#b", " ", "a\tb"} {
		_, err := commerce.ParseSearchableName(s, 20)
		checkInvalidError(t, err)
	}
}

func TestParseCountry(t *testing.T) {
	for _, s := range []string{"US", "DE", "GB", "JP"} {
		if got, err := commerce.ParseCountry(s); err != nil || got != s {
			t.Errorf("ParseCountry(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "us", "USA", "U", "840", "EU", "ZZ", "XX", "UK", "Q1", "001"} {
		_, err := commerce.ParseCountry(s)
		checkInvalidError(t, err, "ISO 3166-1")
	}
}
