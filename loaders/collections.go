package loaders

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// collectionSource contains values that are part of item collections.
type collectionSource[K comparable, V any] interface {
	// find returns the value of a key. If the value must be read separately, ok is false.
	find(ctx context.Context, key K) (v V, ok bool, err error)
	// planAll schedules reads of the item collections that contain the values of the keys. The
	// callback receives the values. l reads the values that the item collections do not contain.
	planAll(ctx context.Context, level *Level, keys []K, l *Loader[K, V], then thenFunc[K, V])
	// planKnown is planAll for the item collections that are read anyway. It returns the other keys.
	planKnown(ctx context.Context, level *Level, keys []K, l *Loader[K, V], then thenFunc[K, V]) (others []K)
}

// partOf is a collectionSource of parts of item collections.
type partOf[C comparable, W any, K comparable, V any] struct {
	collections *Loader[C, W]
	// collection returns the key of the item collection that contains the value of a key.
	collection func(K) C
	// part returns the value of a key in an item collection that was read with the error err. If the
	// value must be read separately, ok is false.
	part func(whole W, err error, key K) (v V, ok bool, _ error)
}

func (s partOf[C, W, K, V]) find(ctx context.Context, key K) (v V, ok bool, err error) {
	id := s.collection(key)
	if !s.collections.isKnown(id) {
		return v, false, nil
	}
	whole, err := s.collections.Load(ctx, id)
	return s.part(whole, err, key)
}

func (s partOf[C, W, K, V]) planAll(ctx context.Context, level *Level, keys []K, l *Loader[K, V], then thenFunc[K, V]) {
	ids := make([]C, len(keys))
	for i, key := range keys {
		ids[i] = s.collection(key)
	}
	s.collections.Plan(ctx, level, ids, func(ctx context.Context, next *Level, collections []FoundValue[C, W]) {
		found := make([]FoundValue[K, V], 0, len(keys))
		var missing []K
		for i, key := range keys {
			if len(collections) == 0 || collections[0].Key != ids[i] {
				continue // there is no such item collection
			}
			if v, ok, err := s.part(collections[0].Value, nil, key); !ok {
				missing = append(missing, key)
			} else if err == nil {
				found = append(found, FoundValue[K, V]{key, v})
			}
			collections = collections[1:]
		}
		if l.planOwn(ctx, next, missing, then); then != nil {
			then(ctx, next, found)
		}
	})
}

func (s partOf[C, W, K, V]) planKnown(ctx context.Context, level *Level, keys []K, l *Loader[K, V], then thenFunc[K, V]) (others []K) {
	isKnown := func(key K) bool { return s.collections.isKnown(s.collection(key)) }
	if !slices.ContainsFunc(keys, isKnown) {
		return keys
	}
	others = slices.DeleteFunc(slices.Clone(keys), isKnown)
	s.planAll(ctx, level, slices.DeleteFunc(slices.Clone(keys), func(key K) bool { return !isKnown(key) }), l, then)
	return others
}

// PlanCollections is Plan, but it reads the item collections that contain the values. Later loads of
// other values in these item collections use the results. If the viewer may read only its own
// orders, an order must be found before its item collection may be read, so PlanCollections reads
// only the values.
func (l *Loader[K, V]) PlanCollections(ctx context.Context, level *Level, keys []K, then thenFunc[K, V]) {
	if l.collections == nil {
		l.planOwn(ctx, level, keys, then)
		return
	}
	l.collections.planAll(ctx, level, keys, l, then)
}

// recordOf returns the source of the record that an item collection belongs to.
func recordOf[K comparable, W, V any](collections *Loader[K, W], record func(W) V) collectionSource[K, V] {
	return partOf[K, W, K, V]{collections, func(key K) K { return key }, func(whole W, err error, _ K) (v V, ok bool, _ error) {
		if err == nil {
			v = record(whole)
		}
		return v, true, err
	}}
}

