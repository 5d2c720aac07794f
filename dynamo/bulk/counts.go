package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// BeginCounts begins to count orders by status in a table that has no orders yet. It does nothing
// if the table has orders, or counts them already.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (t Transfers) BeginCounts(ctx context.Context) error {
	_, err := t.countsSoFar(ctx)
	return err
}

// partCounts are the numbers of orders of each part by status, by the part's name.
type partCounts map[string]commerce.StatusCounts

// countsSoFar returns the counts that the table has, nil if not all orders are counted.
func (t Transfers) countsSoFar(ctx context.Context) (partCounts, error) {
	counts, kept, err := t.readCounts(ctx)
	if err != nil || kept {
		return counts, err
	}
	return t.beginCounts(ctx)
}

// readCounts returns the counts that the table has, nil if not all orders are counted. kept reports
// whether there are records of counts.
func (t Transfers) readCounts(ctx context.Context) (counts partCounts, kept bool, err error) {
	p := &model.OrderCounts.AccessPattern
	records, _, err := t.table.Strong().QueryUpTo(ctx, p, string(p.PK), string(p.SK), model.Range{}, model.OrderCountParts, true)
	if err != nil || len(records) == 0 {
		return nil, false, err
	}
	have := partCounts{}
	for _, r := range records {
		counts, err := model.DecodeOrderCounts(r)
		if err != nil || !counts.Complete {
			return nil, true, nil //nolint:nilerr // `ordergraph check -repair` counts them anew
		}
		have[counts.Part] = counts.ByStatus
	}
	if len(have) < model.OrderCountParts {
		return nil, true, nil
	}
	return have, true, nil
}

// hasOrders reports whether the index lists orders.
func (t Transfers) hasOrders(ctx context.Context) (bool, error) {
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersByStatus.PK.Key(status.String())
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

// beginCounts writes that there are no orders, if there are none. Only the first of several servers
// writes it, and none does after an order has been placed.
func (t Transfers) beginCounts(ctx context.Context) (partCounts, error) {
	if has, err := t.hasOrders(ctx); err != nil || has {
		return nil, err
	}
	none := partCounts{}
	var actions []types.TransactWriteItem
	for _, r := range t.countRecords(none, true) {
		var e table.Expression
		absent := table.Absent(&e)
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{
			TableName: &t.table.Name, Item: r, ConditionExpression: &absent, ExpressionAttributeNames: e.Names,
		}})
	}
	_, err := t.table.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions}, t.table.Bulk)
	if _, cancelled := errors.AsType[*types.TransactionCanceledException](err); cancelled {
		return nil, nil // somebody else has begun
	}
	if err != nil {
		return nil, table.Failed("TransactWriteItems", "to begin to count orders", err)
	}
	return none, nil
}

// countRecords are the records of the counts of all parts.
func (t Transfers) countRecords(counts partCounts, complete bool) []model.Record {
	b := t.table.KeyBuilder()
	var records []model.Record
	for i := range model.OrderCountParts {
		part := fmt.Sprint(i)
		records = append(records, model.OrderCountsRecord(b, commerce.OrderCounts{Part: part, Complete: complete, ByStatus: counts[part]}))
	}
	return records
}

// loadedCounts counts orders while they are loaded. Meanwhile the table counts none, so that
// loading that ends early leaves no wrong numbers: `ordergraph check -repair` counts the orders
// then. It is safe for concurrent use.
type loadedCounts struct {
	t Transfers

	mu    sync.Mutex
	begun bool
	// any reports whether the table had orders before.
	any bool
	// counts are those of the table with all orders loaded so far, nil if the table does not count
	// its orders.
	counts partCounts
}

// begin begins to count, before the first order is loaded.
func (l *loadedCounts) begin(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun {
		return nil
	}
	counts, err := l.t.countsSoFar(ctx)
	if err != nil {
		return err
	}
	if counts != nil {
		if err := l.t.putAll(ctx, l.t.countRecords(nil, false)); err != nil {
			return err
		}
	}
	for _, part := range counts {
		l.any = l.any || part != commerce.StatusCounts{}
	}
	l.begun, l.counts = true, counts
	return nil
}

// add counts the orders of a book, which has yet to be written. Those that the table has are
// replaced.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (l *loadedCounts) add(ctx context.Context, book commerce.Book) error {
	if len(book.Orders) == 0 {
		return nil
	}
	if err := l.begin(ctx); err != nil || l.counts == nil {
		return err
	}
	b := l.t.table.KeyBuilder()
	ks := make([]model.Keys, len(book.Orders))
	for i, o := range book.Orders {
		ks[i] = model.OrderByID.Key(b, o.ID)
	}
	had := make([]model.Reader, len(ks))
	if l.any {
		var err error
		if had, err = l.t.table.Strong().GetMany(ctx, &model.OrderByID.AccessPattern, ks); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range book.Orders {
		part := model.OrderCountPart(o.ID)
		counts := l.counts[part]
		counts[o.Status]++
		if status, err := commerce.ParseStatus(had[i].Text("status")); err == nil {
			counts[status]--
		}
		l.counts[part] = counts
	}
	return nil
}

// finish writes the counts. It returns how many records they take.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied.
func (l *loadedCounts) finish(ctx context.Context) (int, error) {
	if l.counts == nil {
		return 0, nil
	}
	return model.OrderCountParts, l.t.putAll(ctx, l.t.countRecords(l.counts, true))
}
