package model

import (
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// paymentAttributes declares the attributes of a payment.
func paymentAttributes(a *attributeVisitor, p *commerce.Payment) {
	textAttribute(a, "paymentId", &p.ID, commerce.ULIDLength)
	textAttribute(a, "orderId", &p.OrderID, commerce.ULIDLength)
	parsedTextAttribute(a, "kind", &p.Kind, commerce.ParsePaymentKind, commerce.PaymentAuthorization)
	a.currencyAttribute(&p.Amount)
	a.amount("amount", &p.Amount, commerce.MaxPriceDigits)
	textAttribute(a, "providerReference", &p.ProviderReference, commerce.MaxIDLength+len(":")+commerce.MaxPaymentReference)
	optionalTextAttribute(a, "returnId", &p.ReturnID, commerce.ULIDLength)
	optionalTextAttribute(a, "reason", &p.Reason, commerce.MaxReturnReason)
	personal(a, &p.Reason)
	a.createdAt(&p.At)
	lenientTextAttribute(a, "actor", &p.Actor, commerce.MaxName)
	if a.onInvalid != nil && !p.Amount.Amount.IsPos() {
		a.reportInvalid("amount", commerce.NewInvalidError("is not positive"))
	}
}

// unmatchedPaymentAttributes declares the attributes of a provider's payment that could not be
// recorded.
func unmatchedPaymentAttributes(a *attributeVisitor, p *commerce.UnmatchedPayment) {
	textAttribute(a, "providerReference", &p.ProviderReference, commerce.MaxIDLength+len(":")+commerce.MaxPaymentReference)
	parsedTextAttribute(a, "kind", &p.Kind, commerce.ParsePaymentKind, commerce.PaymentAuthorization)
	a.currencyAttribute(&p.Amount)
	a.amount("amount", &p.Amount, commerce.MaxPriceDigits)
	optionalTextAttribute(a, "givenOrderId", &p.GivenOrderID, commerce.MaxGivenOrderID)
	lenientTextAttribute(a, "reason", &p.Reason, commerce.MaxUnmatchedReason)
	a.createdAt(&p.FirstSeenAt)
}

// paymentTotals declares the sums of an order's payments, and the state of an outstanding payment. They are
// omitted if no payment was recorded.
func (a *attributeVisitor) paymentTotals(o *commerce.Order) {
	if a.mode == modeReading && !a.Has(AttrCaptured) {
		return
	}
	t := new(commerce.PaymentTotals)
	sums := [...]struct {
		name string
		v    *commerce.Money
	}{{AttrAuthorized, &t.Authorized}, {AttrCaptured, &t.Captured}, {AttrRefunded, &t.Refunded}}
	switch a.mode {
	case modeReading:
		for _, s := range sums {
			if s.v.Currency = a.currency; a.Has(s.name) {
				*s.v = a.requiredMoney(s.name, a.currency)
			}
		}
		o.PaymentTotals = t
	case modeWriting:
		if o.PaymentTotals == nil {
			return
		}
		*t = *o.PaymentTotals
		for _, s := range sums {
			a.encoded[s.name] = AmountValue(*s.v)
		}
		if due := o.PaymentDue(); due != "" {
			a.encoded[AttrPaymentDue] = Str(string(due))
		}
	case modeMaximizing: // a payment is due: the sums are less than the total, but have the same number of digits
		for i, s := range sums {
			*s.v, _ = commerce.ParseMoney(strings.Repeat("876"[i:i+1], commerce.MaxAmountDigits-len("99"))+".99", "USD")
		}
		o.PaymentTotals, o.Status = t, commerce.Confirmed // this status has the maximum length, too
	case modeDescribing:
		for _, s := range sums {
			a.describe(s.name, "N", 0, presenceOptional)
		}
		a.describe(AttrPaymentDue, "S", len(commerce.DuePartlyPaid), presenceOptional)
	}
}

// DecodePayment decodes a payment.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodePayment(r Reader) (*commerce.Payment, error) {
	return codecFor[commerce.Payment](paymentAttributes).read(codec, r)
}

// DecodeUnmatchedPayment decodes a provider's payment that could not be recorded.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeUnmatchedPayment(r Reader) (*commerce.UnmatchedPayment, error) {
	return codecFor[commerce.UnmatchedPayment](unmatchedPaymentAttributes).read(codec, r)
}
