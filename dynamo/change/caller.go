package change

import (
	"context"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// scope returns the customers whose records the caller may access.
func (c Caller) scope() access.Scope { return access.OnlyCustomer(c.Customer) }

// canAccess reports whether the caller may access the record with the given key.
func (c Caller) canAccess(k model.Keys) bool {
	scope := c.scope()
	if scope.All() {
		return true
	}
	owner, owned := model.OwnerOf(k.PK)
	return !owned || scope.Includes(owner)
}

// canAccessOrder reports whether the caller may access an order. If the caller is restricted to one
// customer, this customer's partition must contain a copy of the order.
//
// It returns errors from table.WrapError.
func (c *change) canAccessOrder(ctx context.Context, id commerce.OrderID) (bool, error) {
	scope := c.caller.scope()
	if scope.All() {
		return true, nil
	}
	records, err := c.read(ctx, model.KeysOfCustomerOrder(&c.KeyBuilder, model.CustomerOrderKey{Customer: scope.Customer(), Order: id}).Primary())
	if err != nil {
		return false, err
	}
	return records[0] != nil, nil
}
