package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// canAccess reports whether the caller may see a customer.
func (c Caller) canAccess(id commerce.CustomerID) bool { return c.Customer == "" || c.Customer == id }

// hideIfForbidden marks a customer as missing if the caller may not see the customer. So the change
// reads no other customer's record.
func (c *change) hideIfForbidden(id commerce.CustomerID, k model.Keys) {
	if !c.caller.canAccess(id) {
		c.known[k.Primary()] = nil
	}
}

// canAccessOrder reports whether the caller may see an order. A caller restricted to one customer
// needs the customer's copy, whose key contains the customer's ID. The same read happens for a
// missing order and for another customer's order, so the caller cannot distinguish them.
//
// It returns the errors of table.WrapError.
func (c *change) canAccessOrder(ctx context.Context, id commerce.OrderID) (bool, error) {
	if c.caller.Customer == "" {
		return true, nil
	}
	records, err := c.read(ctx, model.CustomerOrderKeys(&c.KeyBuilder, model.CustomerOrderKey{Customer: c.caller.Customer, Order: id}).Primary())
	if err != nil {
		return false, err
	}
	return records[0] != nil, nil
}
