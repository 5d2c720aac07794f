package commerce

import (
	"strings"
	"time"

	"github.com/govalues/decimal"
)

// PaymentKind is what happened to the money of an order, in lower case, such as "capture".
type PaymentKind string

// Kinds of payments.
const (
	// PaymentAuthorization reserves an amount on the customer's account.
	PaymentAuthorization PaymentKind = "authorization"
	// PaymentCapture transfers an amount to the shop, with or without an authorization.
	PaymentCapture PaymentKind = "capture"
	// PaymentVoid ends the authorization of an amount.
	PaymentVoid PaymentKind = "void"
	// PaymentRefund transfers an amount back to the customer.
	PaymentRefund PaymentKind = "refund"
	// PaymentChargeback is a refund that the customer's bank has forced.
	PaymentChargeback PaymentKind = "chargeback"
)

// ParsePaymentKind validates s and returns it as a kind of payment.
//
// It returns an InvalidError if s is not a kind of payment.
func ParsePaymentKind(s string) (PaymentKind, error) {
	switch k := PaymentKind(s); k {
	case PaymentAuthorization, PaymentCapture, PaymentVoid, PaymentRefund, PaymentChargeback:
		return k, nil
	}
	return "", NewInvalidError("is %q, which is not a kind of payment", s)
}

// Payment is an entry in the ledger of an order's payments. It never changes.
type Payment struct {
	ID      PaymentID
	OrderID OrderID
	Kind    PaymentKind
	// Amount is positive, and has the currency of the order.
	Amount Money
	// ProviderReference is the name of the payment provider, a colon, and the provider's ID of the
	// payment. Only one payment has this value.
	ProviderReference string
	// ReturnID is the return that is refunded, or empty. Reason is why more is refunded for it than was paid
	// for its pieces.
	ReturnID ReturnID
	Reason   string
	At       time.Time
	// Actor is the name of the principal that recorded the payment.
	Actor string
}

// Provider returns the name of the payment provider.
func (p Payment) Provider() string {
	provider, _, _ := strings.Cut(p.ProviderReference, ":")
	return provider
}

// Reference returns the provider's ID of the payment.
func (p Payment) Reference() string {
	_, reference, _ := strings.Cut(p.ProviderReference, ":")
	return reference
}

// MaxPaymentReference is the maximum size in bytes of a provider's ID of a payment.
const MaxPaymentReference = 256

// ParseProvider validates the name of a payment provider. It is in lower case, so that one provider has
// one name.
//
// ParseProvider returns an InvalidError if s has another form.
func ParseProvider(s string) (string, error) {
	id, err := ParseID[string](s)
	if err == nil && id != strings.ToLower(id) {
		return "", NewInvalidError("contains capital letters: use lower case, such as stripe")
	}
	return id, err
}

// ParsePaymentReference validates a provider's ID of a payment.
//
// It returns the errors of ParseSearchableName.
func ParsePaymentReference(s string) (string, error) {
	return ParseSearchableName(s, MaxPaymentReference)
}

// PaymentEvent is what a payment provider reports about a payment.
type PaymentEvent struct {
	Kind   PaymentKind
	Amount Money
	// Provider is the name of the payment provider, and Reference is its ID of the payment.
	Provider, Reference string
	// OrderID is the ID of the order, as the provider sent it. If it is empty, Of names the payment
	// that is refunded or disputed, and so the order.
	OrderID string
	Of      PaymentReferences
}

// PaymentReferences are the references of one payment at a provider. Some of them can be empty.
//
// Some providers also report as a refund that an authorized amount was released. If the payment was
// voided, a refund without an order ID is such a release.
type PaymentReferences struct{ Authorization, Capture, Void string }

// UnmatchedPayment is an event of a payment provider that could not be recorded. It remains until
// the payment is recorded.
type UnmatchedPayment struct {
	ProviderReference string
	Kind              PaymentKind
	Amount            Money
	// GivenOrderID is the ID of the order, as the provider sent it. It is empty if the provider
	// sent none.
	GivenOrderID string
	// Reason is the text of the user error.
	Reason      string
	FirstSeenAt time.Time
}

// Provider returns the name of the payment provider.
func (p UnmatchedPayment) Provider() string {
	return Payment{ProviderReference: p.ProviderReference}.Provider()
}

// Reference returns the provider's ID of the payment.
func (p UnmatchedPayment) Reference() string {
	return Payment{ProviderReference: p.ProviderReference}.Reference()
}

// Limits of unmatched payments.
const (
	// MaxGivenOrderID is the maximum size in bytes of the order ID that a provider sends.
	MaxGivenOrderID = 100
	// MaxUnmatchedReason is the maximum size in bytes of the reason why a payment could not be
	// recorded.
	MaxUnmatchedReason = 600
)

// ParseMinorUnits returns the amount of a payment that a provider has sent as a whole number of
// minor units, such as cents. A minor unit has the given number of decimal places.
//
// It returns the errors of ParsePaymentAmount.
func ParseMinorUnits(units int64, digits int, c Currency) (Money, error) {
	d, err := decimal.New(units, digits)
	if err != nil {
		return Money{}, NewInvalidError("has too many digits")
	}
	return ParsePaymentAmount(d.String(), c)
}

