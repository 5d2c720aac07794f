package loaders

import (
	"context"
	"errors"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// collectionRecordSource returns the records of planned item collections.
type collectionRecordSource[K comparable, W, V any] struct {
	collections *Loader[K, W]
	record      func(W) V
}

func (c collectionRecordSource[K, W, V]) isKnown(key K) bool { return c.collections.isKnown(key) }

func (c collectionRecordSource[K, W, V]) load(ctx context.Context, key K) (v V, err error) {
	collection, err := c.collections.Load(ctx, key)
	if err != nil {
		return v, err
	}
	return c.record(collection), nil
}

// withoutKnown returns the keys of the records that s has neither planned nor read.
func withoutKnown[K comparable, V any](keys []K, s recordSource[K, V]) []K {
	if !slices.ContainsFunc(keys, s.isKnown) {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), s.isKnown)
}

// Order returns an order by ID.
//
// It returns commerce.ErrNotFound if the order does not exist, and the errors of
// dynamo.ReadRecords.
func (l *Loaders) Order(ctx context.Context, id commerce.OrderID) (*commerce.Order, error) {
	return RecordLoader(l, model.OrderByID).Load(ctx, id)
}

// PrimeOrders adds orders that were read from a list to the loader of orders by ID. The loader then
// does not read these orders again.
func (l *Loaders) PrimeOrders(ctx context.Context, all []*commerce.Order) {
	if len(all) == 0 {
		return
	}
	keys, values := make([]commerce.OrderID, len(all)), make([]dynamo.LookupResult[*commerce.Order], len(all))
	for i, o := range all {
		keys[i], values[i].Value = o.ID, o
	}
	RecordLoader(l, model.OrderByID).prime(ctx, keys, values)
}

// PlanOrderCollections plans orders with their line items and timelines. It reads the item
// collection of each order with one Query. Order, OrderItems, Item and Timeline use the result. As
// in Loader.Plan, the callback then receives the orders that were found.
//
// If the viewer may read only its own orders, PlanOrderCollections plans only the orders, without
// their item collections. The order must be read first, to find out whether the viewer may read the
// item collection.
func (l *Loaders) PlanOrderCollections(ctx context.Context, level *Level, ids []commerce.OrderID, then func(context.Context, *Level, []FoundValue[commerce.OrderID, *commerce.Order])) {
	if l.OnlyOwnOrders() {
		RecordLoader(l, model.OrderByID).Plan(ctx, level, ids, then)
		return
	}
	planCollections(ctx, &l.orderCollections, level, ids, func(whole *dynamo.OrderPartition) *commerce.Order { return whole.Order }, then)
}

// planCollections plans item collections. record returns the order or product of an item
// collection. The callback then receives these records.
func planCollections[K comparable, W, V any](ctx context.Context, l *Loader[K, W], level *Level, keys []K, record func(W) V, then func(context.Context, *Level, []FoundValue[K, V])) {
	l.Plan(ctx, level, keys, func(ctx context.Context, next *Level, found []FoundValue[K, W]) {
		all := make([]FoundValue[K, V], len(found))
		for i, whole := range found {
			all[i] = FoundValue[K, V]{whole.Key, record(whole.Value)}
		}
		if then != nil {
			then(ctx, next, all)
		}
	})
}

// PlanProductCollections plans products with their inventory. It reads the item collection of each
// product with one Query. ProductInventory and loads of the product use the result. As in
// Loader.Plan, the callback then receives the products that were found.
func (l *Loaders) PlanProductCollections(ctx context.Context, level *Level, skus []commerce.SKU, then func(context.Context, *Level, []FoundValue[commerce.SKU, *commerce.Product])) {
	planCollections(ctx, &l.productCollections, level, skus, func(whole *dynamo.ProductPartition) *commerce.Product { return whole.Product }, then)
}

// OrderCollectionPlanned reports whether the item collection of an order was planned or read.
func (l *Loaders) OrderCollectionPlanned(id commerce.OrderID) bool {
	return l.orderCollections.isKnown(id)
}

// ProductCollectionPlanned reports whether the item collection of a product was planned or read.
func (l *Loaders) ProductCollectionPlanned(sku commerce.SKU) bool {
	return l.productCollections.isKnown(sku)
}

