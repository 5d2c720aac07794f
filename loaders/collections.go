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

// collected are the records of item collections that were planned.
type collected[K comparable, W, V any] struct {
	whole  *Loader[K, W]
	record func(W) V
}

func (c collected[K, W, V]) knows(key K) bool { return c.whole.knows(key) }

func (c collected[K, W, V]) load(ctx context.Context, key K) (v V, err error) {
	whole, err := c.whole.Load(ctx, key)
	if err != nil {
		return v, err
	}
	return c.record(whole), nil
}

// without returns the keys that a source does not know.
func without[K comparable, V any](keys []K, s source[K, V]) []K {
	if !slices.ContainsFunc(keys, s.knows) {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), s.knows)
}

// Order returns an order.
//
// Errors: commerce.ErrNotFound, and those of dynamo.ReadRecords.
func (l *Loaders) Order(ctx context.Context, id commerce.OrderID) (*commerce.Order, error) {
	return Records(l, model.OrderByID).Load(ctx, id)
}

// PrimeOrders makes orders that came with a list known by their IDs.
func (l *Loaders) PrimeOrders(ctx context.Context, all []*commerce.Order) {
	if len(all) == 0 {
		return
	}
	keys, values := make([]commerce.OrderID, len(all)), make([]dynamo.Result[*commerce.Order], len(all))
	for i, o := range all {
		keys[i], values[i].Value = o.ID, o
	}
	Records(l, model.OrderByID).prime(ctx, keys, values)
}

// PlanWholeOrders plans orders with their items and timelines, one Query each. Order, OrderItems,
// Item and Timeline take from them. then runs as in Loader.Plan, with the orders that were found.
// For those who see the own orders only it is PlanOrders: whose an order is is known only when it
// is there, so nothing can come with it.
func (l *Loaders) PlanWholeOrders(ctx context.Context, at *Level, ids []commerce.OrderID, then func(context.Context, *Level, []Found[commerce.OrderID, *commerce.Order])) {
	if l.OwnOrders() {
		Records(l, model.OrderByID).Plan(ctx, at, ids, then)
		return
	}
	planWhole(ctx, &l.wholeOrder, at, ids, func(whole *dynamo.WholeOrder) *commerce.Order { return whole.Order }, then)
}

// planWhole plans item collections. then gets the records that they belong to.
func planWhole[K comparable, W, V any](ctx context.Context, l *Loader[K, W], at *Level, keys []K, record func(W) V, then func(context.Context, *Level, []Found[K, V])) {
	l.Plan(ctx, at, keys, func(ctx context.Context, next *Level, found []Found[K, W]) {
		all := make([]Found[K, V], len(found))
		for i, whole := range found {
			all[i] = Found[K, V]{whole.Key, record(whole.Value)}
		}
		if then != nil {
			then(ctx, next, all)
		}
	})
}

// PlanWholeProducts plans products with their inventory, one Query each. Product and
// ProductInventory take from them. then runs as in Loader.Plan, with the products that were found.
func (l *Loaders) PlanWholeProducts(ctx context.Context, at *Level, skus []commerce.SKU, then func(context.Context, *Level, []Found[commerce.SKU, *commerce.Product])) {
	planWhole(ctx, &l.wholeProduct, at, skus, func(whole *dynamo.WholeProduct) *commerce.Product { return whole.Product }, then)
}

// WholeOrderPlanned reports whether an order is planned with its items and timeline, or was read
// so.
func (l *Loaders) WholeOrderPlanned(id commerce.OrderID) bool { return l.wholeOrder.knows(id) }

// WholeProductPlanned reports whether a product is planned with its inventory, or was read so.
func (l *Loaders) WholeProductPlanned(sku commerce.SKU) bool { return l.wholeProduct.knows(sku) }

