package graph

import (
	"context"
	"errors"
	"math"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/scalar"
)

type openingKey struct{}

// opening receives the source that a subscription's resolver opens. gqlgen requires a channel as
// the result of the resolver. A channel would need a goroutine per subscription and could not
// return an error, so it remains unused.
type opening struct {
	changes changes
	// reads is the number of requests that the feed made to find the subscription's position and the
	// missed events.
	reads int
}

// opens opens the source of a subscription's events.
func (r *Resolver) opens(ctx context.Context, open func(context.Context, *feed.Feed) (*feed.Subscription, error)) (<-chan *feed.OrderChange, error) {
	if r.feed == nil {
		return nil, errors.Join(table.ErrUnavailable, errors.New("the server has no change feed"))
	}
	// The budget only counts requests. The feed limits the number of missed events.
	counted := table.NewReadBudget(math.MaxInt32)
	subscription, err := open(counted.On(ctx), r.feed)
	opened := ctx.Value(openingKey{}).(*opening)
	opened.reads = math.MaxInt32 - counted.Left()
	if err != nil {
		return nil, err
	}
	opened.changes = visibleChanges{changes: subscription, sees: func(customer commerce.CustomerID) bool {
		return r.access.Policy.Sees(r.principal(ctx), commerce.ReadOrder, customer)
	}}
	return make(chan *feed.OrderChange), nil
}

// visibleChanges are the changes of orders that the subscriber may see.
type visibleChanges struct {
	changes
	// sees reports whether the subscriber may see a customer's orders.
	sees func(commerce.CustomerID) bool
}

// Next waits for a change. If other software moves the order to a customer whose orders the
// subscriber may not see, the subscription ends with NOT_FOUND. The other errors are the errors of
// feed.Subscription.Next.
func (c visibleChanges) Next(ctx context.Context) (feed.OrderChange, error) {
	change, err := c.changes.Next(ctx)
	if err == nil && change.Customer != "" && !c.sees(change.Customer) {
		return feed.OrderChange{}, orUnknown(commerce.ErrNotFound, "there is no such order")
	}
	return change, err
}

func (r *Resolver) orderUpdated(ctx context.Context, id string, after *string) (<-chan *feed.OrderChange, error) {
	order, err := commerce.ParseOrderID(id)
	if err != nil {
		return nil, commerce.For("id", err)
	}
	afterID, err := eventID(after)
	if err != nil {
		return nil, err
	}
	if err := r.mayFollowOrder(ctx, order); err != nil {
		return nil, err
	}
	return r.opens(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) {
		return f.Order(ctx, order, afterID)
	})
}

func (r *Resolver) customerOrdersUpdated(ctx context.Context, id string, after *string) (<-chan *feed.OrderChange, error) {
	customer, err := commerce.ParseID[commerce.CustomerID](id)
	if err != nil {
		return nil, commerce.For("customerId", err)
	}
	afterID, err := eventID(after)
	if err != nil {
		return nil, err
	}
	if err := r.mayFollowCustomer(ctx, customer); err != nil {
		return nil, err
	}
	return r.opens(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) {
		return f.CustomerOrders(ctx, customer, afterID)
	})
}

func (r *Resolver) orderStatusChanged(ctx context.Context, status *commerce.Status) (<-chan *feed.OrderChange, error) {
	var to commerce.Status
	if status != nil {
		to = *status
	}
	return r.opens(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) { return f.OrderStatus(ctx, to) })
}

// eventID parses the argument "after". It returns an empty ID if the argument is missing.
func eventID(after *string) (commerce.EventID, error) {
	if after == nil {
		return "", nil
	}
	id, err := commerce.ParseID[commerce.EventID](*after)
	if err != nil {
		return "", commerce.For("after", err)
	}
	return id, nil
}

// updatedOrder returns the order of a change: the order in the event, or otherwise the current
// order.
func updatedOrder(ctx context.Context, change *feed.OrderChange) (*commerce.Order, error) {
	if change.Order != nil {
		return change.Order, nil
	}
	return orNull(of(ctx).Order(ctx, change.OrderID))
}

// updateID returns the ID to resume after. It returns nil if the change has no such ID.
func updateID(change *feed.OrderChange) *string { return scalar.OrNull(string(change.Position)) }

// event plans the reads for an event of a subscription: the references of the event, and the
// changed order. If the event contains the order, only the selections of the order are planned.
func (p plan) event(ctx context.Context, root *operation.SelectionSet, change *feed.OrderChange) {
	var referenced refs
	var orders []target[*commerce.Order]
	for _, f := range root.Reads {
		for _, update := range f.Records {
			for _, part := range update.Reads {
				switch {
				case part.Name == "event" && change.Event != nil:
					for event, f := range fields([]target[*commerce.Event]{{change.Event, part.Records}}) {
						orderEventReference(event, f, &referenced)
					}
				case part.Name != "order":
				case change.Order != nil:
					orders = append(orders, target[*commerce.Order]{change.Order, part.Records})
				default:
					referenced.order(part.Records).add(change.OrderID, part.Path, part.Records)
				}
			}
		}
	}
	if change.Order != nil {
		p.loaders.PrimeOrders(ctx, []*commerce.Order{change.Order})
	}
	p.wholeRefs(ctx, &referenced)
	p.planReferences(ctx, &referenced)
	p.orders(ctx, orders)
}
