package commerce

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
	"github.com/govalues/decimal"
)

// Currency is a three-letter currency code of ISO 4217.
type Currency string

// ParseCurrency validates s and returns it as a currency.
//
// ParseCurrency returns an InvalidError if s is not an active currency code of ISO 4217 with a
// number of decimal places. Withdrawn codes, such as HRK, and codes of precious metals are invalid.
func ParseCurrency(s string) (Currency, error) {
	if c := Currency(s); c.IsActive() {
		return c, nil
	}
	return "", NewInvalidError("is %q, which is not a currency code in use: use three upper-case letters of ISO 4217, such as USD", excerpt(s))
}

// IsActive reports whether ParseCurrency accepts the currency. Stored records can have other
// currencies, because ISO 4217 withdraws codes.
func (c Currency) IsActive() bool {
	_, ok := currency.GetDigits(string(c))
	return ok
}

// Digits returns the number of decimal places that ISO 4217 defines for the currency. It returns 2
// for codes that are not active. Common usage can differ.
func (c Currency) Digits() int {
	if digits, ok := currency.GetDigits(string(c)); ok {
		return int(digits)
	}
	return 2
}

// Money is an exact amount in a currency's major unit. For example, the major unit of USD is the
// dollar, not the cent.
type Money struct {
	Amount   decimal.Decimal
	Currency Currency
}

// ParseMoney parses an amount, such as "29.99" or "0.1".
//
// ParseMoney returns an InvalidError if amount is not a decimal number of at most 19 digits.
func ParseMoney(amount string, c Currency) (Money, error) {
	if d, ok := parseSimpleDecimal(amount, c.Digits()); ok {
		return Money{Amount: d, Currency: c}, nil
	}
	d, err := decimal.Parse(amount)
	if err != nil || !isExactDecimal(d, amount) {
		return Money{}, NewInvalidError("is %q: use a decimal number of at most 19 digits, such as 29.99", excerpt(amount))
	}
	// Equal amounts get the same number of decimal places, so == can compare them. For example, 1.5
	// USD becomes 1.50 USD.
	return Money{Amount: withCurrencyDigits(d, c), Currency: c}, nil
}

// withCurrencyDigits returns d with the currency's number of decimal places. It adds or removes
// only trailing zeros, so 1.234 USD keeps three decimal places.
func withCurrencyDigits(d decimal.Decimal, c Currency) decimal.Decimal {
	return d.Trim(c.Digits()).Pad(c.Digits())
}

// parseSimpleDecimal is the fast path of ParseMoney. It accepts short amounts without a sign, an
// exponent or extra decimal places, and returns false for all other amounts.
func parseSimpleDecimal(amount string, digits int) (decimal.Decimal, bool) {
	const maxLength = 14 // with 4 more decimal places, the number still fits in an int64
	if len(amount) == 0 || len(amount) > maxLength {
		return decimal.Decimal{}, false
	}
	minorUnits, decimalPlaces, hasPoint := int64(0), 0, false
	for i := range len(amount) {
		switch c := amount[i]; {
		case c >= '0' && c <= '9':
			minorUnits = minorUnits*10 + int64(c-'0')
			if hasPoint {
				decimalPlaces++
			}
		case c == '.' && !hasPoint && i > 0:
			hasPoint = true
		default:
			return decimal.Decimal{}, false
		}
	}
	if decimalPlaces > digits || hasPoint && decimalPlaces == 0 {
		return decimal.Decimal{}, false
	}
	for ; decimalPlaces < digits; decimalPlaces++ {
		minorUnits *= 10
	}
	d, err := decimal.New(minorUnits, digits)
	return d, err == nil
}

// excerpt returns at most the first 40 bytes of a value, so that error messages do not repeat long
// values from clients.
func excerpt(s string) string {
	const maxLength = 40
	if len(s) <= maxLength {
		return s
	}
	return strings.ToValidUTF8(s[:maxLength], "") + "..."
}

// maxAmountLength is the maximum length in bytes of an amount, including leading and trailing
// zeros. isExactDecimal rejects longer amounts.
const maxAmountLength = 64

// isExactDecimal reports whether d is exactly the number in s. The decimal library rounds numbers
// of more than 19 digits, so d can differ from s.
func isExactDecimal(d decimal.Decimal, s string) bool {
	if len(s) <= decimal.MaxPrec && !strings.ContainsAny(s, "eE") {
		return true
	}
	// Reject large exponents, because big.Rat would allocate memory for every digit of the number.
	if _, exponent, found := strings.Cut(strings.ToLower(s), "e"); found {
		if e, err := strconv.Atoi(exponent); err != nil || e < -decimal.MaxScale || e > decimal.MaxPrec {
			return false
		}
	}
	if len(s) > maxAmountLength {
		return false
	}
	want, ok := new(big.Rat).SetString(s)
	if !ok {
		return false
	}
	got, ok := new(big.Rat).SetString(d.String())
	return ok && got.Cmp(want) == 0
}

// Decimal returns the amount as text. If the amount has fewer decimal places than its currency,
// Decimal adds zeros, because DynamoDB may return a stored 0.10 as 0.1.
func (m Money) Decimal() string {
	return withCurrencyDigits(m.Amount, m.Currency).String()
}

// AppendDecimal appends the amount to b, in the same format as Decimal.
func (m Money) AppendDecimal(b []byte) []byte {
	b, _ = withCurrencyDigits(m.Amount, m.Currency).AppendText(b) // the error is always nil
	return b
}

// Equal reports whether two amounts have the same currency and the same value. For example, 10 USD
// equals 10.00 USD.
func (m Money) Equal(other Money) bool {
	return m.Currency == other.Currency && m.Amount.Cmp(other.Amount) == 0
}

// Times returns the amount multiplied by n.
//
// Times returns an error if the result has more than 19 digits.
func (m Money) Times(n int) (Money, error) {
	factor, err := decimal.New(int64(n), 0)
	if err != nil {
		return Money{}, fmt.Errorf("multiply %v by %d: %w", m.Amount, n, err)
	}
	product, err := m.Amount.MulExact(factor, m.Amount.Scale())
	if err != nil {
		return Money{}, fmt.Errorf("multiply %v by %d: %w", m.Amount, n, err)
	}
	return Money{Amount: product, Currency: m.Currency}, nil
}

// Plus returns the sum of two amounts.
//
// Plus returns an error if the currencies differ or if the sum has more than 19 digits.
func (m Money) Plus(other Money) (Money, error) {
	if m.Currency != other.Currency {
		return Money{}, fmt.Errorf("add %s to %s: the currencies differ", other.Currency, m.Currency)
	}
	sum, err := m.Amount.AddExact(other.Amount, max(m.Amount.Scale(), other.Amount.Scale()))
	if err != nil {
		return Money{}, fmt.Errorf("add %v to %v: %w", other.Amount, m.Amount, err)
	}
	return Money{Amount: sum, Currency: m.Currency}, nil
}