// whole is the order's item collection where it was planned and is complete, else nil.
func (l *Loaders) whole(id commerce.OrderID) *dynamo.WholeOrder {
	if whole, ok := l.wholeOrder.find(id); ok && whole.Complete {
		return whole
	}
	return nil
}

// wholeOf is the product's item collection where it was planned and is complete, else nil.
func (l *Loaders) wholeOf(sku commerce.SKU) *dynamo.WholeProduct {
	if whole, ok := l.wholeProduct.find(sku); ok && whole.Complete {
		return whole
	}
	return nil
}

func bySKU(i *commerce.LineItem) string { return string(i.SKU) }

func byEvent(e *commerce.Event) string { return string(e.ID) }

func byWarehouse(v *commerce.InventoryLevel) string { return string(v.WarehouseID) }

// ItemsAtHand returns a page of an order's items where no request is needed for it: they stand on
// the order, or came with it.
func (l *Loaders) ItemsAtHand(o *commerce.Order, page dynamo.Page) (dynamo.Slice[*commerce.LineItem], bool) {
	if o.EmbedsItems {
		return dynamo.PageOfValues(o.Items, bySKU, page), true
	}
	if whole := l.whole(o.ID); whole != nil {
		return dynamo.PageOf(whole.Items, bySKU, page), true
	}
	return dynamo.Slice[*commerce.LineItem]{}, false
}

// AllItems is the page of an order's items that shows how many an order without a count has: it is
// larger than any order.
func AllItems(id commerce.OrderID) dynamo.ListRequest {
	return dynamo.ListRequest{Of: string(id), Page: dynamo.Page{Limit: 1000}}
}

// ItemCount returns how many items an order has: what its record says, else how many a Query finds.
//
// Errors: those of dynamo.ReadPage.
func (l *Loaders) ItemCount(ctx context.Context, o *commerce.Order) (int, error) {
	if o.ItemCount != nil {
		return *o.ItemCount, nil
	}
	slice, err := l.OrderItems(ctx, o, AllItems(o.ID).Page)
	return len(slice.Items), err
}

// OrderItems returns a page of an order's items.
//
// Errors: those of dynamo.ReadPage.
func (l *Loaders) OrderItems(ctx context.Context, o *commerce.Order, page dynamo.Page) (dynamo.Slice[*commerce.LineItem], error) {
	if slice, ok := l.ItemsAtHand(o, page); ok {
		return slice, nil
	}
	pages := Pages(l, model.OrderItems)
	if all := AllItems(o.ID); pages.knows(all) {
		// They are read for the sake of their count.
		if slice, err := pages.Load(ctx, all); err == nil && len(slice.Items) < all.Page.Limit {
			return dynamo.PageOf(slice.Items, bySKU, page), nil
		}
	}
	return pages.Load(ctx, dynamo.ListRequest{Of: string(o.ID), Page: page})
}

// Item returns one item of an order.
//
// Errors: commerce.ErrNotFound where the order has no such item, and those of
// dynamo.ReadRecords.
func (l *Loaders) Item(ctx context.Context, o *commerce.Order, sku commerce.SKU) (*commerce.LineItem, error) {
	if item, ok := l.ItemAtHand(o, sku); ok {
		if item == nil {
			return nil, commerce.ErrNotFound
		}
		return item, nil
	}
	return Records(l, model.OrderItem).Load(ctx, model.OrderItemKey{Order: o.ID, SKU: sku})
}

