package change

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// webhookSecretBytes is the number of random bytes in the secret of a webhook, as recommended by
// Standard Webhooks.
const webhookSecretBytes = 24

// CreateWebhook creates a webhook that receives the events from now on. The result contains its
// secret.
//
// Errors: commerce.InvalidInput, model.DerivationUnavailable, ErrNoWebhookKey, ErrWrongWebhookKey,
// and errors from mutate.
func (m Mutations) CreateWebhook(ctx context.Context, caller Caller, cmd commerce.WebhookRequest) (*commerce.Webhook, error) {
	return m.withSecret(mutate(ctx, m.table, &model.WriteCreateWebhook, caller, cmd, model.DecodeWebhook, func(ctx context.Context, c *change) (*commerce.Webhook, error) {
		if err := c.Derivations.CheckReadable(model.Changes); err != nil {
			return nil, err
		}
		p := &model.Webhooks.AccessPattern
		all, _, err := c.table.QueryUpTo(ctx, p, string(p.PK), string(p.SK), model.Range{}, p.MaxLength, true)
		if err != nil {
			return nil, err
		}
		if len(all) >= p.MaxLength {
			return nil, commerce.NewInvalidInput(commerce.FieldPath("url"), "cannot be added, because there are already %d webhooks: delete one of them first", len(all))
		}
		now := c.table.Now()
		id, err := c.table.NewULID(now)
		if err != nil {
			return nil, err
		}
		w := &commerce.Webhook{
			ID: commerce.WebhookID(id), URL: cmd.URL, Topics: cmd.Topics, Statuses: cmd.Statuses, DocumentID: cmd.DocumentID,
			From: commerce.MinEventIDAt(now), Version: 1, CreatedAt: now, UpdatedAt: now, CreatedBy: caller.Name,
		}
		if err := m.addSecret(w); err != nil {
			return nil, err
		}
		c.createWithCopies(w)
		return w, nil
	}))
}

// addSecret adds a random secret to a webhook, before the previous ones.
func (m Mutations) addSecret(w *commerce.Webhook) error {
	secret := make([]byte, webhookSecretBytes)
	if _, err := io.ReadFull(m.table.Entropy, secret); err != nil {
		return fmt.Errorf("generate the secret of a webhook: %w", err)
	}
	sealed, err := m.webhookKeys.seal(m.table.Entropy, "whsec_"+base64.StdEncoding.EncodeToString(secret), w.ID)
	w.Secrets = append([]string{sealed}, w.Secrets[:min(len(w.Secrets), commerce.MaxWebhookSecrets-1)]...)
	return err
}

// withSecret returns a webhook with its newest secret.
func (m Mutations) withSecret(w *commerce.Webhook, err error) (*commerce.Webhook, error) {
	if err != nil {
		return w, err
	}
	w.Secret, err = m.webhookKeys.open(w.Secrets[0], w.ID)
	return w, err
}

