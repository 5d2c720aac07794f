package loaders

import (
	"context"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Viewer is whom the records are read for. What they may not see does not exist for them: it is not
// found, and nothing that belongs to it is read. So an id that somebody has guessed takes the same
// requests as one that nobody has. The zero value sees no customer and no order.
type Viewer struct {
	Principal commerce.Principal
	Policy    commerce.Policy
}

func (v Viewer) customer(id commerce.CustomerID) bool {
	return v.Policy.Sees(v.Principal, commerce.ReadCustomer, id)
}

func (v Viewer) ordersOf(id commerce.CustomerID) bool {
	return v.Policy.Sees(v.Principal, commerce.ReadOrder, id)
}

// ownOrders reports whether the viewer sees the own orders at most.
func (v Viewer) ownOrders() bool {
	return v.Policy.Granted(v.Principal, commerce.ReadOrder) != commerce.All
}

// everyCustomer reports whether the viewer sees all customers.
func (v Viewer) everyCustomer() bool {
	return v.Policy.Granted(v.Principal, commerce.ReadCustomer) == commerce.All
}

// ofCustomers makes a look-up find nothing, and read nothing, for keys of other customers than
// those that are seen.
func ofCustomers[K comparable, V any](
	ctx context.Context, l *Loaders, p *model.Lookup[K, V], keys []K, all bool, seen func(K) bool,
) ([]dynamo.Result[V], error) {
	if all {
		return dynamo.ReadRecords(ctx, l.store, p, keys)
	}
	results := make([]dynamo.Result[V], len(keys))
	var those []K
	var places []int
	for i, key := range keys {
		if seen(key) {
			those, places = append(those, key), append(places, i)
		} else {
			results[i].Err = commerce.ErrNotFound
		}
	}
	if len(those) == 0 {
		return results, nil
	}
	found, err := dynamo.ReadRecords(ctx, l.store, p, those)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		results[place] = found[i]
	}
	return results, nil
}

// customersByID looks up customers (AP6).
func (l *Loaders) customersByID(ctx context.Context, keys []commerce.CustomerID) ([]dynamo.Result[*commerce.Customer], error) {
	return ofCustomers(ctx, l, model.CustomerByID, keys, l.viewer.everyCustomer(), l.viewer.customer)
}

// customerOrders looks up customers' copies of orders (AP29).
func (l *Loaders) customerOrders(ctx context.Context, keys []model.CustomerOrderKey) ([]dynamo.Result[*commerce.Order], error) {
	seen := func(k model.CustomerOrderKey) bool { return l.viewer.ordersOf(k.Customer) }
	return ofCustomers(ctx, l, model.CustomerOrder, keys, !l.OwnOrders(), seen)
}

// ordersByID looks up orders by id: for those who see the own ones only, as the customer's copies,
// whose keys hold the customer's id, so that another customer's order is not there.
func (l *Loaders) ordersByID(ctx context.Context, ids []commerce.OrderID) ([]dynamo.Result[*commerce.Order], error) {
	if !l.OwnOrders() {
		return dynamo.ReadRecords(ctx, l.store, model.OrderByID, ids)
	}
	keys := make([]model.CustomerOrderKey, len(ids))
	for i, id := range ids {
		keys[i] = model.CustomerOrderKey{Customer: l.viewer.Principal.Customer, Order: id}
	}
	return l.customerOrders(ctx, keys)
}

// OwnOrders reports whether the viewer sees the own orders at most: what belongs to an order by its
// id, such as its timeline, is to be read only after the order was found.
func (l *Loaders) OwnOrders() bool { return l.viewer.ownOrders() }

// ItemByID returns an item by its order's id.
//
// Errors: commerce.ErrNotFound, and those of dynamo.ReadRecords; for those who see the own
// orders only also Order's.
func (l *Loaders) ItemByID(ctx context.Context, key model.OrderItemKey) (*commerce.LineItem, error) {
	if !l.OwnOrders() {
		return Records(l, model.OrderItem).Load(ctx, key)
	}
	order, err := l.Order(ctx, key.Order)
	if err != nil {
		return nil, err
	}
	return l.Item(ctx, order, key.SKU)
}

// PlanOwnItems plans items by their orders' ids for those who see the own orders only: first the
// orders, and then items of those that are found and do not carry them. then runs as in
// Loader.Plan, with the keys whose orders were found.
func (l *Loaders) PlanOwnItems(ctx context.Context, at *Level, keys []model.OrderItemKey, then func(context.Context, *Level, []model.OrderItemKey)) {
	ids := make([]commerce.OrderID, len(keys))
	for i, key := range keys {
		ids[i] = key.Order
	}
	Records(l, model.OrderByID).Plan(ctx, at, ids, func(ctx context.Context, next *Level, found []Found[commerce.OrderID, *commerce.Order]) {
		own := make(map[commerce.OrderID]*commerce.Order, len(found))
		for _, f := range found {
			own[f.Key] = f.Value
		}
		there := slices.DeleteFunc(slices.Clone(keys), func(key model.OrderItemKey) bool { return own[key.Order] == nil })
		Records(l, model.OrderItem).Plan(ctx, next, slices.DeleteFunc(slices.Clone(there), func(key model.OrderItemKey) bool {
			_, ok := l.ItemAtHand(own[key.Order], key.SKU)
			return ok
		}), nil)
		then(ctx, next, there)
	})
}
