package bulk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// productRepCounter counts the orders of products and account reps while orders are loaded. An
// account rep is the employee responsible for a customer. A productRepCounter is safe for
// concurrent use.
type productRepCounter struct {
	Transfers
	mu sync.Mutex
	// empty points to true if the table had no orders before the load. It is nil until hadNoOrders has
	// read the table.
	empty *bool
	// products contains an entry for each loaded product, and reps for each loaded employee. Both also
	// contain entries for the products and account reps of loaded orders. reps also contains the
	// account reps of replaced orders.
	products map[commerce.SKU]*productOrderCount
	reps     map[commerce.EmployeeID]*repOrderCounts
}

// productOrderCount is the order count of a product.
type productOrderCount struct {
	// counted is true if the field orders is the correct number of the product's orders. It is false
	// if the product already had orders, but the table had no count of these orders.
	counted bool
	orders  int
	// revision is the product's stock revision, which increases with every change of the stock. The
	// count is written only if the table still has the same stock revision.
	revision types.AttributeValue
}

// repOrderCounts contains the number of loaded orders of an account rep.
type repOrderCounts struct {
	// counted is false if the table has no count of the rep's earlier orders.
	counted bool
	// The rep's order count consists of several records. more maps the Part of each record to its
	// number of loaded orders.
	more map[string]int
}

func (t Transfers) newProductRepCounter() *productRepCounter {
	return &productRepCounter{Transfers: t, products: map[commerce.SKU]*productOrderCount{}, reps: map[commerce.EmployeeID]*repOrderCounts{}}
}

// add counts the orders of a dataset for each product and each account rep. It must be called
// before the dataset is written.
//
// Errors are wrapped by table.WrapError.
func (l *productRepCounter) add(ctx context.Context, dataset commerce.Dataset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.removeProductCounts(ctx, dataset); err != nil {
		return err
	}
	for _, p := range dataset.Products {
		l.products[p.SKU].revision = nil // the load replaces the product's record, and the new record has no stock revision
	}
	for _, e := range dataset.Employees {
		if _, err := l.repCount(ctx, e.ID); err != nil {
			return err
		}
	}
	return l.addOrders(ctx, dataset.Orders)
}

func (l *productRepCounter) addOrders(ctx context.Context, orders []commerce.OrderWithItems) error {
	b := l.table.KeyBuilder()
	var copies, items []model.Keys
	for _, o := range orders {
		copies = append(copies, model.KeysOfCustomerOrder(b, model.CustomerOrderKey{Customer: o.CustomerID, Order: o.ID}))
		for _, line := range o.Lines {
			items = append(items, model.KeysOfOrderItem(b, model.OrderItemKey{Order: o.ID, SKU: line.SKU}))
		}
	}
	had, err := l.existingRecords(ctx, append(slices.Clone(copies), items...))
	if err != nil {
		return err
	}
	for i, o := range orders {
		before := commerce.Order{ID: o.ID, AccountRepID: commerce.EmployeeID(model.FirstPlaceholderValue(model.EntityCustomerOrder.IndexPK, model.TextOf(had[copies[i]], model.AttrIndexPK)))}
		for _, line := range o.Lines {
			if had[items[0]] != nil {
				before.Items = append(before.Items, line)
			}
			items = items[1:]
		}
		o.Items = o.Lines
		deltas, err := derive.Deltas(derive.Change{Before: &before, After: &o.Order})
		if err != nil {
			return err
		}
		for _, d := range deltas {
			switch d.Entity.Name {
			case model.EntityProduct.Name:
				l.products[commerce.SKU(d.Value(0))].orders += d.Int(model.AttrOrderCount)
			case model.EntityRepOrders.Name:
				rep, err := l.repCount(ctx, commerce.EmployeeID(d.Value(0)))
				if err != nil {
					return err
				}
				rep.more[d.Value(1)] += d.Int(model.AttrOrders)
			}
		}
	}
	return nil
}

// existingRecords reads the records with the given keys from the table. If the table had no orders
// before the load, it reads nothing and returns no records.
func (l *productRepCounter) existingRecords(ctx context.Context, keys []model.Keys) (map[model.Keys]model.Record, error) {
	had := map[model.Keys]model.Record{}
	if empty, err := l.hadNoOrders(ctx); err != nil || empty || len(keys) == 0 {
		return had, err
	}
	found, err := l.table.Consistent().GetMany(ctx, &model.OrderByID.AccessPattern, keys)
	for i, r := range found {
		had[keys[i]] = r.Attributes()
	}
	return had, err
}

