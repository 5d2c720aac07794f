package provider

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/ordergraph/ordergraph/commerce"
)

// stripe is the webhook of Stripe (https://docs.stripe.com/webhooks).
type stripe struct{}

// Name returns "stripe".
func (stripe) Name() string { return "stripe" }

// NewVerifier returns a Verifier for the signing secret of a webhook endpoint.
func (stripe) NewVerifier(secret string) (Verifier, error) {
	return func(body []byte, header http.Header) (time.Time, error) {
		signature := header.Get("Stripe-Signature")
		if err := webhook.ValidatePayloadIgnoringTolerance(body, signature, secret); err != nil {
			return time.Time{}, err
		}
		return signingTime(signature)
	}, nil
}

// signingTime returns the time in a header Stripe-Signature, such as t=1700000000,v1=0a1b. Of
// several times, the library would verify only the last one, so signingTime returns an error.
func signingTime(signature string) (at time.Time, err error) {
	times := 0
	for part := range strings.SplitSeq(signature, ",") {
		if text, ok := strings.CutPrefix(part, "t="); ok {
			seconds, parsing := strconv.ParseInt(text, 10, 64)
			times, at, err = times+1, time.Unix(seconds, 0), parsing
		}
	}
	if times != 1 {
		return at, errors.New("the signature has not exactly one time")
	}
	return at, err
}

// stripeObject contains the fields of a PaymentIntent, Refund or Dispute that are used.
type stripeObject struct {
	ID               string            `json:"id"`
	Amount           int64             `json:"amount"`
	AmountCapturable int64             `json:"amount_capturable"`
	AmountReceived   int64             `json:"amount_received"`
	Currency         string            `json:"currency"`
	Metadata         map[string]string `json:"metadata"`
	Status           string            `json:"status"`
	PaymentIntent    string            `json:"payment_intent"`
	LatestCharge     jsontext.Value    `json:"latest_charge"`
	LastPaymentError jsontext.Value    `json:"last_payment_error"`
}

// Decode decodes an event. Its types are chosen such that each amount is counted once, although
// Stripe reports many of them several times:
//
//   - payment_intent.succeeded, instead of charge.succeeded and charge.captured
//   - refund.created, instead of charge.refunded, which has the sum of the charge's refunds
//   - charge.dispute.funds_withdrawn, instead of charge.dispute.created, because an inquiry
//     transfers no money
//
// The reference is the ID of the object. It is unique among the events of its kind, so Stripe's
// repetitions have the same reference. An authorization and its end have the PaymentIntent in
// common with the capture, so their references have a suffix. A refund that fails, or a dispute
// that is won, returns the money to the shop, so this is another capture.
func (s stripe) Decode(body []byte) ([]commerce.PaymentEvent, error) {
	var e struct {
		Type string `json:"type"`
		Data struct {
			Object jsontext.Value `json:"object"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil || e.Type == "" {
		return nil, errors.New("the body is not the JSON of an event")
	}
	var o stripeObject
	switch e.Type {
	case "payment_intent.amount_capturable_updated", "payment_intent.succeeded", "payment_intent.canceled",
		"refund.created", "refund.updated", "refund.failed", "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated":
		if json.Unmarshal(e.Data.Object, &o) != nil || o.ID == "" {
			return nil, errors.New("the object cannot be read")
		}
	default:
		return nil, nil
	}
	var kind commerce.PaymentKind
	var of commerce.PaymentReferences
	units, suffix := o.Amount, ""
	switch e.Type {
	case "payment_intent.amount_capturable_updated":
		kind, units, suffix = commerce.PaymentAuthorization, o.AmountCapturable, authorizationSuffix
		if units == 0 {
			return nil, nil // it was captured
		}
	case "payment_intent.succeeded":
		kind, units = commerce.PaymentCapture, o.AmountReceived
	case "payment_intent.canceled":
		if len(o.LatestCharge) == 0 {
			return nil, errors.New("the PaymentIntent has no latest_charge")
		}
		if o.LatestCharge.Kind() == jsontext.KindNull || o.failed() {
			return nil, nil // nothing was authorized
		}
		kind, suffix = commerce.PaymentVoid, voidSuffix
	case "refund.created":
		kind, of = commerce.PaymentRefund, o.referencesOfIntent()
	case "refund.updated", "refund.failed":
		if o.Status != "failed" && o.Status != "canceled" {
			return nil, nil
		}
		kind, suffix, of = commerce.PaymentCapture, "/failed", o.referencesOfIntent()
	case "charge.dispute.funds_withdrawn":
		kind, of = commerce.PaymentChargeback, commerce.PaymentReferences{Capture: o.PaymentIntent}
	case "charge.dispute.funds_reinstated":
		kind, suffix, of = commerce.PaymentCapture, "/reinstated", commerce.PaymentReferences{Capture: o.PaymentIntent}
	}
	currency := commerce.Currency(strings.ToUpper(o.Currency))
	event, err := newEvent(s.Name(), o.ID+suffix, kind, units, stripeDigits(currency), currency, o.Metadata["order_id"])
	if err != nil {
		return nil, err
	}
	event.Of = of
	return []commerce.PaymentEvent{event}, nil
}

// Suffixes of the references of a PaymentIntent's authorization and its end.
const authorizationSuffix, voidSuffix = "/authorization", "/void"

// failed reports whether the last attempt to pay has failed.
func (o stripeObject) failed() bool {
	return len(o.LastPaymentError) > 0 && o.LastPaymentError.Kind() != jsontext.KindNull
}

// referencesOfIntent returns the references of the payment that a refund belongs to.
func (o stripeObject) referencesOfIntent() commerce.PaymentReferences {
	if o.PaymentIntent == "" {
		return commerce.PaymentReferences{}
	}
	return commerce.PaymentReferences{Authorization: o.PaymentIntent + authorizationSuffix, Capture: o.PaymentIntent, Void: o.PaymentIntent + voidSuffix}
}

// stripeDigits returns the number of decimal places of the amounts that Stripe sends. It differs
// from ISO 4217 for a few currencies (https://docs.stripe.com/currencies#special-cases).
func stripeDigits(c commerce.Currency) int {
	switch c {
	case "MGA":
		return 0
	case "ISK", "UGX":
		return 2
	}
	return c.Digits()
}
