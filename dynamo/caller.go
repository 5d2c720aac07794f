package dynamo

import (
	"github.com/ordergraph/ordergraph/commerce"
)

// owns tells whether a customer exists for the caller.
func (c Caller) owns(id commerce.CustomerID) bool { return c.Customer == "" || c.Customer == id }

// ownsOrder tells whether an order exists for the caller. Nothing but its customer is looked at: what else is wrong with somebody else's
// record is not the caller's business either.
func (c Caller) ownsOrder(r record) bool {
	return c.Customer == "" || sameValue(r[attrCustomerID], str(string(c.Customer)))
}

// conceal makes another customer than the caller's own one who is not there, without a read.
func (c *change) conceal(id commerce.CustomerID, k keys) {
	if !c.caller.owns(id) {
		c.known[primary(k)] = nil
	}
}