// hadNoOrders reports whether the table had no orders before the load.
func (l *productRepCounter) hadNoOrders(ctx context.Context) (bool, error) {
	if l.empty == nil {
		counts, kept, err := l.readCounts(ctx)
		empty := counts != nil
		if err == nil && !kept {
			var has bool
			has, err = l.hasOrders(ctx)
			empty = !has
		}
		if err != nil {
			return false, err
		}
		for _, part := range counts {
			empty = empty && part == commerce.StatusCounts{}
		}
		l.empty = &empty
	}
	return *l.empty, nil
}

// hasNoListedOrders reports whether the index lists no orders for a product or account rep. The
// parameter named of is the product's SKU or the rep's employee ID.
func (l *productRepCounter) hasNoListedOrders(ctx context.Context, p *model.AccessPattern, of string) (bool, error) {
	if empty, err := l.hadNoOrders(ctx); err != nil || empty {
		return empty, err
	}
	partition, err := p.PK.Build(of)
	if err != nil {
		return false, err
	}
	found, _, err := l.table.Query(ctx, p, partition, string(p.SK), model.Range{}, 1, true)
	return len(found) == 0, err
}

// removeProductCounts reads the order counts of a dataset's products and removes the counts from
// the table. So an interrupted load leaves no wrong counts.
func (l *productRepCounter) removeProductCounts(ctx context.Context, dataset commerce.Dataset) error {
	var skus []commerce.SKU
	for _, p := range dataset.Products {
		skus = append(skus, p.SKU)
	}
	for _, o := range dataset.Orders {
		for _, line := range o.Lines {
			skus = append(skus, line.SKU)
		}
	}
	slices.Sort(skus)
	skus = slices.DeleteFunc(slices.Compact(skus), func(sku commerce.SKU) bool { return l.products[sku] != nil })
	if len(skus) == 0 {
		return nil
	}
	if _, err := l.hadNoOrders(ctx); err != nil {
		return err
	}
	taken := make([]*productOrderCount, len(skus))
	err := table.Parallel(ctx, len(skus), table.MaxParallel, func(ctx context.Context, i int) (err error) {
		taken[i], err = l.takeProductCount(ctx, skus[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, sku := range skus {
		l.products[sku] = taken[i]
	}
	return nil
}

func (l *productRepCounter) takeProductCount(ctx context.Context, sku commerce.SKU) (*productOrderCount, error) {
	k := model.ProductBySKU.Key(l.table.KeyBuilder(), sku)
	was, err := l.updateIf(ctx, k, table.AttributeExists(model.AttrOrderCount), func(e *table.Expression) string {
		return e.UpdateRecord(model.Record{model.AttrOrderCount: nil}, nil)
	})
	if err != nil {
		return nil, err
	}
	at := model.Reader{Record: was}
	product := &productOrderCount{counted: table.RecordHasNumber(was, model.AttrOrderCount), orders: at.Number(model.AttrOrderCount), revision: was[model.AttrStockRevision]}
	if was[model.AttrOrderCount] == nil {
		// If the product has no orders, its count starts at 0.
		product.counted, err = l.hasNoListedOrders(ctx, &model.ProductOrderItems.AccessPattern, string(sku))
	}
	return product, err
}

// repCount returns the counts of an account rep's loaded orders. The first call for a rep marks the
// rep's count in the table as incomplete.
func (l *productRepCounter) repCount(ctx context.Context, id commerce.EmployeeID) (*repOrderCounts, error) {
	if rep := l.reps[id]; rep != nil {
		return rep, nil
	}
	first := l.repCountRecord(id, model.FirstRepCountPart, true)
	was, err := l.updateIf(ctx, model.KeyOf(first), table.CompareAttribute(model.AttrComplete, "=", model.Bool(true)), func(e *table.Expression) string {
		return e.UpdateRecord(nil, model.Record{model.AttrComplete: model.Bool(false)})
	})
	if err != nil {
		return nil, err
	}
	rep := &repOrderCounts{counted: (&model.Reader{Record: was}).Flag(model.AttrComplete), more: map[string]int{}}
	if !rep.counted {
		p := &model.EmployeeOrderCount.AccessPattern
		parts, _, err := l.table.Consistent().QueryUpTo(ctx, p, model.KeyOf(first).PK, string(p.SK), model.Range{}, model.RepOrderCountParts, true)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			// If the rep has no orders, the count starts at 0.
			if rep.counted, err = l.hasNoListedOrders(ctx, &model.EmployeeOrders.AccessPattern, string(id)); err != nil {
				return nil, err
			}
		}
	}
	l.reps[id] = rep
	return rep, nil
}

func (l *productRepCounter) repCountRecord(id commerce.EmployeeID, part string, complete bool) model.Record {
	return model.RepOrderCountRecord(l.table.KeyBuilder(), commerce.RepOrderCount{EmployeeID: id, Part: part, Complete: complete})
}

// updateIf changes the record with the key k if the record satisfies a condition, the parameter
// when. In any case, updateIf returns the previous record, or nil if the record did not exist.
//
// Errors are wrapped by table.WrapError.
func (t Transfers) updateIf(ctx context.Context, k model.Keys, when table.Condition, change func(*table.Expression) string) (model.Record, error) {
	var e table.Expression
	text, condition := change(&e), when(&e)
	out, err := t.table.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.table.Name, Key: k.Primary().Attributes(), UpdateExpression: &text, ConditionExpression: &condition,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValues: types.ReturnValueAllOld, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, t.table.BulkOptions)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, nil
	}
	if err != nil {
		return nil, table.WrapError("UpdateItem", fmt.Sprintf("%s %s", k.PK, k.SK), err)
	}
	return out.Attributes, nil
}

// write writes the order counts after all orders have been loaded. It returns the number of records
// written for account reps.
//
// Errors are wrapped by table.WrapError.
func (l *productRepCounter) write(ctx context.Context) (int, error) {
	skus := slices.Sorted(maps.Keys(l.products))
	err := table.Parallel(ctx, len(skus), table.MaxParallel, func(ctx context.Context, i int) error {
		product := l.products[skus[i]]
		if !product.counted {
			return nil
		}
		// If a server has sold the product during the load, the count would be wrong and is not written.
		stands := model.Record{}
		if product.revision != nil {
			stands[model.AttrStockRevision] = product.revision
		}
		_, err := l.updateIf(ctx, model.ProductBySKU.Key(l.table.KeyBuilder(), skus[i]), table.AttributesUnchanged(stands, model.AttrStockRevision, model.AttrOrderCount), func(e *table.Expression) string {
			return e.UpdateRecord(nil, model.Record{model.AttrOrderCount: model.Num(product.orders)})
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	written := 0
	for _, id := range slices.Sorted(maps.Keys(l.reps)) {
		n, err := l.writeRepCounts(ctx, id, l.reps[id])
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// writeRepCounts adds an account rep's loaded orders to the stored count, which a server may have
// increased during the load. It also marks the count as complete. If rep.counted is false,
// writeRepCounts writes nothing.
func (l *productRepCounter) writeRepCounts(ctx context.Context, id commerce.EmployeeID, rep *repOrderCounts) (int, error) {
	var actions []types.TransactWriteItem
	for i := range model.RepOrderCountParts {
		part := strconv.Itoa(i)
		if !rep.counted || rep.more[part] == 0 && part != model.FirstRepCountPart {
			continue
		}
		var e table.Expression
		record := l.repCountRecord(id, part, part == model.FirstRepCountPart)
		others := maps.Clone(record)
		delete(others, model.AttrOrders)
		text := e.IncrementAndSet(model.Record{model.AttrOrders: model.Num(rep.more[part])}, others)
		actions = append(actions, types.TransactWriteItem{Update: &types.Update{
			TableName: &l.table.Name, Key: model.KeyOf(record).Attributes(), UpdateExpression: &text,
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		}})
	}
	if len(actions) == 0 {
		return 0, nil
	}
	if _, err := l.table.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions}, l.table.BulkOptions); err != nil {
		return 0, table.WrapError("TransactWriteItems", "to count the orders of "+string(id), err)
	}
	return len(actions), nil
}