// completeOrderCollection returns the item collection of an order if it was planned and one Query
// read all of it. Otherwise it returns nil.
func (l *Loaders) completeOrderCollection(id commerce.OrderID) *dynamo.OrderPartition {
	if whole, ok := l.orderCollections.loadKnown(id); ok && whole.Complete {
		return whole
	}
	return nil
}

// completeProductCollection returns the item collection of a product if it was planned and one
// Query read all of it. Otherwise it returns nil.
func (l *Loaders) completeProductCollection(sku commerce.SKU) *dynamo.ProductPartition {
	if whole, ok := l.productCollections.loadKnown(sku); ok && whole.Complete {
		return whole
	}
	return nil
}

func lineItemPosition(i *commerce.LineItem) string { return string(i.SKU) }

func eventPosition(e *commerce.Event) string { return string(e.ID) }

func inventoryPosition(v *commerce.InventoryLevel) string { return string(v.WarehouseID) }

// CachedOrderItems returns a page of an order's line items if it can do so without a DynamoDB request.
// It can if the order's record contains the line items, or if the order's item collection was read.
// Otherwise, it returns false.
func (l *Loaders) CachedOrderItems(o *commerce.Order, page dynamo.PageRequest) (dynamo.Page[*commerce.LineItem], bool) {
	if o.EmbedsItems {
		return dynamo.PageOfValues(o.Items, lineItemPosition, page), true
	}
	if whole := l.completeOrderCollection(o.ID); whole != nil {
		return dynamo.PageOfList(whole.Items, lineItemPosition, page), true
	}
	return dynamo.Page[*commerce.LineItem]{}, false
}

// AllOrderItemsRequest returns a list request for all line items of an order. The plan and OrderItemCount use
// this request to count the line items if the order has no stored count. The limit of the request
// exceeds the number of line items of any order.
func AllOrderItemsRequest(id commerce.OrderID) dynamo.ListRequest {
	return dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: 1000}}
}

// OrderItemCount returns the number of line items of an order. If the order has no stored count,
// OrderItemCount counts the items with a Query.
//
// It returns the errors of dynamo.ReadPage.
func (l *Loaders) OrderItemCount(ctx context.Context, o *commerce.Order) (int, error) {
	if o.ItemCount != nil {
		return *o.ItemCount, nil
	}
	slice, err := l.OrderItems(ctx, o, AllOrderItemsRequest(o.ID).Page)
	return len(slice.Items), err
}

// OrderItems returns a page of an order's line items.
//
// It returns the errors of dynamo.ReadPage.
func (l *Loaders) OrderItems(ctx context.Context, o *commerce.Order, page dynamo.PageRequest) (dynamo.Page[*commerce.LineItem], error) {
	if slice, ok := l.CachedOrderItems(o, page); ok {
		return slice, nil
	}
	pages := PageLoader(l, model.OrderItems)
	if all := AllOrderItemsRequest(o.ID); pages.isKnown(all) {
		// The plan reads all items to count them.
		if slice, err := pages.Load(ctx, all); err == nil && len(slice.Items) < all.Page.Limit {
			return dynamo.PageOfList(slice.Items, lineItemPosition, page), nil
		}
	}
	return pages.Load(ctx, dynamo.ListRequest{PartitionValue: string(o.ID), Page: page})
}

// OrderItem returns one line item of an order.
//
// It returns commerce.ErrNotFound if the order has no such item, and the errors of
// dynamo.ReadRecords.
func (l *Loaders) OrderItem(ctx context.Context, o *commerce.Order, sku commerce.SKU) (*commerce.LineItem, error) {
	if item, ok := l.CachedOrderItem(o, sku); ok {
		if item == nil {
			return nil, commerce.ErrNotFound
		}
		return item, nil
	}
	return RecordLoader(l, model.OrderItem).Load(ctx, model.OrderItemKey{Order: o.ID, SKU: sku})
}

// CachedOrderItem returns a line item of an order if it can do so without a DynamoDB request. Otherwise,
// it returns false. If the order does not contain the line item, CachedOrderItem returns nil and true.
func (l *Loaders) CachedOrderItem(o *commerce.Order, sku commerce.SKU) (*commerce.LineItem, bool) {
	if o.EmbedsItems {
		for i := range o.Items {
			if o.Items[i].SKU == sku {
				return &o.Items[i], true
			}
		}
		return nil, true
	}
	whole := l.completeOrderCollection(o.ID)
	if whole == nil {
		return nil, false
	}
	for _, item := range whole.Items {
		if item.SKU == sku {
			return item, true
		}
	}
	return nil, true
}

