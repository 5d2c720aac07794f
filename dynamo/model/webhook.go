package model

import (
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// maxSecret is the maximum size in bytes of an encrypted secret of a webhook.
const maxSecret = 96

// webhookAttributes declares the attributes of a webhook.
func webhookAttributes(a *attributeVisitor, w *commerce.Webhook) {
	textAttribute(a, attrWebhookID, &w.ID, commerce.ULIDLength)
	textAttribute(a, "url", &w.URL, commerce.MaxWebhookURL)
	parsedTextsAttribute(a, "topics", &w.Topics, commerce.MaxWebhookTopics, commerce.ParseEventType, func(t commerce.EventType) string { return string(t) }, commerce.EventShippingAddressChanged)
	parsedTextsAttribute(a, "statuses", &w.Statuses, len(commerce.Statuses()), commerce.ParseStatus, commerce.Status.String, commerce.Cancelled)
	optionalTextAttribute(a, "documentId", &w.DocumentID, commerce.MaxName)
	a.texts("secrets", &w.Secrets, commerce.MaxWebhookSecrets, maxSecret)
	a.optionalTime("secretRotatedAt", &w.SecretRotatedAt)
	a.optionalFlag("paused", &w.Paused)
	optionalTextAttribute(a, "from", &w.From, commerce.ULIDLength)
	a.optionalNumber("restarts", &w.Restarts)
	a.version(&w.Version)
	a.createdAt(&w.CreatedAt)
	a.updatedAt(&w.UpdatedAt, w.CreatedAt)
	lenientTextAttribute(a, "createdBy", &w.CreatedBy, commerce.MaxName)
}

// webhookStateAttributes declares the attributes of a webhook's state.
func webhookStateAttributes(a *attributeVisitor, s *commerce.WebhookState) {
	textAttribute(a, attrWebhookID, &s.WebhookID, commerce.ULIDLength)
	optionalTextAttribute(a, AttrOwner, &s.Owner, commerce.MaxName)
	a.number(AttrSequence, &s.Sequence)
	optionalTextAttribute(a, "wanted", &s.Wanted, commerce.MaxName)
	optionalTextAttribute(a, "cursor", &s.Cursor, commerce.ULIDLength)
	a.number("webhookVersion", &s.WebhookVersion)
	a.optionalNumber("restarts", &s.Restarts)
	a.optionalNumber("failures", &s.Failures)
	a.optionalTime("retryAt", &s.RetryAt)
	optionalTextAttribute(a, "disabledReason", &s.DisabledReason, commerce.MaxWebhookError)
	optionalTextAttribute(a, "lastError", &s.LastError, commerce.MaxWebhookError)
	a.optionalTime("lastErrorAt", &s.LastErrorAt)
	a.optionalTime("lastSuccessAt", &s.LastSuccessAt)
	a.optionalNumber("pending", &s.Pending)
	a.optionalTime("pendingSince", &s.PendingSince)
	parsedTextsAttribute(a, "delivered", &s.Delivered, commerce.MaxWebhookDelivered, commerce.ParseID[commerce.EventID], func(id commerce.EventID) string { return string(id) }, commerce.EventID(strings.Repeat("Z", commerce.ULIDLength)))
}

// webhookFailureAttributes declares the attributes of an order that is set aside for a webhook.
func webhookFailureAttributes(a *attributeVisitor, f *commerce.WebhookFailure) {
	textAttribute(a, attrWebhookID, &f.WebhookID, commerce.ULIDLength)
	textAttribute(a, "orderId", &f.OrderID, commerce.ULIDLength)
	textAttribute(a, "eventId", &f.EventID, commerce.ULIDLength)
	a.number("attempts", &f.Attempts)
	a.requiredTime("retryAt", &f.RetryAt)
	a.requiredTime("since", &f.Since)
	lenientTextAttribute(a, "error", &f.Error, commerce.MaxWebhookError)
}

const attrWebhookID = "webhookId"

// Attributes of a webhook's state: AttrSequence counts its writes, and AttrOwner is the server that
// has the lease.
const (
	AttrSequence = "sequence"
	AttrOwner    = "owner"
)

// DecodeWebhook decodes a webhook.
//
// Errors: ErrCorrupt.
func DecodeWebhook(r Reader) (*commerce.Webhook, error) {
	return codecFor[commerce.Webhook](webhookAttributes).read(&Codec{}, r)
}

// DecodeWebhookState decodes the state of a webhook.
//
// Errors: ErrCorrupt.
func DecodeWebhookState(r Reader) (*commerce.WebhookState, error) {
	return codecFor[commerce.WebhookState](webhookStateAttributes).read(&Codec{}, r)
}

// DecodeWebhookFailure decodes an order that is set aside for a webhook.
//
// Errors: ErrCorrupt.
func DecodeWebhookFailure(r Reader) (*commerce.WebhookFailure, error) {
	return codecFor[commerce.WebhookFailure](webhookFailureAttributes).read(&Codec{}, r)
}

// parsedTextsAttribute declares a list of at most this many strings that parse checks. It is
// omitted if it is empty. longest is the longest value of an element.
func parsedTextsAttribute[V any](a *attributeVisitor, name string, v *[]V, most int, parse func(string) (V, error), text func(V) string, longest V) {
	switch a.mode {
	case modeReading:
		for _, s := range a.Texts(name) {
			value, err := parse(s)
			if err != nil {
				a.Fail(name, err.Error())
			}
			*v = append(*v, value)
		}
	case modeWriting:
		if len(*v) > 0 {
			texts := make([]string, len(*v))
			for i, value := range *v {
				texts[i] = text(value)
			}
			a.encoded[name] = TextListValue(texts)
		}
	case modeMaximizing:
		*v = slices.Repeat([]V{longest}, most)
	case modeDescribing:
		a.describe(name, "L", most, presenceOptional)
	}
}
