package bulk

import (
	"context"
	"errors"
	"fmt"

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

// areZero reports whether all counts are known to be 0.
func (counts partCounts) areZero() bool {
	for _, part := range counts {
		if part != (commerce.StatusCounts{}) {
			return false
		}
	}
	return counts != nil
}

// add adds the change of the counts in one record. It ignores changes if the counts are unknown.
func (counts partCounts) add(d derive.Delta) {
	if counts == nil {
		return
	}
	part := counts[d.Value(0)]
	for _, s := range commerce.Statuses() {
		part[s] += d.Int(s.String())
	}
	counts[d.Value(0)] = part
}

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

// hasNoOrders reports whether the table's index contains no orders.
func (t Transfers) hasNoOrders(ctx context.Context) (bool, error) {
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersByStatus.PK.Build(status.String())
		if err != nil {
			return false, err
		}
		for _, partition := range t.table.Layout.Get().Partitions(&model.OrdersByStatus.AccessPattern, base) {
			found, _, err := t.table.Query(ctx, &model.OrdersByStatus.AccessPattern, partition, "", model.Range{}, 1, true)
			if err != nil || len(found) > 0 {
				return false, err
			}
		}
	}
	return true, nil
}

// writeZeroCounts writes order counts of zero if the table has no orders. If another server or a
// new order has just written counts, writeZeroCounts writes nothing and returns nil.
func (t Transfers) writeZeroCounts(ctx context.Context) (partCounts, error) {
	if none, err := t.hasNoOrders(ctx); err != nil || !none {
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
