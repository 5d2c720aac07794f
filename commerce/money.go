package commerce

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/govalues/decimal"
	"golang.org/x/text/currency"
)

// Currency is a currency's three letters by ISO 4217.
type Currency string

// ParseCurrency returns s as a currency.
//
// Errors: InvalidError where ISO 4217 has no such code.
func ParseCurrency(s string) (Currency, error) {
	unit, err := currency.ParseISO(s)
	if err != nil || unit.String() != s {
		return "", Invalid("is %q, which is no currency: give three upper-case letters of ISO 4217, such as USD", shown(s))
	}
	return Currency(s), nil
}

// Digits is how many digits stand behind the point in amounts of this currency: 2 for USD, 0 for
// JPY. They are those of ISO 4217's table of minor units
// (https://www.six-group.com/en/products-services/financial-information/market-reference-data/data-standards.html),
// which for some currencies differ from what people use; 2 for codes that it does not have.
func (c Currency) Digits() int {
	switch c {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	default:
		return 2
	}
}

// Money is an exact amount in a currency's major unit: dollars, not cents.
type Money struct {
	Amount   decimal.Decimal
	Currency Currency
}

// ParseMoney reads an amount as storage or a file spells it: "29.99", "0.1".
//
// Errors: InvalidError where amount is no decimal number of at most 19 digits.
func ParseMoney(amount string, c Currency) (Money, error) {
	if d, ok := parsePlain(amount, c.Digits()); ok {
		return Money{Amount: d, Currency: c}, nil
	}
	d, err := decimal.Parse(amount)
	if err != nil || !exact(d, amount) {
		return Money{}, Invalid("is %q: an amount is a decimal number of at most 19 digits, such as 29.99", shown(amount))
	}
	// One amount has one form, so that equal amounts are equal (==).
	return Money{Amount: trimmed(d, c), Currency: c}, nil
}

// trimmed is an amount with as many digits behind the point as its currency has, or as many as it
// takes.
func trimmed(d decimal.Decimal, c Currency) decimal.Decimal {
	return d.Trim(c.Digits()).Pad(c.Digits())
}

// parsePlain reads an amount of the usual form, 29.99, with so many digits behind the point or
// fewer. It is false for all others.
func parsePlain(amount string, digits int) (decimal.Decimal, bool) {
	const most = 14 // with the four digits that some currencies have behind the point, an int64 holds it
	if len(amount) == 0 || len(amount) > most {
		return decimal.Decimal{}, false
	}
	units, behind, point := int64(0), 0, false
	for i := range len(amount) {
		switch c := amount[i]; {
		case c >= '0' && c <= '9':
			units = units*10 + int64(c-'0')
			if point {
				behind++
			}
		case c == '.' && !point && i > 0:
			point = true
		default:
			return decimal.Decimal{}, false
		}
	}
	if behind > digits || point && behind == 0 {
		return decimal.Decimal{}, false
	}
	for ; behind < digits; behind++ {
		units *= 10
	}
	d, err := decimal.New(units, digits)
	return d, err == nil
}

// shown is what a message repeats of a value: not all of it, whatever was sent.
func shown(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// maxAmount is longer than any amount that 19 digits can make, leading and trailing zeros included.
const maxAmount = 64

// exact reports whether d is what s says: the library rounds what has more digits than it holds.
func exact(d decimal.Decimal, s string) bool {
	if len(s) <= decimal.MaxPrec && !strings.ContainsAny(s, "eE") {
		return true
	}
	// A rational number of a large exponent would fill the memory.
	if _, exponent, found := strings.Cut(strings.ToLower(s), "e"); found {
		if e, err := strconv.Atoi(exponent); err != nil || e < -decimal.MaxScale || e > decimal.MaxPrec {
			return false
		}
	}
	if len(s) > maxAmount {
		return false
	}
	said, ok := new(big.Rat).SetString(s)
	if !ok {
		return false
	}
	have, ok := new(big.Rat).SetString(d.String())
	return ok && have.Cmp(said) == 0
}

// Decimal returns the amount with as many digits behind the point as its currency has, or more
// where it was stored with more: storage may give 0.10 back as 0.1.
func (m Money) Decimal() string {
	return trimmed(m.Amount, m.Currency).String()
}

// AppendDecimal appends what Decimal returns to b: digits, with a point and a minus sign where
// there is one.
func (m Money) AppendDecimal(b []byte) []byte {
	b, _ = trimmed(m.Amount, m.Currency).AppendText(b) // it never fails
	return b
}

// Equal reports whether two amounts are the same amount of the same currency: 10 is 10.00.
func (m Money) Equal(other Money) bool {
	return m.Currency == other.Currency && m.Amount.Cmp(other.Amount) == 0
}

// Times returns the amount n times.
//
// Errors: one that says so where the result has more than 19 digits.
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

// Plus returns the sum of two amounts of one currency.
//
// Errors: one that says so where the currencies differ or the result has more than 19 digits.
func (m Money) Plus(other Money) (Money, error) {
	if m.Currency != other.Currency {
		return Money{}, fmt.Errorf("add %s to %s: one sum has one currency", other.Currency, m.Currency)
	}
	sum, err := m.Amount.AddExact(other.Amount, max(m.Amount.Scale(), other.Amount.Scale()))
	if err != nil {
		return Money{}, fmt.Errorf("add %v to %v: %w", other.Amount, m.Amount, err)
	}
	return Money{Amount: sum, Currency: m.Currency}, nil
}
