package dynamo

import (
	"context"
	"errors"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// ExpiryActor is the name of the actor in the timeline of an expired order.
const ExpiryActor = "order-expiry"

// expiryPageSize is the number of orders that one Query of ExpireOrders reads.
const expiryPageSize = 25

// ExpireOrders cancels all orders that have expired, and returns their number. Several servers can call it
// at the same time, because each order is cancelled only once. If the table does not list orders by their
// expiry yet, ExpireOrders does nothing.
//
// Errors: errors from ReadPage and ChangeOrderStatus. Orders that could not be cancelled remain for the next
// call. An unreadable order does not keep the others from being cancelled.
func (s *Store) ExpireOrders(ctx context.Context) (cancelled int, err error) {
	if s.table.Layout.Derivations().CheckListReadable(&model.OrdersByExpiry.AccessPattern) != nil {
		return 0, nil
	}
	now, page := s.table.Now(), PageRequest{Limit: expiryPageSize, DetectMore: true}
	var unreadable error
	for {
		found, err := ReadPage(ctx, s, model.OrdersByExpiry, ListRequest{Page: page})
		if err != nil {
			return cancelled, err
		}
		for _, o := range found.Items {
			if o.ExpiresAt == nil || o.ExpiresAt.After(now) {
				return cancelled, unreadable
			}
			_, err := s.ChangeOrderStatus(ctx, change.Caller{Name: ExpiryActor}, commerce.OrderStatusChange{OrderID: o.ID, To: commerce.Cancelled, Expired: true})
			switch {
			case err == nil:
				cancelled++
			case errors.Is(err, model.ErrCorrupt):
				unreadable = err
			case !commerce.IsUserError(err): // otherwise, it was confirmed, paid or cancelled meanwhile
				return cancelled, err
			}
		}
		if !found.HasNext {
			return cancelled, unreadable
		}
		page.After = found.Positions[len(found.Positions)-1]
	}
}