// WebhookSecrets returns the secrets that sign messages to a webhook now, newest first.
//
// Errors: ErrNoWebhookKey, ErrWrongWebhookKey.
func (m Mutations) WebhookSecrets(w *commerce.Webhook) (secrets []string, err error) {
	for i, sealed := range w.Secrets {
		if i > 0 && (w.SecretRotatedAt == nil || m.table.Now().Sub(*w.SecretRotatedAt) >= commerce.WebhookSecretOverlap) {
			break
		}
		secret, err := m.webhookKeys.open(sealed, w.ID)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// PauseWebhook ends the delivery of events to a webhook until it is resumed.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current webhook), and errors from
// mutate.
func (m Mutations) PauseWebhook(ctx context.Context, caller Caller, cmd commerce.WebhookCommand) (*commerce.Webhook, error) {
	return changeWebhook(ctx, m, &model.WritePauseWebhook, caller, cmd, cmd, func(_ *change, w *commerce.Webhook) error {
		w.Paused = true
		return nil
	})
}

// ResumeWebhook continues the delivery of events to a webhook that was paused or disabled.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current webhook), and errors from
// mutate.
func (m Mutations) ResumeWebhook(ctx context.Context, caller Caller, cmd commerce.WebhookCommand) (*commerce.Webhook, error) {
	return changeWebhook(ctx, m, &model.WriteResumeWebhook, caller, cmd, cmd, func(_ *change, w *commerce.Webhook) error {
		w.Paused = false
		return nil
	})
}

// RotateWebhookSecret gives a webhook a new secret, which the result contains. The previous secret
// also signs messages for commerce.WebhookSecretOverlap.
//
// Errors: commerce.NotFound, ErrNoWebhookKey, ErrWrongWebhookKey, and errors from mutate.
func (m Mutations) RotateWebhookSecret(ctx context.Context, caller Caller, cmd commerce.WebhookCommand) (*commerce.Webhook, error) {
	return m.withSecret(changeWebhook(ctx, m, &model.WriteRotateWebhookSecret, caller, cmd, cmd, func(c *change, w *commerce.Webhook) error {
		w.SecretRotatedAt = new(c.table.Now())
		return m.addSecret(w)
	}))
}

// ReplayWebhook delivers the events from a time on again.
//
// Errors: commerce.NotFound, commerce.InvalidInput, model.DerivationUnavailable, and errors from
// mutate.
func (m Mutations) ReplayWebhook(ctx context.Context, caller Caller, cmd commerce.WebhookReplay) (*commerce.Webhook, error) {
	return changeWebhook(ctx, m, &model.WriteReplayWebhook, caller, cmd, commerce.WebhookCommand{WebhookID: cmd.WebhookID}, func(c *change, w *commerce.Webhook) error {
		if err := c.Derivations.CheckReadable(model.Changes); err != nil {
			return err
		}
		switch since := c.Derivations.Of(model.Changes).Since; {
		case cmd.From.Before(since):
			return commerce.NewInvalidInput(commerce.FieldPath("from"), "is before %s: the table lists changes since this time, so use this or a later time", model.Timestamp(since))
		case cmd.From.After(c.table.Now()):
			return commerce.NewInvalidInput(commerce.FieldPath("from"), "is in the future: use the time of the first change to send again")
		}
		w.From = commerce.MinEventIDAt(cmd.From)
		w.Restarts++
		return nil
	})
}

// changeWebhook executes a mutation that changes a webhook.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current webhook), and errors from
// apply and mutate.
func changeWebhook[C any](ctx context.Context, m Mutations, p *model.WritePattern, caller Caller, cmd C, of commerce.WebhookCommand, apply func(*change, *commerce.Webhook) error) (*commerce.Webhook, error) {
	return mutate(ctx, m.table, p, caller, cmd, model.DecodeWebhook, func(ctx context.Context, c *change) (*commerce.Webhook, error) {
		before, current, err := c.readWebhook(ctx, of)
		if err != nil {
			return before, err
		}
		after := *before
		if err := apply(c, &after); err != nil {
			return nil, err
		}
		after.Version++
		after.UpdatedAt = c.table.Now()
		c.updateWithEdges(&c.KeyBuilder, current, before, &after, model.AttrVersion)
		return &after, nil
	})
}

// readWebhook reads the webhook that a mutation changes.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current webhook), model.ErrCorrupt,
// errors from table.WrapError.
func (c *change) readWebhook(ctx context.Context, of commerce.WebhookCommand) (*commerce.Webhook, model.Record, error) {
	k := c.IdentifyingKey(&model.EntityWebhook, string(of.WebhookID))
	return readRecordToChange(ctx, c, model.DecodeWebhook, "webhook", of.WebhookID, "webhookId", of.ExpectedVersion, k)
}

// DeleteWebhook deletes a webhook with its state and the orders that are set aside for it. Another
// server can set one more aside at the same time. Nothing reads its record, because no other
// webhook gets this ID.
//
// Errors: commerce.NotFound, and errors from mutate.
func (m Mutations) DeleteWebhook(ctx context.Context, caller Caller, cmd commerce.WebhookCommand) (*commerce.Webhook, error) {
	for {
		more := false
		w, err := mutate(ctx, m.table, &model.WriteDeleteWebhook, caller, cmd, model.DecodeWebhook, func(ctx context.Context, c *change) (*commerce.Webhook, error) {
			w, record, err := c.readWebhook(ctx, cmd)
			if err != nil {
				return w, err
			}
			p := &model.WebhookFailures.AccessPattern
			failures, _, err := c.table.QueryUpTo(ctx, p, model.KeyOf(record).PK, string(p.SK), model.Range{}, commerce.MaxLines+1, true)
			if err != nil {
				return nil, err
			}
			more = len(failures) > commerce.MaxLines
			for _, f := range failures[:min(len(failures), commerce.MaxLines)] {
				c.remove(f.Attributes(), nil)
			}
			if !more {
				c.remove(record, table.RecordExists)
				c.remove(c.IdentifyingKey(&model.EntityWebhookState, string(w.ID)).Attributes(), nil)
			}
			return w, nil
		})
		if err != nil || !more {
			return w, err
		}
	}
}