// listOf returns the source of a list in item collections. The function list returns false if an
// item collection does not contain the complete list.
func listOf[C ~string, W, V any](collections *Loader[C, W], list func(W) ([]V, bool), position func(V) string) collectionSource[dynamo.ListRequest, dynamo.Page[V]] {
	return partOf[C, W, dynamo.ListRequest, dynamo.Page[V]]{
		collections, func(key dynamo.ListRequest) C { return C(key.PartitionValue) },
		func(whole W, err error, key dynamo.ListRequest) (page dynamo.Page[V], ok bool, _ error) {
			if err != nil {
				return page, false, nil
			}
			if all, complete := list(whole); complete {
				return dynamo.PageOfList(all, position, key.Page), true, nil
			}
			return page, false, nil
		},
	}
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

func lineItemPosition(i *commerce.LineItem) string { return string(i.SKU) }

func eventPosition(e *commerce.Event) string { return string(e.ID) }

func inventoryPosition(v *commerce.InventoryLevel) string { return string(v.WarehouseID) }

// CachedOrderItems returns a page of an order's line items if this is possible without a DynamoDB
// request. Otherwise, it returns false.
func (l *Loaders) CachedOrderItems(o *commerce.Order, page dynamo.PageRequest) (dynamo.Page[*commerce.LineItem], bool) {
	if o.EmbedsItems {
		return dynamo.PageOfValues(o.Items, lineItemPosition, page), true
	}
	slice, ok, _ := PageLoader(l, model.OrderItems).collections.find(l.ctx, dynamo.ListRequest{PartitionValue: string(o.ID), Page: page})
	return slice, ok
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
	if !l.orderCollections.isKnown(o.ID) {
		return nil, false
	}
	whole, err := l.orderCollections.Load(l.ctx, o.ID)
	if err != nil || !whole.Complete {
		return nil, false
	}
	for _, item := range whole.Items {
		if item.SKU == sku {
			return item, true
		}
	}
	return nil, true
}

// Complete returns a record with all attributes. If partial is true, the given record comes from a
// list that omits some of them, so Complete reads the record with this key.
//
// If this record is malformed, the attributes that can be read are returned. If the read fails,
// Complete returns the given record and an error of dynamo.ReadRecords.
func Complete[K comparable, T any](ctx context.Context, l *Loaders, p *model.LookupPattern[K, *T], key K, record *T, partial bool) (*T, error) {
	if !partial {
		return record, nil
	}
	own, err := RecordLoader(l, p).Load(ctx, key)
	switch {
	case errors.Is(err, commerce.ErrNotFound), errors.Is(err, commerce.ErrMalformed) && own == nil:
		return record, nil
	case err != nil && !errors.Is(err, commerce.ErrMalformed):
		return record, err
	}
	return own, nil
}

// AllRecords returns the request for all records of a list that has a maximum length.
func AllRecords(p *model.AccessPattern, partitionValue string) dynamo.ListRequest {
	return dynamo.ListRequest{PartitionValue: partitionValue, Page: dynamo.PageRequest{Limit: p.MaxLength}}
}

// Sum reads counter records and returns their sum. Each of them counts a part of all records. The
// function sum returns table.ErrStatusCountsIncomplete if a part is missing.
//
// Sum also returns the errors of dynamo.ReadPage.
func Sum[V, R any](ctx context.Context, l *Loaders, p *model.ListPattern[V], partitionValue string, sum func(*Loaders, dynamo.Page[V]) (R, error)) (R, error) {
	parts, err := PageLoader(l, p).Load(ctx, AllRecords(&p.AccessPattern, partitionValue))
	if err != nil {
		var none R
		return none, err
	}
	return sum(l, parts)
}

// CanShip reports whether a warehouse has all pieces of an order that are not shipped.
//
// It returns the errors of dynamo.ReadPage and of malformed line items and inventory levels.
func (l *Loaders) CanShip(ctx context.Context, o *commerce.Order, warehouseID string) (bool, error) {
	items, err := l.OrderItems(ctx, o, AllOrderItemsRequest(o.ID).Page)
	if err = cmp.Or(err, errors.Join(items.Malformed...)); err != nil {
		return false, err
	}
	open := map[commerce.SKU]int{}
	for _, item := range items.Items {
		if n := item.Quantity - item.ShippedIn(o); n > 0 {
			open[item.SKU] += n
		}
	}
	return l.hasPieces(ctx, warehouseID, open)
}

// Returned returns how many pieces of a line item were received in returns.
//
// It returns the errors of dynamo.ReadPage and of malformed returns.
func (l *Loaders) Returned(ctx context.Context, item *commerce.LineItem) (int, error) {
	page, err := PageLoader(l, model.OrderReturns).Load(ctx, AllRecords(&model.OrderReturns.AccessPattern, string(item.OrderID)))
	return commerce.ReturnedPieces(page.Items, item.SKU), cmp.Or(err, errors.Join(page.Malformed...))
}

// StatusCounts returns the number of orders in each status, from the page with all counter records.
func StatusCounts(l *Loaders, parts dynamo.Page[*commerce.OrderCounts]) ([]*commerce.StatusCount, error) {
	counts, complete := commerce.SumOrderCounts(parts.Items)
	if len(parts.Malformed) > 0 || complete < l.store.FirstCounters() {
		return nil, table.ErrStatusCountsIncomplete
	}
	return counts, nil
}

// RepOrderCount returns the number of an account rep's orders, from the page with all counter
// records of the rep. It returns the errors of malformed records, too.
func RepOrderCount(_ *Loaders, parts dynamo.Page[*commerce.RepOrderCount]) (*int, error) {
	if err := errors.Join(parts.Malformed...); err != nil {
		return nil, err
	}
	sum, complete := commerce.SumRepOrderCounts(parts.Items)
	if !complete {
		return nil, table.ErrStatusCountsIncomplete
	}
	return &sum, nil
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

// SalesRequest returns the list request for the sales of the days in a range.
//
// It returns a commerce.InvalidError if the currency or the range is invalid, or if the range has no end or
// more than commerce.MaxSalesDays days.
func SalesRequest(placed commerce.DateRange, currency commerce.Currency) (dynamo.ListRequest, error) {
	if _, err := commerce.ParseCurrency(string(currency)); err != nil {
		return dynamo.ListRequest{}, commerce.ErrorWithArgument("currency", err)
	}
	if err := placed.Validate(); err != nil {
		return dynamo.ListRequest{}, commerce.ErrorWithArgument("placed", err)
	}
	if days, ok := placed.Days(); !ok || days > commerce.MaxSalesDays {
		return dynamo.ListRequest{}, commerce.ErrorWithArgument("placed", commerce.NewInvalidError("must have both ends and contain at most %d days", commerce.MaxSalesDays))
	}
	r := AllRecords(&model.DailySales.AccessPattern, "")
	r.Range = dynamo.SalesRange(currency, placed)
	return r, nil
}

// Sales returns the sales of the days that SalesRequest selects.
//
// It returns the errors of SalesRequest and dynamo.ReadPage, and the errors of malformed records.
func (l *Loaders) Sales(ctx context.Context, placed commerce.DateRange, currency commerce.Currency) ([]*commerce.DailySales, error) {
	key, err := SalesRequest(placed, currency)
	if err != nil {
		return nil, err
	}
	parts, err := PageLoader(l, model.DailySales).Load(ctx, key)
	if err == nil {
		err = errors.Join(parts.Malformed...)
	}
	if err != nil {
		return nil, err
	}
	return commerce.SumDailySales(parts.Items)
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