// ItemAtHand reports whether the order's items are at hand, and gives the one of a product, nil
// where there is none.
func (l *Loaders) ItemAtHand(o *commerce.Order, sku commerce.SKU) (*commerce.LineItem, bool) {
	if o.EmbedsItems {
		for i := range o.Items {
			if o.Items[i].SKU == sku {
				return &o.Items[i], true
			}
		}
		return nil, true
	}
	whole := l.whole(o.ID)
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

// Timeline returns a page of what happened to an order.
//
// Errors: those of dynamo.ReadPage.
func (l *Loaders) Timeline(ctx context.Context, id commerce.OrderID, page dynamo.Page) (dynamo.Slice[*commerce.Event], error) {
	if slice, ok := l.TimelineAtHand(id, page); ok {
		return slice, nil
	}
	return Pages(l, model.Timeline).Load(ctx, dynamo.ListRequest{Of: string(id), Page: page})
}

// TimelineAtHand returns a page of an order's timeline if it came with the order.
func (l *Loaders) TimelineAtHand(id commerce.OrderID, page dynamo.Page) (dynamo.Slice[*commerce.Event], bool) {
	whole := l.whole(id)
	if whole == nil {
		return dynamo.Slice[*commerce.Event]{}, false
	}
	return dynamo.PageOf(whole.Events, byEvent, page), true
}

// Stocked returns a product with its stock, which a list by name lacks. It returns the product as
// it is if its record is gone, or cannot be read.
//
// Errors: those of dynamo.ReadRecords.
func (l *Loaders) Stocked(ctx context.Context, p *commerce.Product) (*commerce.Product, error) {
	if !p.Partial {
		return p, nil
	}
	own, err := Records(l, model.ProductBySKU).Load(ctx, p.SKU)
	switch {
	case errors.Is(err, commerce.ErrNotFound):
		return p, nil
	case err != nil:
		return p, err
	}
	return own, nil
}

// ProductInventory returns a page of a product's stock.
//
// Errors: those of dynamo.ReadPage.
func (l *Loaders) ProductInventory(ctx context.Context, sku commerce.SKU, page dynamo.Page) (dynamo.Slice[*commerce.InventoryLevel], error) {
	if slice, ok := l.InventoryAtHand(sku, page); ok {
		return slice, nil
	}
	return Pages(l, model.ProductInventory).Load(ctx, dynamo.ListRequest{Of: string(sku), Page: page})
}

// InventoryAtHand returns a page of a product's stock where it came with the product.
func (l *Loaders) InventoryAtHand(sku commerce.SKU, page dynamo.Page) (dynamo.Slice[*commerce.InventoryLevel], bool) {
	whole := l.wholeOf(sku)
	if whole == nil {
		return dynamo.Slice[*commerce.InventoryLevel]{}, false
	}
	return dynamo.PageOf(whole.Levels, byWarehouse, page), true
}

// AllOrderCounts is the page of the counts of all parts of the orders.
func AllOrderCounts() dynamo.ListRequest {
	return dynamo.ListRequest{Page: dynamo.Page{Limit: model.OrderCountParts}}
}

// StatusCounts returns the number of orders in each status.
//
// Errors: table.ErrNotCounted, and those of dynamo.ReadPage.
func (l *Loaders) StatusCounts(ctx context.Context) ([]*commerce.StatusCount, error) {
	parts, err := Pages(l, model.OrderCounts).Load(ctx, AllOrderCounts())
	if err != nil {
		return nil, err
	}
	counts, complete := commerce.SumOrderCounts(parts.Items)
	if !complete || len(parts.Items) < model.OrderCountParts {
		return nil, table.ErrNotCounted
	}
	return counts, nil
}

// RepOrdersOf is the page of the counts of all parts of an account rep's orders.
func RepOrdersOf(id commerce.EmployeeID) dynamo.ListRequest {
	return dynamo.ListRequest{Of: string(id), Page: dynamo.Page{Limit: model.RepOrderParts}}
}

// RepOrderCount returns how many orders an account rep has.
//
// Errors: table.ErrNotCounted, and those of dynamo.ReadPage.
func (l *Loaders) RepOrderCount(ctx context.Context, id commerce.EmployeeID) (*int, error) {
	parts, err := Pages(l, model.EmployeeOrderCount).Load(ctx, RepOrdersOf(id))
	if err != nil {
		return nil, err
	}
	sum, complete := commerce.SumRepOrders(parts.Items)
	if !complete {
		return nil, table.ErrNotCounted
	}
	return &sum, nil
}

// ProductOrderCount returns how many orders have a line item of a product.
//
// Errors: table.ErrNotCounted, and those of dynamo.ReadRecords.
func (l *Loaders) ProductOrderCount(ctx context.Context, p *commerce.Product) (*int, error) {
	own, err := l.Stocked(ctx, p)
	if err == nil && own.OrderCount == nil {
		err = table.ErrNotCounted
	}
	return own.OrderCount, err
}

// SpendingOf is the page of what a customer has spent in the months that some days are in; nil for
// all months.
//
// Errors: commerce.InvalidError for a range that runs backwards.
func SpendingOf(id commerce.CustomerID, placed *commerce.DateRange) (dynamo.ListRequest, error) {
	r := dynamo.ListRequest{Of: string(id), Page: dynamo.Page{Limit: commerce.MaxSpending, More: true}}
	if placed == nil {
		return r, nil
	}
	r.Range = dynamo.MonthsOf(*placed)
	return r, commerce.For("placed", placed.Check())
}

// Spending returns what a customer has spent in the months that some days are in; nil for all
// months.
//
// Errors: table.ErrNotAddedUp; commerce.InvalidError for a wrong range, and if there are more than
// commerce.MaxSpending; those of dynamo.ReadRecords and dynamo.ReadPage.
func (l *Loaders) Spending(ctx context.Context, c *commerce.Customer, placed *commerce.DateRange) ([]*commerce.Spending, error) {
	key, err := SpendingOf(c.ID, placed)
	if err != nil {
		return nil, err
	}
	if !c.SpendingComplete {
		// An edge does not tell.
		own, err := Records(l, model.CustomerByID).Load(ctx, c.ID)
		switch {
		case errors.Is(err, commerce.ErrNotFound):
			return nil, nil // the viewer sees no orders of the customer
		case err != nil:
			return nil, err
		case !own.SpendingComplete:
			return nil, table.ErrNotAddedUp
		}
	}
	page, err := Pages(l, model.CustomerSpending).Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if page.HasNext {
		return nil, commerce.For("placed", commerce.Invalid("leaves more than %d months and currencies: ask for fewer months", commerce.MaxSpending))
	}
	return page.Items, nil
}

// OrderCount returns how many orders a customer has placed: what the customer's record says, else
// what a Query counts.
//
// Errors: those of dynamo.ReadRecords and dynamo.Store.OrderCount.
func (l *Loaders) OrderCount(ctx context.Context, c *commerce.Customer) (int, error) {
	if c.OrderCount != nil {
		return *c.OrderCount, nil
	}
	// An edge has no count; the customer's record may have.
	if own, err := Records(l, model.CustomerByID).Load(ctx, c.ID); err == nil && own.OrderCount != nil {
		return *own.OrderCount, nil
	}
	return l.CountedOrders.Load(ctx, c.ID)
}

// PlanOrderCounts plans the customers whose records at hand do not tell how many orders they have
// placed, and then to count the orders of those who keep no count at all.
func (l *Loaders) PlanOrderCounts(ctx context.Context, at *Level, of []*commerce.Customer) {
	var unknown []commerce.CustomerID
	for _, c := range of {
		if c.OrderCount == nil {
			unknown = append(unknown, c.ID)
		}
	}
	Records(l, model.CustomerByID).Plan(ctx, at, unknown, func(ctx context.Context, next *Level, own []Found[commerce.CustomerID, *commerce.Customer]) {
		counted := map[commerce.CustomerID]bool{}
		for _, c := range own {
			counted[c.Key] = c.Value.OrderCount != nil
		}
		// An edge may stand where the customer's record is gone, or unreadable.
		uncounted := slices.DeleteFunc(slices.Clone(unknown), func(id commerce.CustomerID) bool { return counted[id] })
		l.CountedOrders.Plan(ctx, next, uncounted, nil)
	})
}
