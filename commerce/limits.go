package commerce

import (
	"math"

	"github.com/govalues/decimal"
)

// Limits for the values that callers can write.
const (
	// MaxLines is the maximum number of line items of an order. A larger order would exceed the number
	// of actions that DynamoDB allows in one transaction. docs/request-costs.md shows the calculation.
	MaxLines = 45
	// MaxQuantity is the maximum quantity of a line item.
	MaxQuantity = 1_000_000
	// MaxInventoryLevel is the maximum quantity of a product in one warehouse.
	MaxInventoryLevel = 1_000_000_000
	// MaxTotalInventory is the maximum quantity of a product in all warehouses together. It must fit
	// into a 32-bit integer, because GraphQL returns it as an Int.
	MaxTotalInventory = 2_000_000_000
	// MaxStockBuckets is the maximum number of records over which the stock of a product is spread.
	MaxStockBuckets = 16
	// MaxName is the maximum size in bytes of names, categories, job titles and lines of an address.
	MaxName = 200
	// MaxAdjustments is the maximum number of adjustments of an order. MaxAdjustmentLabel is the maximum
	// size in bytes of the label of an adjustment.
	MaxAdjustments     = 20
	MaxAdjustmentLabel = 100
	// MaxTags is the maximum number of tags of an order. MaxTag is the maximum size in bytes of a
	// tag.
	MaxTags = 20
	MaxTag  = 64
	// MaxNote is the maximum size in bytes of a note.
	MaxNote = 1000
	// MaxPhoneNumbers is the maximum number of phone numbers of a customer or an employee.
	MaxPhoneNumbers = 10
	// MaxPhoneNumberLength is the maximum size in bytes of a phone number.
	MaxPhoneNumberLength = 40
	// MaxIdempotencyKey is the maximum size in bytes of an idempotency key.
	MaxIdempotencyKey = 128
	// MaxEmail is the maximum size in bytes of an email address. RFC 5321 defines this limit.
	MaxEmail = 254
	// MaxPriceDigits is the maximum number of digits of a price, including decimal places. Many
	// clients read numbers as float64, and a float64 represents at most 15 digits exactly.
	MaxPriceDigits = 15
	// MaxAmountDigits is the maximum number of digits of any amount. It is the limit of the decimal
	// library.
	MaxAmountDigits = decimal.MaxPrec
)

// ParseQuantity validates n and returns it as the quantity of a line item.
//
// ParseQuantity returns an InvalidError unless n is from 1 to MaxQuantity.
func ParseQuantity(n int) (int, error) {
	if n < 1 || n > MaxQuantity {
		return 0, NewInvalidError("is %d: use 1 to %d", n, MaxQuantity)
	}
	return n, nil
}

// ParseStockBuckets validates n and returns it as the number of records that store a product's stock.
//
// ParseStockBuckets returns an InvalidError unless n is from 1 to MaxStockBuckets.
func ParseStockBuckets(n int) (int, error) {
	if n < 1 || n > MaxStockBuckets {
		return 0, NewInvalidError("is %d: use 1 to %d", n, MaxStockBuckets)
	}
	return n, nil
}

// ParseInventoryLevel validates n and returns it as the quantity of a product in a warehouse.
//
// ParseInventoryLevel returns an InvalidError unless n is from 0 to MaxInventoryLevel.
func ParseInventoryLevel(n int) (int, error) {
	if n < 0 || n > MaxInventoryLevel {
		return 0, NewInvalidError("is %d: use 0 to %d", n, MaxInventoryLevel)
	}
	return n, nil
}

// ParseInventoryDelta validates n as a change of the quantity of a product in a warehouse.
//
// It returns an InvalidError if n is 0, less than -MaxInventoryLevel or more than
// MaxInventoryLevel.
func ParseInventoryDelta(n int) (int, error) {
	if n == 0 || n < -MaxInventoryLevel || n > MaxInventoryLevel {
		return 0, NewInvalidError("is %d: use %d to %d, except 0", n, -MaxInventoryLevel, MaxInventoryLevel)
	}
	return n, nil
}

// ParseTransferQuantity validates n as the number of units to move between warehouses.
//
// It returns an InvalidError unless n is from 1 to MaxInventoryLevel.
func ParseTransferQuantity(n int) (int, error) {
	if n < 1 || n > MaxInventoryLevel {
		return 0, NewInvalidError("is %d: use 1 to %d", n, MaxInventoryLevel)
	}
	return n, nil
}

