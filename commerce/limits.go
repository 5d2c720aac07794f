package commerce

import "github.com/govalues/decimal"

// Limits of what callers can write.
const (
	// MaxLines is the maximum number of line items of an order. One DynamoDB transaction cannot write
	// an order with more line items. docs/request-costs.md shows the calculation.
	MaxLines = 45
	// MaxQuantity is the maximum quantity of a line item.
	MaxQuantity = 1_000_000
	// MaxInventoryLevel is the maximum quantity of a product in one warehouse.
	MaxInventoryLevel = 1_000_000_000
	// MaxTotalInventory is the maximum quantity of a product in all warehouses together. In GraphQL,
	// this quantity is a 32-bit integer.
	MaxTotalInventory = 2_000_000_000
	// MaxName is the maximum size in bytes of names, categories, job titles and lines of an address.
	MaxName = 200
	// MaxNote is the maximum size in bytes of a note.
	MaxNote = 1000
	// MaxPhoneNumbers is the maximum number of phone numbers of a customer or an employee.
	MaxPhoneNumbers = 10
	// MaxPhoneNumberLength is the maximum size in bytes of a phone number.
	MaxPhoneNumberLength = 40
	// MaxIdempotencyKey is the maximum size in bytes of an idempotency key.
	MaxIdempotencyKey = 128
	// MaxEmail is the maximum size in bytes of an email address (RFC 5321).
	MaxEmail = 254
	// MaxPriceDigits is the maximum number of digits of a price, including decimal places. Many
	// clients read every number as a float64, which represents 15 digits exactly.
	MaxPriceDigits = 15
	// MaxAmountDigits is the maximum number of digits of any amount.
	MaxAmountDigits = decimal.MaxPrec
)

// ParseQuantity validates and returns n as the quantity of a line item.
//
// It returns an InvalidError if n is not from 1 to MaxQuantity.
func ParseQuantity(n int) (int, error) {
	if n < 1 || n > MaxQuantity {
		return 0, NewInvalidError("is %d: use 1 to %d", n, MaxQuantity)
	}
	return n, nil
}

// ParseInventoryLevel validates and returns n as the quantity of a product in a warehouse.
//
// It returns an InvalidError if n is not from 0 to MaxInventoryLevel.
func ParseInventoryLevel(n int) (int, error) {
	if n < 0 || n > MaxInventoryLevel {
		return 0, NewInvalidError("is %d: use 0 to %d", n, MaxInventoryLevel)
	}
	return n, nil
}

// ParseInventoryDelta validates and returns n as a change of the quantity of a product in a warehouse.
//
// It returns an InvalidError if n is 0, less than -MaxInventoryLevel or more than
// MaxInventoryLevel.
func ParseInventoryDelta(n int) (int, error) {
	if n == 0 || n < -MaxInventoryLevel || n > MaxInventoryLevel {
		return 0, NewInvalidError("is %d: use %d to %d, except 0", n, -MaxInventoryLevel, MaxInventoryLevel)
	}
	return n, nil
}

// ParsePrice parses and validates the price of a product.
//
// It returns an InvalidError if amount is not a decimal number, is negative, has more fractional
// digits than the currency, or has more than MaxPriceDigits digits.
func ParsePrice(amount string, c Currency) (Money, error) {
	m, err := ParseMoney(amount, c)
	if err != nil {
		return Money{}, err
	}
	if m.Amount.IsNeg() {
		return Money{}, NewInvalidError("is %q: a price must not be negative", excerpt(amount))
	}
	if m.Amount.Trim(c.Digits()).Scale() > c.Digits() {
		return Money{}, NewInvalidError("is %q: an amount in %s has at most %d decimal places", excerpt(amount), c, c.Digits())
	}
	if !m.withinPriceDigits() {
		return Money{}, NewInvalidError("is %q: an amount has at most %d digits, including its decimal places", excerpt(amount), MaxPriceDigits)
	}
	return m, nil
}

// withinPriceDigits reports whether an amount has at most MaxPriceDigits digits.
func (m Money) withinPriceDigits() bool {
	return m.Amount.Trim(0).Pad(m.Currency.Digits()).Prec() <= MaxPriceDigits
}

// CheckLineCount validates the number of line items of an order.
//
// It returns TooManyLines if n is more than MaxLines, and InvalidInput if n is 0.
func CheckLineCount(n int) error {
	if n == 0 {
		return NewInvalidInput(FieldPath("items"), "is empty: an order needs at least one line item")
	}
	if n > MaxLines {
		return NewTooManyLines(FieldPath("items"), n, MaxLines)
	}
	return nil
}
