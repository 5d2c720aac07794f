package dynamo

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
)

// OrderChange is a change of an order, as those who follow it are told.
type OrderChange struct {
	OrderID commerce.OrderID
	// Event is the change's entry in the order's timeline; nil where other software changed the order and wrote none.
	Event *commerce.Event
	// Order is the order right after the change, where it came along; where it is nil, read it.
	Order *commerce.Order
}

// Feed tells what changes in the table, whoever changes it. It reads each shard of the table's stream once, however many follow it, and
// nothing while nobody does. It is safe for concurrent use.
type Feed struct{}

// Close ends the feed and all who follow it.
func (f *Feed) Close() {}

// Following is what somebody follows. It is to be closed.
type Following struct{}

// Next waits for the next change.
//
// Errors: ErrTooSlow where the follower has fallen so far behind that it was cut, ErrUnavailable where the feed broke off (both can be
// resumed behind the last event), those of the context.
func (f *Following) Next(context.Context) (OrderChange, error) {
	return OrderChange{}, ErrUnavailable
}

// Close ends it. It may be called more than once, and while Next waits.
func (f *Following) Close() {}

// Order follows one order, behind an event of its timeline where after is not empty.
//
// Errors: commerce.InvalidError where after is no event of the order, ErrUnavailable where the table has no stream, those of failed.
func (f *Feed) Order(ctx context.Context, id commerce.OrderID, after commerce.EventID) (*Following, error) {
	return nil, ErrUnavailable
}

// CustomerOrders follows the orders of one customer, behind an event of one of them where after is not empty.
//
// Errors: as Order's; after may be an event of any of the customer's orders.
func (f *Feed) CustomerOrders(ctx context.Context, id commerce.CustomerID, after commerce.EventID) (*Following, error) {
	return nil, ErrUnavailable
}

// OrderStatus follows orders that come into a status, any where it is zero.
//
// Errors: as Order's.
func (f *Feed) OrderStatus(ctx context.Context, status commerce.Status) (*Following, error) {
	return nil, ErrUnavailable
}
