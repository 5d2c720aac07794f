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

// collectionRecordSource is a recordSource of orders or products. If a query plan reads the item
// collection of an order or product, the recordSource takes the order or product from this
// collection.
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

// withoutKnown returns the given keys without the keys of records that s has read or will read.
func withoutKnown[K comparable, V any](keys []K, s recordSource[K, V]) []K {
	if !slices.ContainsFunc(keys, s.isKnown) {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), s.isKnown)
}

// Order returns an order by ID.
//
// It returns commerce.ErrNotFound if the order does not exist. It also returns the errors of
// dynamo.ReadRecords.
func (l *Loaders) Order(ctx context.Context, id commerce.OrderID) (*commerce.Order, error) {
	return RecordLoader(l, model.OrderByID).Load(ctx, id)
}

// PrimeOrders stores orders that were read from a list, so that a later load of such an order by ID
// sends no request.
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

// PlanOrderCollections schedules reads of orders with their line items and timelines. If the viewer
// may read only its own orders, it schedules only reads of the orders. Later loads of these records
// use the results. The callback receives the orders that were found.
func (l *Loaders) PlanOrderCollections(ctx context.Context, level *Level, ids []commerce.OrderID, then func(context.Context, *Level, []FoundValue[commerce.OrderID, *commerce.Order])) {
	// An order must be found before the viewer may read its line items and timeline.
	if l.OnlyOwnOrders() {
		RecordLoader(l, model.OrderByID).Plan(ctx, level, ids, then)
		return
	}
	planCollections(ctx, &l.orderCollections, level, ids, func(whole *dynamo.OrderPartition) *commerce.Order { return whole.Order }, then)
}

// planCollections schedules reads of the item collections with the given keys. The function record
// returns the order or product in an item collection. The callback receives the orders or products
// that record has returned.
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

// PlanProductCollections schedules reads of products with their inventory levels. Later loads of
// these records use the results. The callback receives the products that were found.
func (l *Loaders) PlanProductCollections(ctx context.Context, level *Level, skus []commerce.SKU, then func(context.Context, *Level, []FoundValue[commerce.SKU, *commerce.Product])) {
	planCollections(ctx, &l.productCollections, level, skus, func(whole *dynamo.ProductPartition) *commerce.Product { return whole.Product }, then)
}

// OrderCollectionPlanned reports whether a query plan has scheduled a read of an order's item
// collection. The result stays true after the read.
func (l *Loaders) OrderCollectionPlanned(id commerce.OrderID) bool {
	return l.orderCollections.isKnown(id)
}

// ProductCollectionPlanned reports whether a query plan has scheduled a read of a product's item
// collection. The result stays true after the read.
func (l *Loaders) ProductCollectionPlanned(sku commerce.SKU) bool {
	return l.productCollections.isKnown(sku)
}

// completeOrderCollection returns the item collection of an order if a query plan has read all of
// it. Otherwise, it returns nil.
func (l *Loaders) completeOrderCollection(id commerce.OrderID) *dynamo.OrderPartition {
	if whole, ok := l.orderCollections.loadKnown(id); ok && whole.Complete {
		return whole
	}
	return nil
}

// completeProductCollection returns the item collection of a product if a query plan has read all
// of it. Otherwise, it returns nil.
func (l *Loaders) completeProductCollection(sku commerce.SKU) *dynamo.ProductPartition {
	if whole, ok := l.productCollections.loadKnown(sku); ok && whole.Complete {
		return whole
	}
	return nil
}

func lineItemPosition(i *commerce.LineItem) string { return string(i.SKU) }

func eventPosition(e *commerce.Event) string { return string(e.ID) }

func inventoryPosition(v *commerce.InventoryLevel) string { return string(v.WarehouseID) }

// CachedOrderItems returns a page of an order's line items if this is possible without a DynamoDB
// request. Otherwise, it returns false.
func (l *Loaders) CachedOrderItems(o *commerce.Order, page dynamo.PageRequest) (dynamo.Page[*commerce.LineItem], bool) {
	if o.EmbedsItems {
		return dynamo.PageOfValues(o.Items, lineItemPosition, page), true
	}
	if whole := l.completeOrderCollection(o.ID); whole != nil {
		return dynamo.PageOfList(whole.Items, lineItemPosition, page), true
	}
	return dynamo.Page[*commerce.LineItem]{}, false
}

