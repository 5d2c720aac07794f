package graph

import (
	"context"
	"math"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/scalar"
)

type openedSourceKey struct{}

// openedSource receives the event source that a subscription's resolver opens. gqlgen requires that
// the resolver also returns a channel. It is unused, because a channel cannot return errors.
type openedSource struct {
	source changeSource
	// reads is the number of DynamoDB requests that the feed made to start the subscription and to
	// read the missed events.
	reads int
}

// openSource opens a subscription's event source and stores it in the context's openedSource.
func (r *Resolver) openSource(ctx context.Context, open func(context.Context, *feed.Feed) (*feed.Subscription, error)) (<-chan *feed.OrderChange, error) {
	// This budget only counts requests. The feed limits the number of missed events.
	counted := table.NewReadBudget(math.MaxInt32)
	subscription, err := open(counted.NewContext(ctx), r.feed)
	opened := ctx.Value(openedSourceKey{}).(*openedSource)
	opened.reads = math.MaxInt32 - counted.Remaining()
	if err != nil {
		return nil, err
	}
	opened.source = authorizedSource{subscription, r.viewer(ctx).Records(model.CustomerOrders.Owner)}
	return make(chan *feed.OrderChange), nil
}

// authorizedSource ends the subscription if the subscriber may no longer see the changed order.
type authorizedSource struct {
	changeSource
	// visible contains the customers whose orders the subscriber may see.
	visible access.Scope
}

// Next returns NOT_FOUND if the order now belongs to a customer whose orders the subscriber may not
// see. Other errors come from feed.Subscription.Next.
func (c authorizedSource) Next(ctx context.Context) (feed.OrderChange, error) {
	change, err := c.changeSource.Next(ctx)
	if err == nil && change.Customer != "" && !c.visible.Includes(change.Customer) {
		return feed.OrderChange{}, withNotFoundCode(commerce.ErrNotFound, "there is no such order")
	}
	return change, err
}

// subscribe opens the event source of a subscription to the changes of one order or one customer's
// orders. The function check decides whether the caller may subscribe.
func subscribe[ID ~string](
	ctx context.Context, r *Resolver, argument, text string, after *string,
	check func(*Resolver, context.Context, ID) error, open func(*feed.Feed, context.Context, ID, commerce.EventID) (*feed.Subscription, error),
) (<-chan *feed.OrderChange, error) {
	id, err := parseID[ID](text)
	if err != nil {
		return nil, commerce.ErrorWithArgument(argument, err)
	}
	afterID, err := parseEventID(after)
	if err != nil {
		return nil, err
	}
	if err := check(r, ctx, id); err != nil {
		return nil, err
	}
	return r.openSource(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) { return open(f, ctx, id, afterID) })
}

func (r *Resolver) orderStatusChanged(ctx context.Context, status *commerce.Status, after *string) (<-chan *feed.OrderChange, error) {
	afterID, err := parseEventID(after)
	if err != nil {
		return nil, err
	}
	var to commerce.Status
	if status != nil {
		to = *status
	}
	return r.openSource(ctx, func(ctx context.Context, f *feed.Feed) (*feed.Subscription, error) {
		return f.SubscribeOrderStatus(ctx, to, afterID)
	})
}

// parseEventID parses the argument "after". If it is not set, parseEventID returns an empty ID.
func parseEventID(after *string) (commerce.EventID, error) {
	if after == nil {
		return "", nil
	}
	id, err := commerce.ParseID[commerce.EventID](*after)
	if err != nil {
		return "", commerce.ErrorWithArgument("after", err)
	}
	return id, nil
}

// resumeID returns the ID of a change's event, so that a new subscription can start after this
// event. If the event has no position, resumeID returns nil.
func resumeID(change *feed.OrderChange) *string { return scalar.OrNull(string(change.Position)) }

// planEvent plans the reads for one event of a subscription. If the change already contains the
// order, planEvent does not read the order again.
func (p plan) planEvent(ctx context.Context, root *operation.SelectionSet, change *feed.OrderChange) {
	var referenced pendingRecords
	var orders []planTarget[*commerce.Order]
	for _, f := range root.Reads {
		for _, update := range f.Records {
			for _, part := range update.Reads {
				switch {
				case part.Number != fieldOrderUpdateOrder && change.Event != nil:
					for event, f := range selectedFields([]planTarget[*commerce.Event]{{change.Event, part.Records}}) {
						orderEventReference(event, f, &referenced)
					}
				case part.Number != fieldOrderUpdateOrder:
				case change.Order != nil:
					orders = append(orders, planTarget[*commerce.Order]{change.Order, part.Records})
				default:
					orderUpdateReference(change, part, &referenced)
				}
			}
		}
	}
	if change.Order != nil {
		p.loaders.PrimeOrders(ctx, []*commerce.Order{change.Order})
	}
	p.planCollections(ctx, &referenced)
	p.planReferences(ctx, &referenced)
	p.orders(ctx, orders)
}
