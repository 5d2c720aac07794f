package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// canAccess reports whether the caller may access a customer.
func (c Caller) canAccess(id commerce.CustomerID) bool { return c.Customer == "" || c.Customer == id }

// hideIfForbidden marks a customer as missing in c.known if the caller may not access the customer.
// The change then does not read the customer's record.
func (c *change) hideIfForbidden(id commerce.CustomerID, k model.Keys) {
	if !c.caller.canAccess(id) {
		c.known[k.Primary()] = nil
	}
}

// canAccessOrder reports whether the caller may access an order. If the caller is restricted to one
// customer, it reads the copy of the order in this customer's partition. Neither a missing order
// nor another customer's order has such a copy, so the caller cannot distinguish these two cases.
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
