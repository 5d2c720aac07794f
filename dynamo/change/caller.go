package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// canAccess reports whether the caller may access a customer.
func (c Caller) canAccess(id commerce.CustomerID) bool { return c.Customer == "" || c.Customer == id }

// hideIfForbidden treats a customer as missing if the caller may not access the customer. The
// change then never reads the record of another customer.
func (c *change) hideIfForbidden(id commerce.CustomerID, k model.Keys) {
	if !c.caller.canAccess(id) {
		c.known[k.Primary()] = nil
	}
}

// canAccessOrder reports whether the caller may access an order. For a caller restricted to one
// customer, it reads the customer's copy of the order, because the key of the copy contains the
// customer's ID. This read is the same for a missing order and for an order of another customer.
// Therefore the caller cannot distinguish the two cases.
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
