package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// ErrWebhookChanged means that a record was not written, because another server has written the
// state of the webhook meanwhile, or because the webhook was deleted.
var ErrWebhookChanged = errors.New("another server has written the state of the webhook meanwhile, or the webhook was deleted")

// Webhooks returns all webhooks, oldest first. The read is eventually consistent.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (s *Store) Webhooks(ctx context.Context) ([]*commerce.Webhook, error) {
	p := &model.Webhooks.AccessPattern
	// Webhooks that were created at the same time can exceed the limit by a few.
	return readAll(ctx, s, model.Webhooks, string(p.PK), 2*commerce.MaxWebhooks)
}

// WebhookStates returns the states of the webhooks that have one. The read is strongly consistent.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (s *Store) WebhookStates(ctx context.Context, ids []commerce.WebhookID) (map[commerce.WebhookID]*commerce.WebhookState, error) {
	found, err := ReadRecords(ctx, s.Consistent(), model.WebhookStates, ids)
	if err != nil {
		return nil, err
	}
	states := map[commerce.WebhookID]*commerce.WebhookState{}
	for i, f := range found {
		switch {
		case f.Err == nil:
			states[ids[i]] = f.Value
		case !errors.Is(f.Err, commerce.ErrNotFound):
			return nil, f.Err
		}
	}
	return states, nil
}

// SaveWebhookState stores the state of a webhook if the stored Sequence is previousSequence. If
// previousSequence is 0, the webhook must exist and have no state.
//
// Errors: ErrWebhookChanged, table.ClockError, errors from table.WrapError.
func (s *Store) SaveWebhookState(ctx context.Context, state *commerce.WebhookState, previousSequence int) error {
	w := webhookWrites{s: s, b: s.table.KeyBuilder()}
	if previousSequence == 0 {
		w.check(&model.EntityWebhook, state.WebhookID, table.RecordExists)
		w.put(state, table.RecordNotExists)
	} else {
		w.put(state, table.CompareAttribute(model.AttrSequence, "=", model.Num(previousSequence)))
	}
	return w.commit(ctx, model.WebhookStates.ID)
}

// WebhookFailures returns the orders that are set aside for a webhook, oldest first. The read is
// strongly consistent.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (s *Store) WebhookFailures(ctx context.Context, id commerce.WebhookID) ([]*commerce.WebhookFailure, error) {
	partition, err := model.WebhookFailures.PK.Build(string(id))
	if err != nil {
		return nil, err
	}
	return readAll(ctx, s.Consistent(), model.WebhookFailures, partition, 2*commerce.MaxWebhookFailures)
}

// SaveWebhookFailure sets an order aside for a webhook, or replaces the stored failure of this
// order, if owner has the lease of the webhook.
//
// Errors: ErrWebhookChanged, table.ClockError, errors from table.WrapError.
func (s *Store) SaveWebhookFailure(ctx context.Context, f *commerce.WebhookFailure, owner string) error {
	w := webhookWrites{s: s, b: s.table.KeyBuilder()}
	w.check(&model.EntityWebhookState, f.WebhookID, table.CompareAttribute(model.AttrOwner, "=", model.Str(owner)))
	w.put(f, nil)
	return w.commit(ctx, model.WebhookFailures.ID)
}

// DeleteWebhookFailure deletes the failure of an order, if owner has the lease of the webhook. If
// there is no failure, it does nothing.
//
// Errors: ErrWebhookChanged, table.ClockError, errors from table.WrapError.
func (s *Store) DeleteWebhookFailure(ctx context.Context, id commerce.WebhookID, order commerce.OrderID, owner string) error {
	w := webhookWrites{s: s, b: s.table.KeyBuilder()}
	w.check(&model.EntityWebhookState, id, table.CompareAttribute(model.AttrOwner, "=", model.Str(owner)))
	k := w.b.IdentifyingKey(&model.EntityWebhookFailure, string(id), string(order))
	w.writes = append(w.writes, table.Write{Key: k, Units: model.TransactWriteUnits(nil, k.Attributes()), Action: types.TransactWriteItem{
		Delete: &types.Delete{TableName: &s.table.Name, Key: k.Attributes()},
	}})
	return w.commit(ctx, model.WebhookFailures.ID)
}

// readAll returns the records of a list, but at most limit.
func readAll[V any](ctx context.Context, s *Store, p *model.ListPattern[V], partition string, limit int) ([]V, error) {
	records, _, err := s.table.QueryUpTo(ctx, &p.AccessPattern, partition, string(p.SK), model.Range{}, limit, true)
	if err != nil {
		return nil, err
	}
	var all []V
	for _, r := range slices.DeleteFunc(records, func(r model.Reader) bool { return !p.Matches(r) }) {
		v, err := p.Decode(&s.table.Codec, r)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// webhookWrites is a transaction that the delivery of events to a webhook needs.
type webhookWrites struct {
	s      *Store
	b      *model.KeyBuilder
	writes []table.Write
}

// put adds the write of a record, which replaces the stored one. v points to its value.
func (w *webhookWrites) put(v any, when table.Condition) {
	var e table.Expression
	record := model.EncodeWithEdges(w.b, v)[0]
	put := &types.Put{TableName: &w.s.table.Name, Item: record}
	if when != nil {
		put.ConditionExpression = aws.String(when(&e))
	}
	put.ExpressionAttributeNames, put.ExpressionAttributeValues = e.Names, e.Values
	w.writes = append(w.writes, table.Write{Key: model.KeyOf(record), Units: model.TransactWriteUnits(nil, record), Action: types.TransactWriteItem{Put: put}})
}

// check adds a condition on the record of a webhook or of its state.
func (w *webhookWrites) check(of *model.Entity, id commerce.WebhookID, when table.Condition) {
	var e table.Expression
	k, condition := w.b.IdentifyingKey(of, string(id)), when(&e)
	check := &types.ConditionCheck{TableName: &w.s.table.Name, Key: k.Attributes(), ConditionExpression: &condition, ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values}
	w.writes = append(w.writes, table.Write{Key: k, Units: model.TransactWriteUnits(nil, k.Attributes()), Action: types.TransactWriteItem{ConditionCheck: check}})
}

// commit sends the transaction. pattern is the ID of the access pattern that reads the records.
//
// Errors: ErrWebhookChanged, table.ClockError, errors from table.WrapError.
func (w *webhookWrites) commit(ctx context.Context, pattern string) error {
	if w.b.Err != nil {
		return w.b.Err
	}
	err := w.s.table.TransactWrite(ctx, &model.WritePattern{ID: pattern}, w.writes)
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range cancelled.CancellationReasons {
			if aws.ToString(reason.Code) == attempt.ReasonConditionFailed {
				return ErrWebhookChanged
			}
		}
	}
	if err != nil {
		return table.WrapError("TransactWriteItems", "of a webhook", err)
	}
	return nil
}