// Timeline returns a page of an order's events.
//
// It returns the errors of dynamo.ReadPage.
func (l *Loaders) Timeline(ctx context.Context, id commerce.OrderID, page dynamo.PageRequest) (dynamo.Page[*commerce.Event], error) {
	if slice, ok := l.CachedTimeline(id, page); ok {
		return slice, nil
	}
	return PageLoader(l, model.Timeline).Load(ctx, dynamo.ListRequest{PartitionValue: string(id), Page: page})
}

// CachedTimeline returns a page of an order's events if the order's item collection was read.
func (l *Loaders) CachedTimeline(id commerce.OrderID, page dynamo.PageRequest) (dynamo.Page[*commerce.Event], bool) {
	whole := l.completeOrderCollection(id)
	if whole == nil {
		return dynamo.Page[*commerce.Event]{}, false
	}
	return dynamo.PageOfList(whole.Events, eventPosition, page), true
}

// WithStock returns a product with its stock, which is missing in some lists of products. If the
// product's record does not exist, WithStock returns the product unchanged.
//
// If it returns an error of dynamo.ReadRecords, it also returns the unchanged product.
func (l *Loaders) WithStock(ctx context.Context, p *commerce.Product) (*commerce.Product, error) {
	if !p.Partial {
		return p, nil
	}
	own, err := RecordLoader(l, model.ProductBySKU).Load(ctx, p.SKU)
	switch {
	case errors.Is(err, commerce.ErrNotFound):
		return p, nil
	case err != nil:
		return p, err
	}
	return own, nil
}

// ProductInventory returns a page of a product's inventory levels.
//
// It returns the errors of dynamo.ReadPage.
func (l *Loaders) ProductInventory(ctx context.Context, sku commerce.SKU, page dynamo.PageRequest) (dynamo.Page[*commerce.InventoryLevel], error) {
	if slice, ok := l.CachedInventory(sku, page); ok {
		return slice, nil
	}
	return PageLoader(l, model.ProductInventory).Load(ctx, dynamo.ListRequest{PartitionValue: string(sku), Page: page})
}

// CachedInventory returns a page of a product's inventory levels if the product's item collection
// was read.
func (l *Loaders) CachedInventory(sku commerce.SKU, page dynamo.PageRequest) (dynamo.Page[*commerce.InventoryLevel], bool) {
	whole := l.completeProductCollection(sku)
	if whole == nil {
		return dynamo.Page[*commerce.InventoryLevel]{}, false
	}
	return dynamo.PageOfList(whole.Levels, inventoryPosition, page), true
}

// AllOrderCountsRequest returns the request for all partial order counts.
func AllOrderCountsRequest() dynamo.ListRequest {
	return dynamo.ListRequest{Page: dynamo.PageRequest{Limit: model.OrderCountParts}}
}

// StatusCounts returns the number of orders in each status.
//
// It returns table.ErrStatusCountsIncomplete if the counters do not include all orders, and the
// errors of dynamo.ReadPage.
func (l *Loaders) StatusCounts(ctx context.Context) ([]*commerce.StatusCount, error) {
	parts, err := PageLoader(l, model.OrderCounts).Load(ctx, AllOrderCountsRequest())
	if err != nil {
		return nil, err
	}
	counts, complete := commerce.SumOrderCounts(parts.Items)
	if !complete || len(parts.Items) < model.OrderCountParts {
		return nil, table.ErrStatusCountsIncomplete
	}
	return counts, nil
}

// RepOrderCountsRequest returns the request for the records that count the orders of an account
// representative.
func RepOrderCountsRequest(id commerce.EmployeeID) dynamo.ListRequest {
	return dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: model.RepOrderCountParts}}
}

// RepOrderCount returns the number of orders of an account representative.
//
// It returns table.ErrStatusCountsIncomplete if the counters do not include all orders, and the
// errors of dynamo.ReadPage.
func (l *Loaders) RepOrderCount(ctx context.Context, id commerce.EmployeeID) (*int, error) {
	parts, err := PageLoader(l, model.EmployeeOrderCount).Load(ctx, RepOrderCountsRequest(id))
	if err != nil {
		return nil, err
	}
	sum, complete := commerce.SumRepOrderCounts(parts.Items)
	if !complete {
		return nil, table.ErrStatusCountsIncomplete
	}
	return &sum, nil
}

