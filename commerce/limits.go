package commerce

import "github.com/govalues/decimal"

// Limits of what callers can write.
const (
	// MaxLines is how many lines an order can have. It is what one write can hold:
	// docs/request-costs.md has the sum.
	MaxLines = 45
	// MaxQuantity is how many pieces a line can have.
	MaxQuantity = 1_000_000
	// MaxLevel is how many pieces of a product can lie in a warehouse.
	MaxLevel = 1_000_000_000
	// MaxInventory is how many can lie in all warehouses together: clients read the number as a
	// 32-bit integer.
	MaxInventory = 2_000_000_000
	// MaxName is how many bytes names, categories, job titles and the lines of an address can have.
	MaxName = 200
	// MaxNote is how many bytes a note can have.
	MaxNote = 1000
	// MaxPhoneNumbers is how many phone numbers a customer or an employee can have.
	MaxPhoneNumbers = 10
	// MaxPhoneNumber is how many bytes one can have.
	MaxPhoneNumber = 40
	// MaxIdempotencyKey is how many bytes an idempotency key can have.
	MaxIdempotencyKey = 128
	// MaxEmail is how many bytes an e-mail address can have (RFC 5321).
	MaxEmail = 254
	// MaxPriceDigits is how many digits a price can have, those behind the point included. It is
	// what a float64 keeps exactly, which is the only number that many clients have.
	MaxPriceDigits = 15
	// MaxTotalDigits is how many digits any amount can have.
	MaxTotalDigits = decimal.MaxPrec
)

// ParseQuantity returns n as the quantity of a line.
//
// Errors: InvalidError where n is not 1 to MaxQuantity.
func ParseQuantity(n int) (int, error) {
	if n < 1 || n > MaxQuantity {
		return 0, Invalid("is %d: give 1 to %d", n, MaxQuantity)
	}
	return n, nil
}

// ParseLevel returns n as how many pieces lie in a warehouse.
//
// Errors: InvalidError where n is not 0 to MaxLevel.
func ParseLevel(n int) (int, error) {
	if n < 0 || n > MaxLevel {
		return 0, Invalid("is %d: give 0 to %d", n, MaxLevel)
	}
	return n, nil
}

// ParseDelta returns n as by how many pieces the stock in a warehouse changes.
//
// Errors: InvalidError where n is 0 or more than MaxLevel either way.
func ParseDelta(n int) (int, error) {
	if n == 0 || n < -MaxLevel || n > MaxLevel {
		return 0, Invalid("is %d: give %d to %d, and not 0", n, -MaxLevel, MaxLevel)
	}
	return n, nil
}

// ParsePrice reads the price of a product.
//
// Errors: InvalidError where amount is no decimal number, is negative, has more digits behind the
// point than the currency, or more than 15 in all.
func ParsePrice(amount string, c Currency) (Money, error) {
	m, err := ParseMoney(amount, c)
	if err != nil {
		return Money{}, err
	}
	if m.Amount.IsNeg() {
		return Money{}, Invalid("is %q: a price is not negative", shown(amount))
	}
	if m.Amount.Trim(c.Digits()).Scale() > c.Digits() {
		return Money{}, Invalid("is %q: amounts in %s have at most %d digits behind the point", shown(amount), c, c.Digits())
	}
	if !m.writable() {
		return Money{}, Invalid("is %q: an amount has at most %d digits, those behind the point included", shown(amount), MaxPriceDigits)
	}
	return m, nil
}

// writable reports whether an amount has no more digits than callers can write.
func (m Money) writable() bool {
	return m.Amount.Trim(0).Pad(m.Currency.Digits()).Prec() <= MaxPriceDigits
}

// CheckLines checks the number of lines of an order.
//
// Errors: TooManyLines; InvalidInput if n is 0.
func CheckLines(n int) error {
	if n == 0 {
		return Refuse(Path("items"), "is empty: an order has at least one line")
	}
	if n > MaxLines {
		return TooLong(Path("items"), n, MaxLines)
	}
	return nil
}
