package loaders

import (
	"context"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Viewer is the principal that reads records, with its policy. If the viewer may not read a record,
// the loaders report that the record does not exist.
type Viewer struct {
	Principal commerce.Principal
	Policy    commerce.Policy
}

// canReadCustomer reports whether the viewer may read a customer.
func (v Viewer) canReadCustomer(id commerce.CustomerID) bool {
	return v.Policy.CanAccess(v.Principal, commerce.PermissionReadCustomer, id)
}

// canReadOrdersOf reports whether the viewer may read the orders of a customer.
func (v Viewer) canReadOrdersOf(id commerce.CustomerID) bool {
	return v.Policy.CanAccess(v.Principal, commerce.PermissionReadOrder, id)
}

// NoteOf returns the note of an event. If the viewer may not read the note, NoteOf returns "".
func (v Viewer) NoteOf(e *commerce.Event) string {
	if e.ChangesItems() || v.Policy.CanAccess(v.Principal, commerce.PermissionReadNote, e.NoteCustomerID) {
		return e.Note
	}
	return ""
}

// onlyOwnOrders reports whether the viewer can read at most its own orders.
func (v Viewer) onlyOwnOrders() bool {
	return v.Policy.GrantForPrincipal(v.Principal, commerce.PermissionReadOrder) != commerce.GrantAll
}

// canReadAllCustomers reports whether the viewer may read all customers.
func (v Viewer) canReadAllCustomers() bool {
	return v.Policy.GrantForPrincipal(v.Principal, commerce.PermissionReadCustomer) == commerce.GrantAll
}

// readPermitted reads the records that the viewer may read. If the parameter all is true, it reads
// all records. Otherwise, the function visible decides for each key. If the viewer may not read a
// record, the result is commerce.ErrNotFound.
func readPermitted[K comparable, V any](
	ctx context.Context, l *Loaders, p *model.LookupPattern[K, V], keys []K, all bool, visible func(K) bool,
) ([]dynamo.LookupResult[V], error) {
	if all {
		return dynamo.ReadRecords(ctx, l.store, p, keys)
	}
	results := make([]dynamo.LookupResult[V], len(keys))
	var visibleKeys []K
	var indexes []int
	for i, key := range keys {
		if visible(key) {
			visibleKeys, indexes = append(visibleKeys, key), append(indexes, i)
		} else {
			results[i].Err = commerce.ErrNotFound
		}
	}
	if len(visibleKeys) == 0 {
		return results, nil
	}
	found, err := dynamo.ReadRecords(ctx, l.store, p, visibleKeys)
	if err != nil {
		return nil, err
	}
	for i, index := range indexes {
		results[index] = found[i]
	}
	return results, nil
}

// readCustomersByID reads customers by ID (access pattern AP6).
func (l *Loaders) readCustomersByID(ctx context.Context, keys []commerce.CustomerID) ([]dynamo.LookupResult[*commerce.Customer], error) {
	return readPermitted(ctx, l, model.CustomerByID, keys, l.viewer.canReadAllCustomers(), l.viewer.canReadCustomer)
}

// readCustomerOrders reads orders by customer ID and order ID (access pattern AP29). It reads the
// copies of orders that are stored in the partitions of customers.
func (l *Loaders) readCustomerOrders(ctx context.Context, keys []model.CustomerOrderKey) ([]dynamo.LookupResult[*commerce.Order], error) {
	visible := func(k model.CustomerOrderKey) bool { return l.viewer.canReadOrdersOf(k.Customer) }
	return readPermitted(ctx, l, model.CustomerOrder, keys, !l.OnlyOwnOrders(), visible)
}

// readOrdersByID reads orders by ID. For a viewer that may read only its own orders, it reads the
// copies of the orders in the partition of the viewer's customer.
func (l *Loaders) readOrdersByID(ctx context.Context, ids []commerce.OrderID) ([]dynamo.LookupResult[*commerce.Order], error) {
	if !l.OnlyOwnOrders() {
		return dynamo.ReadRecords(ctx, l.store, model.OrderByID, ids)
	}
	keys := make([]model.CustomerOrderKey, len(ids))
	for i, id := range ids {
		keys[i] = model.CustomerOrderKey{Customer: l.viewer.Principal.Customer, Order: id}
	}
	return l.readCustomerOrders(ctx, keys)
}

// OnlyOwnOrders reports whether the viewer may read only its own orders. In this case, an order
// must be found before its timeline and line items may be read.
func (l *Loaders) OnlyOwnOrders() bool { return l.viewer.onlyOwnOrders() }

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
