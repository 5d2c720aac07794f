package table

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Write is one action of a TransactWriteItems request. Key and Units are only for traces and
// metrics.
type Write struct {
	// Key is the key of the record that the action writes or checks.
	Key    model.Keys
	Action types.TransactWriteItem
	// Units is the computed number of write units that the action consumes.
	Units float64
}

// TransactWrite sends one TransactWriteItems request. Retries send the same idempotency token, so
// DynamoDB commits the transaction at most once. If the local clock and DynamoDB's clock differ by
// more than MaxClockDifference, TransactWrite returns a ClockError. Other errors are
// attempt.ErrBreakerOpen and the errors of the SDK.
func (t *Table) TransactWrite(ctx context.Context, p *model.WritePattern, writes []Write) error {
	items, computed := make([]types.TransactWriteItem, len(writes)), 0.0
	for i, w := range writes {
		items[i] = w.Action
		computed += w.Units
	}
	ctx, timer := trace.StartTimer(ctx, t.observer, trace.Target{Pattern: p.ID, Operation: "TransactWriteItems"})
	a, err := t.transactWrite(ctx, items, timer.NeedsUnits())
	r := trace.Request{Items: len(writes)}
	if err == nil || isTransactionCanceled(err) { // a canceled transaction consumes write units, too
		r.WriteUnits = computed
	}
	// If an earlier attempt has already committed the transaction, DynamoDB reports only the read
	// units of the last attempt, and no write units.
	if err == nil && a.unitsReported && a.transactionReads == 0 {
		r.ReportedWriteUnits = a.units
	}
	if timer.NeedsKey() {
		keys := make([]model.Keys, len(writes))
		for i, w := range writes {
			keys[i] = w.Key
		}
		describeBatch(&r, keys)
	}
	timer.Stop(ctx, r, err)
	return err
}

// isTransactionCanceled reports whether err means that DynamoDB canceled a transaction.
func isTransactionCanceled(err error) bool {
	_, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok
}

// transactWrite sends one TransactWriteItems request. If reportCapacity is true, the result
// contains the consumed write units. The errors are the same as for TransactWrite.
func (t *Table) transactWrite(ctx context.Context, items []types.TransactWriteItem, reportCapacity bool) (readResult, error) {
	db, options := t.Client, keepClientOptions
	if t.fastPath != nil {
		if err := t.writeErr(ctx); err != nil {
			return readResult{}, err
		}
		// If no token can be generated, leave the request to the AWS SDK, which returns the same error.
		token, err := t.fastPath.options.IdempotencyTokenProvider.GetIdempotencyToken()
		if body, ok := transactWriteBody(token, items, reportCapacity); ok && err == nil {
			a, fallback, err := t.fastPath.try(ctx, t.fastPath.targets.transactWriteItems, t.Name, body, 0)
			if a != nil {
				return *a, err
			}
			db, options = fallback.client, fallback.options
		}
	}
	t.stats.fallbacks.Add(1)
	out, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: items, ReturnConsumedCapacity: returnConsumedCapacityParameter(reportCapacity),
	}, t.writeOptions, options)
	if err != nil {
		return readResult{}, err
	}
	a := readResult{}
	for i := range out.ConsumedCapacity {
		a.addConsumedCapacity(&out.ConsumedCapacity[i])
	}
	return a, nil
}

// TransactGet reads one record with TransactGetItems. If the record does not exist, the result is
// nil. The errors are attempt.ErrBreakerOpen and the errors of the AWS SDK.
func (t *Table) TransactGet(ctx context.Context, p *model.WritePattern, k model.Keys) (model.Record, error) {
	ctx, timer := trace.StartTimer(ctx, t.observer, trace.Target{Pattern: p.ID, Operation: "TransactGetItems"})
	a, err := t.transactGet(ctx, k, timer.Enabled())
	if err != nil {
		timer.Stop(ctx, trace.Request{}, err)
		return nil, err
	}
	var record model.Record
	if len(a.Records) > 0 && a.Records[0].Has(model.AttrPK) {
		record = a.Records[0].Attributes()
	}
	if timer.Enabled() {
		r := trace.Request{ReadUnits: 4 * model.ReadUnits(model.SizeOf(record))}
		if a.unitsReported {
			r.ReadUnits = a.units
		}
		if record != nil {
			r.Items = 1
		}
		if timer.NeedsKey() {
			r.Key = k.PK + " " + k.SK
		}
		timer.Stop(ctx, r, nil)
	}
	return record, nil
}

// transactGet sends one TransactGetItems request. If reportCapacity is true, the result contains
// the consumed read units. The errors are the same as for TransactGet.
func (t *Table) transactGet(ctx context.Context, k model.Keys, reportCapacity bool) (readResult, error) {
	db, options := t.Client, keepClientOptions
	if t.fastPath != nil {
		if body, ok := transactGetBody(t.Name, k, reportCapacity); ok {
			a, fallback, err := t.fastPath.try(ctx, t.fastPath.targets.transactGetItems, t.Name, body, 1)
			if a != nil {
				return *a, err
			}
			db, options = fallback.client, fallback.options
		}
	}
	t.stats.fallbacks.Add(1)
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
		TransactItems:          []types.TransactGetItem{{Get: &types.Get{TableName: &t.Name, Key: k.Attributes()}}},
		ReturnConsumedCapacity: returnConsumedCapacityParameter(reportCapacity),
	}, t.writeOptions, options)
	if err != nil {
		return readResult{}, err
	}
	a := readResult{}
	for _, r := range out.Responses {
		if r.Item != nil {
			a.Records = append(a.Records, model.Reader{Record: r.Item})
		}
	}
	for i := range out.ConsumedCapacity {
		a.addConsumedCapacity(&out.ConsumedCapacity[i])
	}
	return a, nil
}

// MaxTransactionActions is the maximum number of actions in one TransactWriteItems request.
const MaxTransactionActions = 100
