package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// canAccess reports whether the caller may access the customer with the given ID.
func (c Caller) canAccess(id commerce.CustomerID) bool { return c.Customer == "" || c.Customer == id }

// hideIfForbidden hides a customer that the caller may not access. The change then treats the
// customer as missing. k is the key of the customer's record.
func (c *change) hideIfForbidden(id commerce.CustomerID, k model.Keys) {
	if !c.caller.canAccess(id) {
		c.known[k.Primary()] = nil
	}
}

// canAccessOrder reports whether the caller may access an order. If the caller is restricted to one
// customer, this customer's partition must contain a copy of the order.
//
// It returns errors from table.WrapError.
func (c *change) canAccessOrder(ctx context.Context, id commerce.OrderID) (bool, error) {
	if c.caller.Customer == "" {
		return true, nil
	}
	records, err := c.read(ctx, model.KeysOfCustomerOrder(&c.KeyBuilder, model.CustomerOrderKey{Customer: c.caller.Customer, Order: id}).Primary())
	if err != nil {
		return false, err
	}
	return records[0] != nil, nil
}
