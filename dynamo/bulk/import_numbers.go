package bulk

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// countInvalidator removes order counts that an import would make wrong. These are the counts for
// products and account reps. `ordergraph check -repair` counts the orders again. A countInvalidator
// is safe for concurrent use.
type countInvalidator struct {
	Transfers
	mu sync.Mutex
	// done contains the keys of products and account reps whose order counts were removed or include
	// the imported orders.
	done map[model.Keys]bool
}

// HasRecords reports whether the table has any records. It ignores the layout and the records with
// order counts by status, because a table without orders can contain them.
//
// Errors are wrapped by table.WrapError.
func (t Transfers) HasRecords(ctx context.Context) (bool, error) {
	out, err := t.table.Client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &t.table.Name, Limit: aws.Int32(int32(len(t.table.Layout.Get().FirstCounters())) + 2), ConsistentRead: aws.Bool(true),
	}, t.table.BulkOptions)
	if err != nil {
		return false, table.WrapError("Scan", "to find records before the import", err)
	}
	for _, rec := range out.Items {
		if e := model.EntityOf(model.KeyOf(rec)); e != &model.EntityOrderCounts && e != &model.EntityLayout {
			return true, nil
		}
	}
	return false, nil
}

// importedStatuses counts the imported orders by status. It is needed if the counts in the file belong
// to another layout.
type importedStatuses struct {
	Transfers
	counts counters
	// complete reports whether each imported order is new and was counted.
	complete bool
}

// add adds the record of a line.
func (s *importedStatuses) add(line *importLine) {
	switch e := model.EntityOf(line.key); e {
	case &model.EntityOrderCounts:
		counter := derive.TargetOf(e, model.FirstPlaceholderValue(e.SK, line.key.SK), e.Shard(line.key.PK))
		s.counts.add(derive.Delta{Target: counter}) // write replaces the line's counts
	case &model.EntityOrder:
		status, err := commerce.ParseStatus(line.status)
		s.complete = s.complete && err == nil && line.outcome == outcomeWritten
		orders := derive.Totals{Layout: s.table.Layout.Get(), Only: []*model.Entity{&model.EntityOrderCounts}}
		orders.Add(&commerce.Order{ID: commerce.OrderID(model.FirstPlaceholderValue(e.PK, line.key.PK)), Status: status})
		for _, d := range orders.Deltas {
			s.counts.add(d)
		}
	}
}

// write writes the counts. If they are incomplete or the table may contain other orders, it marks the
// stored counts as incomplete, and the server does not return them.
func (s *importedStatuses) write(ctx context.Context, isWholeTable bool) error {
	if isWholeTable && s.complete {
		return s.putAll(ctx, s.orderCountRecords(s.counts, true))
	}
	first := counterOf(s.table.Layout.Get().FirstCounters()[0]) // one incomplete record is enough
	_, err := s.updateIf(ctx, first.Key(s.table.KeyBuilder()), table.AttributeExists(model.AttrComplete), func(e *table.Expression) string {
		return e.UpdateRecord(nil, model.Record{model.AttrComplete: model.Bool(false)})
	})
	return err
}

// isCounted reports whether an order count can depend on the record with the key k.
func isCounted(k model.Keys) bool {
	e := model.EntityOf(k)
	return e != nil && (e.Name == model.EntityOrderItem.Name || e.Name == model.EntityCustomerOrder.Name || e.Name == model.EntityRepOrders.Name)
}

// counters returns the keys of the products and account reps whose order counts depend on rec.
func (n *countInvalidator) counters(rec model.Record) (keys []model.Keys) {
	order, k := partialOrder(rec), model.KeyOf(rec)
	if e := model.EntityOf(k); e != nil && e.Name == model.EntityRepOrders.Name {
		order.AccountRepID = commerce.EmployeeID(model.FirstPlaceholderValue(e.PK, k.PK)) // one of the records that count
	}
	b := n.table.KeyBuilder()
	for _, item := range order.Items {
		keys = append(keys, model.ProductBySKU.Key(b, item.SKU).Primary())
	}
	if order.AccountRepID != "" {
		keys = append(keys, model.KeyOf(model.RepOrderCountRecord(b, commerce.RepOrderCount{EmployeeID: order.AccountRepID, Part: model.FirstRepCountPart})))
	}
	if b.Err != nil || slices.Contains(keys, k) {
		return nil
	}
	return keys
}

// preservedCountAttributes returns the names of the attributes that contain order counts in a
// record. k is the record's key. If an import replaces the record, the import keeps the values of
// these attributes.
func preservedCountAttributes(k model.Keys) []string {
	switch e := model.EntityOf(k); {
	case e == nil:
		return nil
	case e.Name == model.EntityProduct.Name:
		return []string{model.AttrOrderCount}
	case e.Name == model.EntityRepOrders.Name:
		return []string{model.AttrOrders, model.AttrComplete}
	}
	return nil
}

// withExistingCounts returns rec with the order counts of old. old is the record in the table with
// the same key.
func withExistingCounts(old, rec model.Record) model.Record {
	rec = maps.Clone(rec)
	for _, name := range preservedCountAttributes(model.KeyOf(rec)) {
		if delete(rec, name); old[name] != nil {
			rec[name] = old[name]
		}
	}
	return rec
}

// removeCounts removes the order counts that become wrong when rec replaces the record old. If rec
// is new, old is nil.
//
// Errors are wrapped by table.WrapError.
func (n *countInvalidator) removeCounts(ctx context.Context, old, rec model.Record) error {
	before, after := n.counters(old), n.counters(rec)
	if slices.Equal(before, after) {
		return nil
	}
	for _, k := range append(before, after...) {
		n.mu.Lock()
		done := n.done[k]
		n.mu.Unlock()
		if done {
			continue
		}
		name, value := model.AttrOrderCount, model.Record(nil)
		if e := model.EntityOf(k); e.Name == model.EntityRepOrders.Name {
			name, value = model.AttrComplete, model.Record{model.AttrComplete: model.Bool(false)}
		}
		if _, err := n.updateIf(ctx, k, table.AttributeExists(name), func(e *table.Expression) string {
			return e.UpdateRecord(model.Record{name: nil}, value)
		}); err != nil {
			return err
		}
		n.markDone(k)
	}
	return nil
}

// markDone records that the order count with the key k need not be removed any more. Either it was
// already removed, or it was imported and includes the imported orders.
func (n *countInvalidator) markDone(k model.Keys) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[k] = true
}