// ParsePrice parses the price of a product.
//
// It returns an InvalidError if amount is not a decimal number, is negative, or has too many digits
// or decimal places, or if the currency is not active.
func ParsePrice(amount string, c Currency) (Money, error) {
	m, err := ParseMoney(amount, c)
	if err != nil {
		return Money{}, err
	}
	if c == "" { // the currency is already rejected
		return m, nil
	}
	return m, m.CheckPrice()
}

// CheckPrice returns an InvalidError if a product cannot have the price m: if m is negative, or has
// a currency that is not active, or too many digits or decimal places.
func (m Money) CheckPrice() error {
	switch c := m.Currency; {
	case !c.IsActive():
		return NewInvalidError("is in %q, which is not a currency in use: use an active currency of ISO 4217, such as USD", excerpt(string(c)))
	case m.Amount.IsNeg():
		return NewInvalidError("is %q: a price must not be negative", m.Amount)
	}
	return m.checkDigits()
}

// checkDigits returns an InvalidError if m has too many digits or decimal places.
func (m Money) checkDigits() error {
	switch c := m.Currency; {
	case m.Amount.Trim(c.Digits()).Scale() > c.Digits():
		return NewInvalidError("is %q: an amount in %s has at most %d decimal places", m.Amount, c, c.Digits())
	case !m.withinPriceDigits():
		return NewInvalidError("is %q: an amount has at most %d digits, including its decimal places", m.Amount, MaxPriceDigits)
	}
	return nil
}

// withinPriceDigits reports whether an amount has at most MaxPriceDigits digits.
func (m Money) withinPriceDigits() bool {
	return m.Amount.Trim(0).Pad(m.Currency.Digits()).Prec() <= MaxPriceDigits
}

// CheckLineCount validates n as the number of line items of an order.
//
// CheckLineCount returns InvalidInput if n is 0, and TooManyLines if n is more than MaxLines.
func CheckLineCount(n int) error {
	if n == 0 {
		return NewInvalidInput(FieldPath("items"), "is empty: an order needs at least one line item")
	}
	if n > MaxLines {
		return NewTooManyLines(FieldPath("items"), n, MaxLines)
	}
	return nil
}

// ReservationLimits are limits for the open orders of one customer. An order is open while it
// reserves stock (see Status.ReservesStock). 0 means no limit. Only the customer's own requests are
// limited, not requests of staff, admins and services. Package setting describes the struct tags.
type ReservationLimits struct {
	// OpenOrders is the maximum number of open orders.
	OpenOrders int `env:"ORDERGRAPH_MAX_OPEN_ORDERS" default:"200" exceeded:"user error 'ReservationLimit'" meaning:"pending and confirmed orders that a customer can have by its own requests"`
	// Units is the maximum number of units in all open orders together.
	Units int `env:"ORDERGRAPH_MAX_RESERVED_UNITS" default:"10000" exceeded:"user error 'ReservationLimit'" meaning:"units in these orders"`
}

// Reservation is what open orders of one customer reserve, or a change of it.
type Reservation struct{ OpenOrders, Units int }

// Check returns ReservationLimit if the reservation exceeds a limit after the change more. A change
// that does not increase a number is always allowed. path is the path of the input that causes the
// change.
func (l ReservationLimits) Check(current, more Reservation, path []string) error {
	if would, exceeded := exceeds(current.OpenOrders, more.OpenOrders, l.OpenOrders); exceeded {
		return NewReservationLimit(path, "open orders", would, l.OpenOrders)
	}
	if would, exceeded := exceeds(current.Units, more.Units, l.Units); exceeded {
		return NewReservationLimit(path, "reserved units", would, l.Units)
	}
	return nil
}

// exceeds returns the sum of current and more, and whether it exceeds limit. If more is not positive
// or limit is 0, it does not. Other software may have stored a current number that is so large that
// the sum would overflow.
func exceeds(current, more, limit int) (would int, exceeded bool) {
	if more <= 0 || limit == 0 {
		return 0, false
	}
	would = min(current, math.MaxInt-more) + more
	return would, would > limit
}