// AllOrderItemsRequest returns the list request for all line items of an order. If the order has no
// stored count, the request is used to count the items. The page limit is far above
// commerce.MaxLines, so one page contains all items.
func AllOrderItemsRequest(id commerce.OrderID) dynamo.ListRequest {
	return dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: 1000}}
}

// OrderItemCount returns the number of line items of an order. If the order has no stored count,
// OrderItemCount reads the line items and counts them.
//
// It returns the errors of dynamo.ReadPage.
func (l *Loaders) OrderItemCount(ctx context.Context, o *commerce.Order) (int, error) {
	if o.ItemCount != nil {
		return *o.ItemCount, nil
	}
	slice, err := l.OrderItems(ctx, o, AllOrderItemsRequest(o.ID).Page)
	return len(slice.Items) + len(slice.Malformed), err
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
		// All line items were requested before, in order to count them. The page is taken from the result
		// of that request, so no other request is needed.
		if slice, err := pages.Load(ctx, all); err == nil && slice.Malformed == nil && len(slice.Items) < all.Page.Limit {
			return dynamo.PageOfList(slice.Items, lineItemPosition, page), nil
		}
	}
	return pages.Load(ctx, dynamo.ListRequest{PartitionValue: string(o.ID), Page: page})
}

// OrderItem returns one line item of an order.
//
// It returns commerce.ErrNotFound if the order does not contain the product. It also returns the
// errors of dynamo.ReadRecords.
func (l *Loaders) OrderItem(ctx context.Context, o *commerce.Order, sku commerce.SKU) (*commerce.LineItem, error) {
	if item, ok := l.CachedOrderItem(o, sku); ok {
		if item == nil {
			return nil, commerce.ErrNotFound
		}
		return item, nil
	}
	return RecordLoader(l, model.OrderItem).Load(ctx, model.OrderItemKey{Order: o.ID, SKU: sku})
}

// CachedOrderItem returns a line item of an order without sending a DynamoDB request. If this is
// not possible, it returns false. If the order does not contain the product, CachedOrderItem
// returns nil and true.
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
// Otherwise, it returns false.
func (l *Loaders) CachedTimeline(id commerce.OrderID, page dynamo.PageRequest) (dynamo.Page[*commerce.Event], bool) {
	whole := l.completeOrderCollection(id)
	if whole == nil {
		return dynamo.Page[*commerce.Event]{}, false
	}
	return dynamo.PageOfList(whole.Events, eventPosition, page), true
}

// WithStock returns a product with its stock, which some lists of products omit.
//
// If the product's own record is malformed, the counters that can be read are returned. If the read
// fails, WithStock returns p and an error of dynamo.ReadRecords.
func (l *Loaders) WithStock(ctx context.Context, p *commerce.Product) (*commerce.Product, error) {
	if !p.Partial {
		return p, nil
	}
	own, err := RecordLoader(l, model.ProductBySKU).Load(ctx, p.SKU)
	switch {
	case errors.Is(err, commerce.ErrNotFound), errors.Is(err, commerce.ErrMalformed) && own == nil:
		return p, nil
	case err != nil && !errors.Is(err, commerce.ErrMalformed):
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
// was read. Otherwise, it returns false.
func (l *Loaders) CachedInventory(sku commerce.SKU, page dynamo.PageRequest) (dynamo.Page[*commerce.InventoryLevel], bool) {
	whole := l.completeProductCollection(sku)
	if whole == nil {
		return dynamo.Page[*commerce.InventoryLevel]{}, false
	}
	return dynamo.PageOfList(whole.Levels, inventoryPosition, page), true
}

// AllOrderCountsRequest returns the list request for all counter records that count orders by
// status. Each record counts a part of all orders.
func AllOrderCountsRequest() dynamo.ListRequest {
	return dynamo.ListRequest{Page: dynamo.PageRequest{Limit: model.OrderCountParts}}
}

// StatusCounts returns the number of orders in each status.
//
// It returns table.ErrStatusCountsIncomplete if the counter records do not include all orders. It
// also returns the errors of dynamo.ReadPage.
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

// RepOrderCountsRequest returns the list request for all counter records that count an account
// rep's orders.
func RepOrderCountsRequest(id commerce.EmployeeID) dynamo.ListRequest {
	return dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: model.RepOrderCountParts}}
}

