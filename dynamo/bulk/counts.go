package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// InitOrderCounts writes order counts of zero to a table that has no orders and no order counts.
// Otherwise, it does nothing.
//
// Errors: table.ErrUnavailable, table.ErrNoTable, table.ErrAccessDenied.
func (t Transfers) InitOrderCounts(ctx context.Context) error {
	_, err := t.statusCounts(ctx)
	return err
}

// partCounts maps the field Part of a counter record to the record's order counts by status. Each
// counter record counts only some of the table's orders.
type partCounts map[string]commerce.StatusCounts

// statusCounts returns the table's order counts, or nil if they do not include all orders. If the
// table has no orders and no counts, statusCounts first writes counts of zero.
func (t Transfers) statusCounts(ctx context.Context) (partCounts, error) {
	counts, kept, err := t.readCounts(ctx)
	if err != nil || kept {
		return counts, err
	}
	return t.writeZeroCounts(ctx)
}

// readCounts returns the order counts that the table stores. If they do not include all orders, it
// returns nil. kept reports whether the table has any records with order counts.
func (t Transfers) readCounts(ctx context.Context) (counts partCounts, kept bool, err error) {
	p := &model.OrderCounts.AccessPattern
	records, _, err := t.table.Consistent().QueryUpTo(ctx, p, string(p.PK), string(p.SK), model.Range{}, model.OrderCountParts, true)
	if err != nil || len(records) == 0 {
		return nil, false, err
	}
	counted := partCounts{}
	for _, r := range records {
		counts, err := model.DecodeOrderCounts(r)
		if err != nil || !counts.Complete {
			return nil, true, nil //nolint:nilerr // `ordergraph check -repair` counts the orders again
		}
		counted[counts.Part] = counts.ByStatus
	}
	if len(counted) < model.OrderCountParts {
		return nil, true, nil
	}
	return counted, true, nil
}

// hasOrders reports whether the table's index contains any order.
func (t Transfers) hasOrders(ctx context.Context) (bool, error) {
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersByStatus.PK.Build(status.String())
		if err != nil {
			return false, err
		}
		for shard := range t.table.Shards {
			found, _, err := t.table.Query(ctx, &model.OrdersByStatus.AccessPattern, base+model.ShardSuffix(shard, t.table.Shards), "", model.Range{}, 1, true)
			if err != nil || len(found) > 0 {
				return true, err
			}
		}
	}
	return false, nil
}

// writeZeroCounts writes order counts of zero if the table has no orders. If another server or a
// new order has just written counts, writeZeroCounts writes nothing and returns nil.
func (t Transfers) writeZeroCounts(ctx context.Context) (partCounts, error) {
	if has, err := t.hasOrders(ctx); err != nil || has {
		return nil, err
	}
	zero := partCounts{}
	var actions []types.TransactWriteItem
	for _, r := range t.orderCountRecords(zero, true) {
		var e table.Expression
		absent := table.RecordNotExists(&e)
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{
			TableName: &t.table.Name, Item: r, ConditionExpression: &absent, ExpressionAttributeNames: e.Names,
		}})
	}
	_, err := t.table.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions}, t.table.BulkOptions)
	if _, cancelled := errors.AsType[*types.TransactionCanceledException](err); cancelled {
		return nil, nil // another server or a new order has just written counts
	}
	if err != nil {
		return nil, table.WrapError("TransactWriteItems", "of the initial order counts", err)
	}
	return zero, nil
}

// orderCountRecords returns the records that store the given order counts. complete means that the
// counts include all orders.
func (t Transfers) orderCountRecords(counts partCounts, complete bool) []model.Record {
	b := t.table.KeyBuilder()
	var records []model.Record
	for i := range model.OrderCountParts {
		part := fmt.Sprint(i)
		records = append(records, model.OrderCountsRecord(b, commerce.OrderCounts{Part: part, Complete: complete, ByStatus: counts[part]}))
	}
	return records
}

// orderCounter counts orders by status while they are loaded. It is safe for concurrent use.
type orderCounter struct {
	t Transfers

	mu    sync.Mutex
	begun bool
	// hadOrders is true if the table had orders before the load.
	hadOrders bool
	// counts contains the order counts, including all loaded orders. It is nil if the table has no
	// complete order counts.
	counts partCounts
}

// begin reads the order counts of the table and marks them as incomplete. If begin is called again,
// it does nothing.
func (l *orderCounter) begin(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun {
		return nil
	}
	counts, err := l.t.statusCounts(ctx)
	if err != nil {
		return err
	}
	if counts != nil {
		// If the load is interrupted, the table must not contain wrong counts.
		if err := l.t.putAll(ctx, l.t.orderCountRecords(nil, false)); err != nil {
			return err
		}
	}
	for _, part := range counts {
		l.hadOrders = l.hadOrders || part != commerce.StatusCounts{}
	}
	l.begun, l.counts = true, counts
	return nil
}

// add counts the orders of a dataset. It must be called before the orders are written, because it
// subtracts the existing orders that the load replaces.
//
// Errors: table.ErrUnavailable, table.ErrNoTable, table.ErrAccessDenied.
func (l *orderCounter) add(ctx context.Context, dataset commerce.Dataset) error {
	if len(dataset.Orders) == 0 {
		return nil
	}
	if err := l.begin(ctx); err != nil || l.counts == nil {
		return err
	}
	b := l.t.table.KeyBuilder()
	keys := make([]model.Keys, len(dataset.Orders))
	for i, o := range dataset.Orders {
		keys[i] = model.OrderByID.Key(b, o.ID)
	}
	existing := make([]model.Reader, len(keys))
	if l.hadOrders {
		var err error
		if existing, err = l.t.table.Consistent().GetMany(ctx, &model.OrderByID.AccessPattern, keys); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	totals := derive.Totals{Only: []*model.Entity{&model.EntityOrderCounts}}
	for i, o := range dataset.Orders {
		totals.Add(&o.Order)
		if status, err := commerce.ParseStatus(existing[i].Text("status")); err == nil {
			totals.Subtract(&commerce.Order{ID: o.ID, Status: status})
		}
	}
	for _, d := range totals.Deltas {
		counts := l.counts[d.Value(0)]
		for _, s := range commerce.Statuses() {
			counts[s] += d.Int(s.String())
		}
		l.counts[d.Value(0)] = counts
	}
	return nil
}

// finish writes the order counts and returns the number of records written.
//
// Errors: table.ErrUnavailable, table.ErrNoTable, table.ErrAccessDenied.
func (l *orderCounter) finish(ctx context.Context) (int, error) {
	if l.counts == nil {
		return 0, nil
	}
	return model.OrderCountParts, l.t.putAll(ctx, l.t.orderCountRecords(l.counts, true))
}
