package loaders

import (
	"context"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// readOrdersByID reads orders by ID. For a viewer that may read only its own orders, it reads the
// copies of the orders in the partition of the viewer's customer.
func (l *Loaders) readOrdersByID(ctx context.Context, ids []commerce.OrderID) ([]dynamo.LookupResult[*commerce.Order], error) {
	scope := l.viewer.Records(model.CustomerOrder.Owner)
	if scope.All() {
		return dynamo.ReadRecords(ctx, l.store, model.OrderByID, ids)
	}
	keys := make([]model.CustomerOrderKey, len(ids))
	for i, id := range ids {
		keys[i] = model.CustomerOrderKey{Customer: scope.Customer(), Order: id}
	}
	return lookupReader[model.CustomerOrderKey, *commerce.Order]{model.CustomerOrder}.read(ctx, l, keys)
}

// OnlyOwnOrders reports whether the viewer may read only its own orders. In this case, an order
// must be found before its timeline and line items may be read.
func (l *Loaders) OnlyOwnOrders() bool { return !l.viewer.Records(model.CustomerOrder.Owner).All() }

// OrderItemByID returns the line item with the given order ID and SKU.
//
// It returns commerce.ErrNotFound if the line item does not exist, and the errors of
// dynamo.ReadRecords.
func (l *Loaders) OrderItemByID(ctx context.Context, key model.OrderItemKey) (*commerce.LineItem, error) {
	if !l.OnlyOwnOrders() {
		return RecordLoader(l, model.OrderItem).Load(ctx, key)
	}
	order, err := l.Order(ctx, key.Order)
	if err != nil {
		return nil, err
	}
	return l.OrderItem(ctx, order, key.SKU)
}

// PlanItemsAfterOrders schedules reads of line items for a viewer that may read only its own
// orders. It first reads the orders. The callback receives the keys of line items whose orders were
// found.
func (l *Loaders) PlanItemsAfterOrders(ctx context.Context, level *Level, keys []model.OrderItemKey, then func(context.Context, *Level, []model.OrderItemKey)) {
	ids := make([]commerce.OrderID, len(keys))
	for i, key := range keys {
		ids[i] = key.Order
	}
	RecordLoader(l, model.OrderByID).Plan(ctx, level, ids, func(ctx context.Context, next *Level, found []FoundValue[commerce.OrderID, *commerce.Order]) {
		own := make(map[commerce.OrderID]*commerce.Order, len(found))
		for _, f := range found {
			own[f.Key] = f.Value
		}
		foundKeys := slices.DeleteFunc(slices.Clone(keys), func(key model.OrderItemKey) bool { return own[key.Order] == nil })
		RecordLoader(l, model.OrderItem).Plan(ctx, next, slices.DeleteFunc(slices.Clone(foundKeys), func(key model.OrderItemKey) bool {
			_, ok := l.CachedOrderItem(own[key.Order], key.SKU)
			return ok
		}), nil)
		then(ctx, next, foundKeys)
	})
}
