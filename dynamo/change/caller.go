package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// owns reports whether a customer exists for the caller.
func (c Caller) owns(id commerce.CustomerID) bool { return c.Customer == "" || c.Customer == id }

// conceal makes another customer than the caller's own one who is not there, without a read.
func (c *change) conceal(id commerce.CustomerID, k model.Keys) {
	if !c.caller.owns(id) {
		c.known[k.Primary()] = nil
	}
}

// ownsOrder reports whether an order exists for the caller. Where that is the own ones only, the
// customer's copy is read first, whose key has the customer's id: what it takes to find that there
// is none is the same for somebody else's order as for nobody's.
//
// Errors: those of failed.
func (c *change) ownsOrder(ctx context.Context, id commerce.OrderID) (bool, error) {
	if c.caller.Customer == "" {
		return true, nil
	}
	records, err := c.read(ctx, model.CustomerOrderKeys(&c.KeyBuilder, model.CustomerOrderKey{Customer: c.caller.Customer, Order: id}).Primary())
	if err != nil {
		return false, err
	}
	return records[0] != nil, nil
}
