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
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// loadedLists counts the orders of products and account reps while they are loaded. Meanwhile the
// records have no counts, so an interrupted load leaves no wrong counts. In that case `ordergraph
// check -repair` counts the orders. It is safe for concurrent use.
type loadedLists struct {
	Transfers
	mu sync.Mutex
	// empty reports whether the table had no orders before loading. It is nil until this has been
	// read.
	empty *bool
	// products and reps contain the records that are loaded, and those that a loaded order refers to.
	products map[commerce.SKU]*loadedProduct
	reps     map[commerce.EmployeeID]*loadedRep
}

// loadedProduct is the order count of a product.
type loadedProduct struct {
	// counted reports whether the field orders is the number of orders. If it is false, the orders
	// have not been counted.
	counted bool
	orders  int
	// revision is the stock revision that the product must have when the count is written. nil means
	// no condition.
	revision types.AttributeValue
}

// loadedRep contains the loaded orders of an account rep by part. counted is false if the rep's
// orders have not been counted.
type loadedRep struct {
	counted bool
	more    map[string]int
}

func (t Transfers) newLoadedLists() *loadedLists {
	return &loadedLists{Transfers: t, products: map[commerce.SKU]*loadedProduct{}, reps: map[commerce.EmployeeID]*loadedRep{}}
}

// add registers the products, employees and orders of a dataset before they are loaded.
//
// It returns the errors of table.WrapError.
func (l *loadedLists) add(ctx context.Context, dataset commerce.Dataset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.takeProducts(ctx, dataset); err != nil {
		return err
	}
	for _, p := range dataset.Products {
		l.products[p.SKU].revision = nil // the record is replaced
	}
	for _, e := range dataset.Employees {
		if _, err := l.rep(ctx, e.ID); err != nil {
			return err
		}
	}
	return l.addOrders(ctx, dataset.Orders)
}

func (l *loadedLists) addOrders(ctx context.Context, orders []commerce.OrderWithItems) error {
	b := l.table.KeyBuilder()
	var copies, items []model.Keys
	for _, o := range orders {
		copies = append(copies, model.CustomerOrderKeys(b, model.CustomerOrderKey{Customer: o.CustomerID, Order: o.ID}))
		for _, line := range o.Lines {
			items = append(items, model.OrderItemKeys(b, model.OrderItemKey{Order: o.ID, SKU: line.SKU}))
		}
	}
	had, err := l.existing(ctx, append(slices.Clone(copies), items...))
	if err != nil {
		return err
	}
	for i, o := range orders {
		was := commerce.EmployeeID(model.KeyValue(model.EntityCustomerOrder.IndexPK, model.TextOf(had[copies[i]], model.AttrIndexPK)))
		for rep, by := range map[commerce.EmployeeID]int{was: -1, o.AccountRepID: 1} {
			if rep == "" || was == o.AccountRepID {
				continue
			}
			of, err := l.rep(ctx, rep)
			if err != nil {
				return err
			}
			of.more[model.RepOrderPart(o.ID)] += by
		}
		for _, line := range o.Lines {
			if had[items[0]] == nil {
				l.products[line.SKU].orders++
			}
			items = items[1:]
		}
	}
	return nil
}

// existing returns the records that the table has.
func (l *loadedLists) existing(ctx context.Context, keys []model.Keys) (map[model.Keys]model.Record, error) {
	had := map[model.Keys]model.Record{}
	if empty, err := l.isEmpty(ctx); err != nil || empty || len(keys) == 0 {
		return had, err
	}
	found, err := l.table.Consistent().GetMany(ctx, &model.OrderByID.AccessPattern, keys)
	for i, r := range found {
		had[keys[i]] = r.Attributes()
	}
	return had, err
}