// RepOrderCount returns the number of an account rep's orders.
//
// It returns table.ErrStatusCountsIncomplete if the counter records do not include all orders. It
// also returns the errors of dynamo.ReadPage.
func (l *Loaders) RepOrderCount(ctx context.Context, id commerce.EmployeeID) (*int, error) {
	parts, err := PageLoader(l, model.EmployeeOrderCount).Load(ctx, RepOrderCountsRequest(id))
	if err = errors.Join(append(parts.Malformed, err)...); err != nil {
		return nil, err
	}
	sum, complete := commerce.SumRepOrderCounts(parts.Items)
	if !complete {
		return nil, table.ErrStatusCountsIncomplete
	}
	return &sum, nil
}

// ProductOrderCount returns the number of orders that contain a product.
//
// It returns table.ErrStatusCountsIncomplete if the product has no stored count. It also returns
// the errors of dynamo.ReadRecords.
func (l *Loaders) ProductOrderCount(ctx context.Context, p *commerce.Product) (*int, error) {
	own, err := l.WithStock(ctx, p)
	if err == nil && own.OrderCount == nil {
		err = table.ErrStatusCountsIncomplete
	}
	return own.OrderCount, err
}

// SpendingRequest returns the list request for a customer's spending per month. It selects the
// months that overlap the date range placed. If placed is nil, it selects all months.
//
// It returns a commerce.InvalidError if the range is invalid.
func SpendingRequest(id commerce.CustomerID, placed *commerce.DateRange) (dynamo.ListRequest, error) {
	r := dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: commerce.MaxSpendingEntries, DetectMore: true}}
	if placed == nil {
		return r, nil
	}
	r.Range = dynamo.SpendingMonthsRange(*placed)
	return r, commerce.ErrorWithArgument("placed", placed.Validate())
}

// Spending returns a customer's spending in the months that SpendingRequest selects.
//
// It returns table.ErrSpendingIncomplete, a commerce.InvalidError for an invalid or too long range,
// and the errors of dynamo.ReadRecords and dynamo.ReadPage.
func (l *Loaders) Spending(ctx context.Context, c *commerce.Customer, placed *commerce.DateRange) (page dynamo.Page[*commerce.Spending], err error) {
	var none dynamo.Page[*commerce.Spending]
	key, err := SpendingRequest(c.ID, placed)
	if err != nil {
		return none, err
	}
	if !c.SpendingComplete {
		// The customer may be a copy from a list. Such a copy lacks SpendingComplete, so read the
		// customer's own record.
		own, err := RecordLoader(l, model.CustomerByID).Load(ctx, c.ID)
		switch {
		case errors.Is(err, commerce.ErrNotFound):
			return none, nil // the viewer may not read the customer
		case err != nil:
			return none, err
		case !own.SpendingComplete:
			return none, table.ErrSpendingIncomplete
		}
	}
	page, err = PageLoader(l, model.CustomerSpending).Load(ctx, key)
	if err != nil {
		return none, err
	}
	if page.HasNext {
		return none, commerce.ErrorWithArgument("placed", commerce.NewInvalidError("selects more than %d combinations of month and currency: request fewer months", commerce.MaxSpendingEntries))
	}
	return page, nil
}

// CustomerOrderCount returns the number of orders that a customer has placed. If the customer has
// no stored count, CustomerOrderCount counts the orders.
//
// It returns the errors of dynamo.Store.CountCustomerOrders.
func (l *Loaders) CustomerOrderCount(ctx context.Context, c *commerce.Customer) (int, error) {
	if c.OrderCount != nil {
		return *c.OrderCount, nil
	}
	// If the customer comes from a list, it is a copy without the count. The customer's own record may
	// have the count.
	if own, err := RecordLoader(l, model.CustomerByID).Load(ctx, c.ID); err == nil && own.OrderCount != nil {
		return *own.OrderCount, nil
	}
	return l.OrderCountQueries.Load(ctx, c.ID)
}

// PlanCustomerOrderCounts schedules reads for the customers whose OrderCount is nil. It first reads
// the customers' own records. If a record has no count either, a Query counts the customer's
// orders.
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
		// Also count the orders of customers that were not found. A list can contain a copy of a customer
		// even if the customer's own record is missing or unreadable.
		uncounted := slices.DeleteFunc(slices.Clone(unknown), func(id commerce.CustomerID) bool { return counted[id] })
		l.OrderCountQueries.Plan(ctx, next, uncounted, nil)
	})
}
