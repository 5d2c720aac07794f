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

// opening takes up what a subscription's resolver has opened. gqlgen wants a channel of it, which
// would take a goroutine for each subscription, and could tell no error; so the channel stays
// unused.
type opening struct {
	changes changes
	// reads is how many requests it took to find out where the follower stands and what it has
	// missed.
	reads int
}

// opens opens the source of a subscription's events.
func (r *Resolver) opens(ctx context.Context, open func(context.Context, *feed.Feed) (*feed.Subscription, error)) (<-chan *feed.OrderChange, error) {
	if r.feed == nil {
		return nil, errors.Join(table.ErrUnavailable, errors.New("the server has no feed"))
	}
	// It only counts: how much can be missed, the feed bounds.
	counted := table.NewReadBudget(math.MaxInt32)
	following, err := open(counted.On(ctx), r.feed)
	opened := ctx.Value(openingKey{}).(*opening)
	opened.reads = math.MaxInt32 - counted.Left()
	if err != nil {
		return nil, err
	}
	opened.changes = visibleChanges{changes: following, sees: func(customer commerce.CustomerID) bool {
		return r.access.Policy.Sees(r.principal(ctx), commerce.ReadOrder, customer)
	}}
	return make(chan *feed.OrderChange), nil
}

// visibleChanges are changes of orders that the subscriber sees.
type visibleChanges struct {
	changes
	// sees reports whether the subscriber sees a customer's orders.
	sees func(commerce.CustomerID) bool
}

// Next waits for a change. Other software may give the order to a customer whose orders the
// subscriber does not see. That ends the subscription.
//
// Errors: NOT_FOUND, and those of feed.Subscription.Next.
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
	behind, err := eventID(after)
	if err != nil {
		return nil, err
	}
	if err := r.mayFollowOrder(ctx, order); err != nil {
		return nil, err
	}
	return r.opens(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) {
		return f.Order(ctx, order, behind)
	})
}

func (r *Resolver) customerOrdersUpdated(ctx context.Context, id string, after *string) (<-chan *feed.OrderChange, error) {
	customer, err := commerce.ParseID[commerce.CustomerID](id)
	if err != nil {
		return nil, commerce.For("customerId", err)
	}
	behind, err := eventID(after)
	if err != nil {
		return nil, err
	}
	if err := r.mayFollowCustomer(ctx, customer); err != nil {
		return nil, err
	}
	return r.opens(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) {
		return f.CustomerOrders(ctx, customer, behind)
	})
}

func (r *Resolver) orderStatusChanged(ctx context.Context, status *commerce.Status) (<-chan *feed.OrderChange, error) {
	var to commerce.Status
	if status != nil {
		to = *status
	}
	return r.opens(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) { return f.OrderStatus(ctx, to) })
}

// eventID reads the argument after, empty where it is not given.
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

// updatedOrder is the order that a change is about: as it came with the change, else as it is now.
func updatedOrder(ctx context.Context, change *feed.OrderChange) (*commerce.Order, error) {
	if change.Order != nil {
		return change.Order, nil
	}
	return orNull(of(ctx).Order(ctx, change.OrderID))
}

// updateID is the ID to resume after a change with, nil where it has none.
func updateID(change *feed.OrderChange) *string { return scalar.OrNull(string(change.Position)) }

// event plans what a subscription reads for an event: what the event refers to, and the order that
// changed, or what follows from it where it came along.
func (p plan) event(ctx context.Context, root *operation.SelectionSet, change *feed.OrderChange) {
	var read refs
	var came []target[*commerce.Order]
	for _, f := range root.Reads {
		for _, update := range f.Records {
			for _, part := range update.Reads {
				switch {
				case part.Name == "event" && change.Event != nil:
					for event, f := range fields([]target[*commerce.Event]{{change.Event, part.Records}}) {
						orderEventReference(event, f, &read)
					}
				case part.Name != "order":
				case change.Order != nil:
					came = append(came, target[*commerce.Order]{change.Order, part.Records})
				default:
					read.order(part.Records).add(change.OrderID, part.Path, part.Records)
				}
			}
		}
	}
	if change.Order != nil {
		p.loaders.PrimeOrders(ctx, []*commerce.Order{change.Order})
	}
	p.wholeRefs(ctx, &read)
	p.refs(ctx, &read)
	p.orders(ctx, came)
}
