package commerce

import (
	"slices"
	"time"
)

// WebhookID is a ULID, like OrderID.
type WebhookID string

// Limits of webhooks.
const (
	// MaxWebhooks is the maximum number of webhooks.
	MaxWebhooks = 100
	// MaxWebhookFailures is the maximum number of orders that are set aside for one webhook.
	MaxWebhookFailures = 1_000
	// MaxWebhookDelivered is the maximum number of delivered events that the state of a webhook
	// contains.
	MaxWebhookDelivered = 64
	// MaxWebhookURL is the maximum size in bytes of a webhook's URL.
	MaxWebhookURL = 2048
	// MaxWebhookTopics is more than the number of event types.
	MaxWebhookTopics = 40
	// MaxWebhookSecrets is the maximum number of a webhook's secrets.
	MaxWebhookSecrets = 2
	// MaxWebhookError is the maximum size in bytes of the text of a failed delivery.
	MaxWebhookError = 500
	// WebhookSecretOverlap is the time in which messages are also signed with the previous secret,
	// after a new one has replaced it.
	WebhookSecretOverlap = 24 * time.Hour
)

// Webhook is a URL to which the events of orders are sent. Admins change it with mutations.
type Webhook struct {
	ID  WebhookID
	URL string
	// Topics are the types of the events to send. If it is empty, all types are sent.
	Topics []EventType
	// If Statuses is not empty, only events that change an order's status to one of them are sent.
	Statuses []Status
	// DocumentID is the ID of a trusted document whose result is the payload. If it is empty, the
	// payload is the default one.
	DocumentID string
	// Secrets are encrypted, newest first. The previous secret is valid for WebhookSecretOverlap after
	// SecretRotatedAt.
	Secrets         []string
	SecretRotatedAt *time.Time
	// Secret is the newest secret, not encrypted. It is set only in the results of the mutations that
	// create a secret, and it is not stored.
	Secret string
	Paused bool
	// Delivery begins after the event with the ID From. Restarts is incremented when From changes.
	From                 EventID
	Restarts             int
	Version              int
	CreatedAt, UpdatedAt time.Time
	// CreatedBy is the name of the principal that created the webhook.
	CreatedBy string
}

// WebhookState is how far the events have been delivered to a webhook. Only the server that holds
// the webhook's lease writes it.
type WebhookState struct {
	WebhookID WebhookID
	// Owner is the server that holds the lease. Sequence counts the writes of the record. Wanted is a
	// server that wants to take over the lease, or empty.
	Owner    string
	Sequence int
	Wanted   string
	// Cursor is the ID of an event up to which all events have been delivered or set aside.
	Cursor EventID
	// WebhookVersion and Restarts are the values in the Webhook that the owner has applied.
	WebhookVersion, Restarts int
	// Failures counts the failed deliveries since the last success. RetryAt is the time of the next
	// attempt. DisabledReason is why no further attempt is made, or empty.
	Failures       int
	RetryAt        *time.Time
	DisabledReason string
	// LastError is the text of the last failure.
	LastError                  string
	LastErrorAt, LastSuccessAt *time.Time
	// Pending is the number of events that are known but not delivered, and PendingSince is the time
	// of the oldest one.
	Pending      int
	PendingSince *time.Time
	// Delivered are the last events after Cursor that have been delivered, at most
	// MaxWebhookDelivered.
	Delivered []EventID
}

// Wants reports whether an event is sent to the webhook.
func (w *Webhook) Wants(e *Event) bool {
	if len(w.Topics) > 0 && !slices.Contains(w.Topics, e.Type) {
		return false
	}
	return len(w.Statuses) == 0 || e.To != e.From && slices.Contains(w.Statuses, e.To)
}

// WebhookFailure is an order that is set aside for a webhook: its events from EventID on have not
// been delivered, and are tried again later. Only the server that holds the webhook's lease writes
// and deletes it.
type WebhookFailure struct {
	WebhookID WebhookID
	OrderID   OrderID
	// EventID is the first event that has not been delivered.
	EventID  EventID
	Attempts int
	// RetryAt is the time of the next attempt, and Since is the time of the first one.
	RetryAt, Since time.Time
	// Error is the text of the last failure.
	Error string
}

// WebhookStatus describes the delivery of events to a webhook.
type WebhookStatus string

// Statuses of webhooks.
const (
	WebhookActive   WebhookStatus = "active"
	WebhookRetrying WebhookStatus = "retrying"
	WebhookPaused   WebhookStatus = "paused"
	WebhookDisabled WebhookStatus = "disabled"
)

// Status returns the status of a webhook with the given state. A change of the webhook ends its
// disabling.
func (w Webhook) Status(s WebhookState) WebhookStatus {
	switch {
	case w.Paused:
		return WebhookPaused
	case s.DisabledReason != "" && s.WebhookVersion >= w.Version:
		return WebhookDisabled
	case s.Failures > 0:
		return WebhookRetrying
	default:
		return WebhookActive
	}
}

// Lag returns the age of the oldest event that is not delivered. If all are delivered, it returns
// 0.
func (s WebhookState) Lag(now time.Time) time.Duration {
	if s.PendingSince == nil {
		return 0
	}
	return max(0, now.Sub(*s.PendingSince))
}
