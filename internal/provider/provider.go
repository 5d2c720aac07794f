// Package provider verifies and decodes the webhooks of payment providers. Each provider has its
// own file, and the function All lists them. Within the module, the package imports only commerce
// and internal/setting.
package provider

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// Provider is a kind of webhook: how its requests are signed, and what they contain. A Provider has
// no state.
type Provider interface {
	// Name is the last part of the webhook's path, and a part of the names of its setting and
	// metrics.
	Name() string
	// NewVerifier returns the function that verifies requests with the given secret.
	//
	// NewVerifier returns an error if the secret is malformed. The error does not contain the
	// secret.
	NewVerifier(secret string) (Verifier, error)
	// Decode returns the payments in the body of a verified request. There are none if the request
	// is about something else.
	//
	// Decode returns an error if the body is malformed. The error contains no text from the body.
	Decode(body []byte) ([]commerce.PaymentEvent, error)
}

// Verifier verifies the signature of a request, and returns the time when it was signed. It returns
// an error if the signature is missing or wrong. The time is not verified.
type Verifier func(body []byte, header http.Header) (signed time.Time, err error)

// All returns all providers.
func All() []Provider { return []Provider{stripe{}, standard{}} }

// PathPrefix is the path of all webhooks without the name of the provider.
const PathPrefix = "/webhooks/"

// MinSecretLength is the minimum length of a secret in characters.
const MinSecretLength = 24

// Tolerance is the maximum difference between the time when a request was signed and the time when
// it arrives. So a recorded request cannot be repeated later.
const Tolerance = 5 * time.Minute

// Errors of Webhook.Receive.
var (
	// ErrSignature means that no secret has signed the request, or that it was not signed within
	// Tolerance.
	ErrSignature = errors.New("the signature is missing, wrong or too old")
	// ErrMalformed means that the body of a signed request cannot be used.
	ErrMalformed = errors.New("the body is not an event that the server can read")
)

// Webhook receives the requests of a Provider. It is safe for concurrent use.
type Webhook struct {
	Provider
	verifiers atomic.Pointer[[]Verifier]
}

// NewWebhook returns a Webhook that accepts requests which one of the secrets has signed. They are
// separated by commas or white space.
//
// NewWebhook returns an error if there are no secrets, or if one of them is malformed.
func NewWebhook(p Provider, secrets string) (*Webhook, error) {
	w := &Webhook{Provider: p}
	return w, w.ChangeSecrets(secrets)
}

// ChangeSecrets replaces the secrets. It returns the errors of NewWebhook. After an error, the
// previous secrets remain in use.
func (w *Webhook) ChangeSecrets(secrets string) error {
	var all []Verifier
	for _, secret := range strings.FieldsFunc(secrets, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		if len(secret) < MinSecretLength {
			return errors.New("contains a secret that is too short")
		}
		if setting.CanBeGuessed(strings.TrimPrefix(secret, "whsec_")) {
			return errors.New("contains a secret that can be guessed, because it has too few different characters")
		}
		v, err := w.NewVerifier(secret)
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return errors.New("contains no secret")
	}
	w.verifiers.Store(&all)
	return nil
}

// Receive verifies a request, and returns the payments in its body. now is the current time.
//
// Errors: ErrSignature, ErrMalformed.
func (w *Webhook) Receive(body []byte, header http.Header, now time.Time) ([]commerce.PaymentEvent, error) {
	verified := func(v Verifier) bool {
		signed, err := v(body, header)
		return err == nil && now.Sub(signed).Abs() <= Tolerance
	}
	if !slices.ContainsFunc(*w.verifiers.Load(), verified) {
		return nil, ErrSignature
	}
	events, err := w.Decode(body)
	if err != nil {
		return nil, errors.Join(ErrMalformed, err)
	}
	return events, nil
}

// newEvent validates the values of a payment event. units is the amount in minor units of the given
// number of decimal places.
//
// newEvent returns an error without text from the parameters.
func newEvent(provider, reference string, kind commerce.PaymentKind, units int64, digits int, currency commerce.Currency, orderID string) (e commerce.PaymentEvent, err error) {
	orderID = orderID[:min(len(orderID), commerce.MaxGivenOrderID)] // a longer one names no order
	e = commerce.PaymentEvent{Kind: kind, OrderID: strings.ToValidUTF8(orderID, "")}
	if e.Provider, err = commerce.ParseProvider(provider); err != nil {
		return e, errors.New("the provider is invalid")
	}
	if e.Reference, err = commerce.ParsePaymentReference(reference); err != nil {
		return e, errors.New("the reference is invalid")
	}
	if !currency.IsActive() {
		return e, errors.New("the currency is invalid")
	}
	if e.Amount, err = commerce.ParseMinorUnits(units, digits, currency); err != nil {
		return e, errors.New("the amount is invalid")
	}
	return e, nil
}