// ParsePaymentAmount is like ParsePrice, but the amount must be positive.
//
// ParsePaymentAmount returns an InvalidError.
func ParsePaymentAmount(text string, c Currency) (Money, error) {
	m, err := ParsePrice(text, c)
	if err == nil && !m.Amount.IsPos() {
		return Money{}, NewInvalidError("is not positive: use the kind of payment to say in which direction the money went")
	}
	return m, err
}

// PaymentTotals adds up the payments of an order.
type PaymentTotals struct {
	// Authorized includes captured amounts, but not voided ones. Refunded includes chargebacks.
	Authorized, Captured, Refunded Money
}

// Check returns InvalidInput if more would be voided than was authorized, if more would be refunded than
// was captured, or if an amount has too many digits.
func (t PaymentTotals) Check() error {
	switch {
	case t.Authorized.Amount.IsNeg():
		return NewInvalidInput(FieldPath("amount"), "is more than the authorized amount: void at most what was authorized and not voided yet")
	case t.Refunded.Amount.Cmp(t.Captured.Amount) > 0:
		return NewInvalidInput(FieldPath("amount"), "raises the refunds to %s %s, but only %s was captured: refund at most the rest", t.Refunded.Decimal(), t.Refunded.Currency, t.Captured.Decimal())
	case !t.Authorized.withinPriceDigits() || !t.Captured.withinPriceDigits():
		return NewInvalidInput(FieldPath("amount"), "leads to an amount of more than %d digits", MaxPriceDigits)
	}
	return nil
}

// PaymentState is how much of an order is paid.
type PaymentState string

// States of payment.
const (
	StateUnpaid         PaymentState = "unpaid"
	StateAuthorized     PaymentState = "authorized"
	StatePartlyPaid     PaymentState = "partly_paid"
	StatePaid           PaymentState = "paid"
	StatePartlyRefunded PaymentState = "partly_refunded"
	StateRefunded       PaymentState = "refunded"
)

// PaymentDue is a PaymentState in which a payment is outstanding.
type PaymentDue string

// States of outstanding payments.
const (
	DueUnpaid     = PaymentDue(StateUnpaid)
	DueAuthorized = PaymentDue(StateAuthorized)
	DuePartlyPaid = PaymentDue(StatePartlyPaid)
)

// totals returns the sums of the order's payments. Without payments, they are 0.
func (o Order) totals() PaymentTotals {
	if o.PaymentTotals != nil {
		return *o.PaymentTotals
	}
	none := Money{Currency: o.Total.Currency}
	return PaymentTotals{none, none, none}
}

// Authorized returns the amount that was authorized and not voided. It includes captured amounts.
func (o Order) Authorized() Money { return o.totals().Authorized }

// Captured returns the amount that was captured. It includes refunded amounts.
func (o Order) Captured() Money { return o.totals().Captured }

// Refunded returns the amount of refunds and chargebacks.
func (o Order) Refunded() Money { return o.totals().Refunded }

// Outstanding returns the part of the total that has never been captured. For a cancelled order, it is 0.
func (o Order) Outstanding() Money {
	captured := o.Captured()
	captured.Amount = captured.Amount.Neg()
	left, err := o.Total.Plus(captured)
	if err != nil || left.Amount.IsNeg() || o.Status == Cancelled {
		return Money{Currency: o.Total.Currency}
	}
	return left
}

// CheckPaid returns InvalidInput if the total of the order falls below what is paid. before is the order
// before the change.
func (o Order) CheckPaid(before Order) error {
	paid := o.Refunded()
	paid.Amount = paid.Amount.Neg()
	paid, err := o.Captured().Plus(paid)
	if err == nil && o.Total.Amount.Cmp(before.Total.Amount) < 0 && paid.Amount.Cmp(o.Total.Amount) > 0 {
		return NewInvalidInput(FieldPath("orderId"), "names an order with a total of only %[3]s after the change, but %[1]s %[2]s is paid: refund the difference first", paid.Decimal(), paid.Currency, o.Total.Decimal())
	}
	return err
}

// PaymentState returns how much of the order is paid.
func (o Order) PaymentState() PaymentState {
	t := o.totals()
	switch {
	case t.Captured.Amount.IsZero() && o.Total.Amount.IsPos():
		if t.Authorized.Amount.IsPos() {
			return StateAuthorized
		}
		return StateUnpaid
	case t.Refunded.Amount.IsPos() && t.Refunded.Amount.Cmp(t.Captured.Amount) >= 0:
		return StateRefunded
	case t.Captured.Amount.Cmp(o.Total.Amount) < 0:
		return StatePartlyPaid
	case t.Refunded.Amount.IsPos():
		return StatePartlyRefunded
	}
	return StatePaid
}

// PaymentDue returns the state of payment of an order with an outstanding payment. For other orders,
// and for orders that do not use payments, it returns "".
func (o Order) PaymentDue() PaymentDue {
	if o.PaymentTotals == nil || o.Outstanding().Amount.IsZero() || o.PaymentState() == StateRefunded {
		return ""
	}
	return PaymentDue(o.PaymentState())
}