// ProductOrderCount returns the number of orders with a line item of a product.
//
// It returns table.ErrStatusCountsIncomplete if the product has no stored count, and the errors of
// dynamo.ReadRecords.
func (l *Loaders) ProductOrderCount(ctx context.Context, p *commerce.Product) (*int, error) {
	own, err := l.WithStock(ctx, p)
	if err == nil && own.OrderCount == nil {
		err = table.ErrStatusCountsIncomplete
	}
	return own.OrderCount, err
}

// SpendingRequest returns the request for a customer's spending in the months of a date range. A
// nil range means all months.
//
// It returns a commerce.InvalidError for an invalid range.
func SpendingRequest(id commerce.CustomerID, placed *commerce.DateRange) (dynamo.ListRequest, error) {
	r := dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: commerce.MaxSpendingEntries, DetectMore: true}}
	if placed == nil {
		return r, nil
	}
	r.Range = dynamo.SpendingMonthsRange(*placed)
	return r, commerce.ErrorWithArgument("placed", placed.Validate())
}

// Spending returns a customer's spending in the months of a date range. A nil range means all
// months.
//
// It returns table.ErrSpendingIncomplete if the spending records do not include all orders. It
// returns a commerce.InvalidError if the range is invalid, or if the result has more than
// commerce.MaxSpendingEntries entries. It also returns the errors of dynamo.ReadRecords and
// dynamo.ReadPage.
func (l *Loaders) Spending(ctx context.Context, c *commerce.Customer, placed *commerce.DateRange) ([]*commerce.Spending, error) {
	key, err := SpendingRequest(c.ID, placed)
	if err != nil {
		return nil, err
	}
	if !c.SpendingComplete {
		// The customer may be a copy from a list, which lacks SpendingComplete.
		own, err := RecordLoader(l, model.CustomerByID).Load(ctx, c.ID)
		switch {
		case errors.Is(err, commerce.ErrNotFound):
			return nil, nil // the viewer may not read the customer
		case err != nil:
			return nil, err
		case !own.SpendingComplete:
			return nil, table.ErrSpendingIncomplete
		}
	}
	page, err := PageLoader(l, model.CustomerSpending).Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if page.HasNext {
		return nil, commerce.ErrorWithArgument("placed", commerce.NewInvalidError("selects more than %d entries, one for each month and currency: request fewer months", commerce.MaxSpendingEntries))
	}
	return page.Items, nil
}

// CustomerOrderCount returns the number of orders that a customer has placed. If the customer has no stored
// count, CustomerOrderCount counts the orders with a Query.
//
// It returns the errors of dynamo.ReadRecords and dynamo.Store.CustomerOrderCount.
func (l *Loaders) CustomerOrderCount(ctx context.Context, c *commerce.Customer) (int, error) {
	if c.OrderCount != nil {
		return *c.OrderCount, nil
	}
	// A copy of a customer from a list has no count, but the customer's own record may have one.
	if own, err := RecordLoader(l, model.CustomerByID).Load(ctx, c.ID); err == nil && own.OrderCount != nil {
		return *own.OrderCount, nil
	}
	return l.OrderCountQueries.Load(ctx, c.ID)
}

// PlanCustomerOrderCounts plans the order counts of customers that were read without a count. First, it
// plans reading the customers' own records. If a record has no stored count, it then plans counting
// the customer's orders.
func (l *Loaders) PlanCustomerOrderCounts(ctx context.Context, level *Level, customers []*commerce.Customer) {
	var unknown []commerce.CustomerID
	for _, c := range customers {
		if c.OrderCount == nil {
			unknown = append(unknown, c.ID)
		}
	}
	RecordLoader(l, model.CustomerByID).Plan(ctx, level, unknown, func(ctx context.Context, next *Level, own []FoundValue[commerce.CustomerID, *commerce.Customer]) {
		counted := map[commerce.CustomerID]bool{}
		for _, c := range own {
			counted[c.Key] = c.Value.OrderCount != nil
		}
		// A list can contain a copy of a customer even if the customer's own record is missing or
		// unreadable.
		uncounted := slices.DeleteFunc(slices.Clone(unknown), func(id commerce.CustomerID) bool { return counted[id] })
		l.OrderCountQueries.Plan(ctx, next, uncounted, nil)
	})
}