// isEmpty reports whether the table had no orders before loading.
func (l *loadedLists) isEmpty(ctx context.Context) (bool, error) {
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

// isUnlisted reports whether a list of orders in the index was empty.
func (l *loadedLists) isUnlisted(ctx context.Context, p *model.AccessPattern, of string) (bool, error) {
	if empty, err := l.isEmpty(ctx); err != nil || empty {
		return empty, err
	}
	partition, err := p.PK.Build(of)
	if err != nil {
		return false, err
	}
	found, _, err := l.table.Query(ctx, p, partition, string(p.SK), model.Range{}, 1, true)
	return len(found) == 0, err
}

// takeProducts removes the counts of products that a dataset contains or refers to for the first
// time. A product without orders and without a count starts at 0.
func (l *loadedLists) takeProducts(ctx context.Context, dataset commerce.Dataset) error {
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
	if _, err := l.isEmpty(ctx); err != nil {
		return err
	}
	taken := make([]*loadedProduct, len(skus))
	err := table.Parallel(ctx, len(skus), table.MaxParallel, func(ctx context.Context, i int) (err error) {
		taken[i], err = l.takeProduct(ctx, skus[i])
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

func (l *loadedLists) takeProduct(ctx context.Context, sku commerce.SKU) (*loadedProduct, error) {
	k := model.ProductBySKU.Key(l.table.KeyBuilder(), sku)
	was, err := l.update(ctx, k, table.AttributeExists(model.AttrOrderCount), func(e *table.Expression) string {
		return e.UpdateRecord(model.Record{model.AttrOrderCount: nil}, nil)
	})
	if err != nil {
		return nil, err
	}
	at := model.Reader{Record: was}
	product := &loadedProduct{counted: table.HasNumber(was, model.AttrOrderCount), orders: at.Number(model.AttrOrderCount), revision: was[model.AttrStockRevision]}
	if was[model.AttrOrderCount] == nil {
		product.counted, err = l.isUnlisted(ctx, &model.ProductOrderItems.AccessPattern, string(sku))
	}
	return product, err
}

// rep returns the state of an account rep. The first call marks the rep's count in the table as
// incomplete. A rep without orders and without counts starts at 0.
func (l *loadedLists) rep(ctx context.Context, id commerce.EmployeeID) (*loadedRep, error) {
	if rep := l.reps[id]; rep != nil {
		return rep, nil
	}
	first := l.part(id, model.FirstPart, true)
	was, err := l.update(ctx, model.KeyOf(first), table.Compare(model.AttrComplete, "=", model.Bool(true)), func(e *table.Expression) string {
		return e.UpdateRecord(nil, model.Record{model.AttrComplete: model.Bool(false)})
	})
	if err != nil {
		return nil, err
	}
	rep := &loadedRep{counted: (&model.Reader{Record: was}).Flag(model.AttrComplete), more: map[string]int{}}
	if !rep.counted {
		p := &model.EmployeeOrderCount.AccessPattern
		parts, _, err := l.table.Consistent().QueryUpTo(ctx, p, model.KeyOf(first).PK, string(p.SK), model.Range{}, model.RepOrderParts, true)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			if rep.counted, err = l.isUnlisted(ctx, &model.EmployeeOrders.AccessPattern, string(id)); err != nil {
				return nil, err
			}
		}
	}
	l.reps[id] = rep
	return rep, nil
}

func (l *loadedLists) part(id commerce.EmployeeID, part string, complete bool) model.Record {
	return model.RepPartRecord(l.table.KeyBuilder(), commerce.RepOrders{EmployeeID: id, Part: part, Complete: complete})
}

// update changes a record if a condition holds. It returns the previous record, even if the
// condition fails, or nil if the record does not exist.
//
// It returns the errors of table.WrapError.
func (t Transfers) update(ctx context.Context, k model.Keys, when table.Condition, change func(*table.Expression) string) (model.Record, error) {
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

// write writes the counts after all orders have been loaded. A product that was sold in the
// meantime gets no count. It returns the number of records that are not part of a dataset.
//
// It returns the errors of table.WrapError.
func (l *loadedLists) write(ctx context.Context) (int, error) {
	skus := slices.Sorted(maps.Keys(l.products))
	err := table.Parallel(ctx, len(skus), table.MaxParallel, func(ctx context.Context, i int) error {
		product := l.products[skus[i]]
		if !product.counted {
			return nil
		}
		stands := model.Record{}
		if product.revision != nil {
			stands[model.AttrStockRevision] = product.revision
		}
		_, err := l.update(ctx, model.ProductBySKU.Key(l.table.KeyBuilder(), skus[i]), table.Unchanged(stands, model.AttrStockRevision, model.AttrOrderCount), func(e *table.Expression) string {
			return e.UpdateRecord(nil, model.Record{model.AttrOrderCount: model.Num(product.orders)})
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	written := 0
	for _, id := range slices.Sorted(maps.Keys(l.reps)) {
		n, err := l.writeRep(ctx, id, l.reps[id])
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// writeRep adds the loaded orders to the counts of a rep in one transaction and marks them
// complete. The counts include orders that a server has placed in the meantime.
func (l *loadedLists) writeRep(ctx context.Context, id commerce.EmployeeID, rep *loadedRep) (int, error) {
	var actions []types.TransactWriteItem
	for i := range model.RepOrderParts {
		part := strconv.Itoa(i)
		if !rep.counted || rep.more[part] == 0 && part != model.FirstPart {
			continue
		}
		var e table.Expression
		record := l.part(id, part, part == model.FirstPart)
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
