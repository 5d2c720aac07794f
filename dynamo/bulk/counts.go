package bulk

import (
	"cmp"
	"context"
	"errors"
	"slices"

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

// counters contains the order counts by status in each counter record. Each counter record counts
// only some of the table's orders.
type counters map[derive.Target]commerce.StatusCounts

func counterOf(c commerce.OrderCounts) derive.Target {
	return derive.TargetOf(&model.EntityOrderCounts, c.Part, c.Shard)
}

// firstCounters returns counts of zero in the counter records that every table has.
func (t Transfers) firstCounters() counters {
	zero := counters{}
	for _, c := range t.table.Layout.Get().FirstCounters() {
		zero[counterOf(c)] = c.ByStatus
	}
	return zero
}

// areZero reports whether all counts are known to be 0.
func (counts counters) areZero() bool {
	for _, c := range counts {
		if c != (commerce.StatusCounts{}) {
			return false
		}
	}
	return counts != nil
}

// add adds the change of the counts in one record. It ignores changes if the counts are unknown.
func (counts counters) add(d derive.Delta) {
	if counts == nil {
		return
	}
	c := counts[d.Target]
	for _, s := range commerce.Statuses() {
		c[s] += d.Int(s.String())
	}
	counts[d.Target] = c
}

// statusCounts returns the table's order counts, or nil if they do not include all orders. If the
// table has no orders and no counts, statusCounts first writes counts of zero.
func (t Transfers) statusCounts(ctx context.Context) (counters, error) {
	counts, kept, err := t.readCounts(ctx)
	if err != nil || kept {
		return counts, err
	}
	return t.writeZeroCounts(ctx)
}

// readCounts returns the order counts that the table stores. If they do not include all orders, it
// returns nil. kept reports whether the table has any records with order counts.
func (t Transfers) readCounts(ctx context.Context) (counts counters, kept bool, err error) {
	p := &model.OrderCounts.AccessPattern
	partitions := t.table.Layout.Get().Partitions(p, string(p.PK))
	records := make([][]model.Reader, len(partitions))
	err = table.Parallel(ctx, len(partitions), table.MaxParallel, func(ctx context.Context, i int) (err error) {
		records[i], _, err = t.table.Consistent().QueryUpTo(ctx, p, partitions[i], string(p.SK), model.Range{}, model.OrderCountParts, true)
		return err
	})
	all := slices.Concat(records...)
	if err != nil || len(all) == 0 {
		return nil, false, err
	}
	counted, first, complete := counters{}, t.firstCounters(), 0
	for _, r := range all {
		counts, err := model.DecodeOrderCounts(r)
		if err != nil {
			return nil, true, nil //nolint:nilerr // `ordergraph check -repair` counts the orders again
		}
		counted[counterOf(*counts)] = counts.ByStatus
		if _, ok := first[counterOf(*counts)]; ok && counts.Complete {
			complete++
		}
	}
	if complete < len(first) {
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
func (t Transfers) writeZeroCounts(ctx context.Context) (counters, error) {
	if none, err := t.hasNoOrders(ctx); err != nil || !none {
		return nil, err
	}
	zero := t.firstCounters()
	// One transaction writes the records of one shard.
	for records := range slices.Chunk(t.orderCountRecords(zero, true), model.OrderCountParts) {
		var actions []types.TransactWriteItem
		for _, r := range records {
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
	}
	return zero, nil
}

// orderCountRecords returns the records that store the given order counts. complete means that the
// counts include all orders.
func (t Transfers) orderCountRecords(counts counters, complete bool) (records []model.Record) {
	b := t.table.KeyBuilder()
	for target, n := range counts {
		c := commerce.OrderCounts{Part: target.Value(0), Shard: target.Value(1), ByStatus: n}
		c.Complete = complete && b.Layout.HasFirstCounters(c.Shard)
		records = append(records, model.OrderCountsRecord(b, c))
	}
	slices.SortFunc(records, func(a, b model.Record) int { return cmp.Compare(a.KeyText(), b.KeyText()) })
	return records
}
