package commerce

import (
	"fmt"

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
		return "", Invalid("is %q: a currency is three upper-case letters of ISO 4217, such as USD", s)
	}
	return Currency(s), nil
}

// Digits is how many digits stand behind the point in amounts of this currency: 2 for USD, 0 for JPY. Codes
// that are not in ISO 4217 have 2.
func (c Currency) Digits() int {
	// The three that make up nearly every order book need no look-up.
	switch c {
	case "USD", "EUR", "GBP":
		return 2
	}
	unit, err := currency.ParseISO(string(c))
	if err != nil {
		return 2
	}
	scale, _ := currency.Standard.Rounding(unit)
	return scale
}

// Money is an exact amount in a currency's major unit: dollars, not cents.
type Money struct {
	Amount   decimal.Decimal
	Currency Currency
}

// ParseMoney reads an amount as the table or a file spells it: "29.99", "0.1".
//
// Errors: InvalidError where amount is no decimal number of at most 19 digits.
func ParseMoney(amount string, c Currency) (Money, error) {
	d, err := decimal.Parse(amount)
	if err != nil {
		return Money{}, Invalid("is %q: an amount is a decimal number of at most 19 digits, such as 29.99", amount)
	}
	return Money{Amount: d, Currency: c}, nil
}

// Decimal returns the amount with as many digits behind the point as its currency has, or more where it was
// stored with more: DynamoDB gives 0.10 back as 0.1.
func (m Money) Decimal() string {
	return m.Amount.Trim(m.Currency.Digits()).Pad(m.Currency.Digits()).String()
}

// Times returns the amount n times.
//
// Errors: one that says so where the result has more than 19 digits.
func (m Money) Times(n int) (Money, error) {
	factor, err := decimal.New(int64(n), 0)
	if err != nil {
		return Money{}, fmt.Errorf("multiply %v by %d: %w", m.Amount, n, err)
	}
	product, err := m.Amount.Mul(factor)
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
	sum, err := m.Amount.Add(other.Amount)
	if err != nil {
		return Money{}, fmt.Errorf("add %v to %v: %w", other.Amount, m.Amount, err)
	}
	return Money{Amount: sum, Currency: m.Currency}, nil
}
