package provider

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ordergraph/ordergraph/commerce"
)

// standard is the webhook for other providers. Its requests are signed as in the specification
// Standard Webhooks (https://www.standardwebhooks.com).
type standard struct{}

// Name returns "payments".
func (standard) Name() string { return "payments" }

// NewVerifier returns a Verifier for a secret, which is in base64, after "whsec_".
func (standard) NewVerifier(secret string) (Verifier, error) {
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, errors.New("contains a secret that is not in base64")
	}
	return func(body []byte, header http.Header) (time.Time, error) {
		if err := w.VerifyIgnoringTimestamp(body, header); err != nil {
			return time.Time{}, err
		}
		seconds, err := strconv.ParseInt(header.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
		return time.Unix(seconds, 0), err
	}, nil
}

// standardType is the type of an event that contains a payment.
const standardType = "payment"

// Decode decodes an event, as docs/webhooks.md describes it.
func (standard) Decode(body []byte) ([]commerce.PaymentEvent, error) {
	var e struct {
		Type string `json:"type"`
		Data struct {
			Provider  string            `json:"provider"`
			Reference string            `json:"reference"`
			Kind      string            `json:"kind"`
			Amount    int64             `json:"amount"`
			Currency  commerce.Currency `json:"currency"`
			OrderID   string            `json:"orderId"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil {
		return nil, errors.New("the body is not the JSON of an event")
	}
	if e.Type != standardType {
		return nil, nil
	}
	kind, err := commerce.ParsePaymentKind(strings.ToLower(e.Data.Kind))
	if err != nil {
		return nil, errors.New("the kind is invalid")
	}
	d := e.Data
	event, err := newEvent(d.Provider, d.Reference, kind, d.Amount, d.Currency.Digits(), d.Currency, d.OrderID)
	if err != nil {
		return nil, err
	}
	return []commerce.PaymentEvent{event}, nil
}
