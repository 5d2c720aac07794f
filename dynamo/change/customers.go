package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// newIDUnlessSet returns chosen. If chosen is empty, it returns a new ID with the given prefix.
func newIDUnlessSet[ID ~string](t *table.Table, chosen ID, prefix string) (ID, error) {
	if chosen != "" {
		return chosen, nil
	}
	id, err := t.NewULID(t.Now())
	return ID(prefix + id), err
}

// CreateCustomer creates a customer.
//
// Errors: commerce.UserErrors (AlreadyExists, EmailTaken, NotFound), and errors from mutate.
func (m Mutations) CreateCustomer(ctx context.Context, caller Caller, cmd commerce.Customer) (*commerce.Customer, error) {
	id, err := newIDUnlessSet(m.table, cmd.ID, "cust_")
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteCreateCustomer, caller, cmd, m.table.DecodeCustomer, func(_ context.Context, c *change) (*commerce.Customer, error) {
		customer := cmd
		customer.ID, customer.OrderCount, customer.SpendingComplete, customer.CreatedAt, customer.Version = id, new(int), true, m.table.Now(), 1
		customer.UpdatedAt = customer.CreatedAt
		var refusals commerce.UserErrors
		c.createWithCopies(&customer)
		if c.exists(model.CustomerByID.Key(&c.KeyBuilder, id)) {
			refusals = append(refusals, commerce.NewAlreadyExists("customer", id, "id"))
		}
		refusals = append(refusals, c.taken...)
		if cmd.ID != "" { // a deleted customer's orders remain, so its ID cannot be used again
			deletion := model.DeletedCustomerKey(id)
			if c.exists(deletion) {
				refusals = append(refusals, commerce.NewAlreadyExists("record of the deleted customer", id, "id"))
			}
			c.addConditionCheck(deletion, table.RecordNotExists)
		}
		if cmd.AccountRepID != "" {
			rep := model.EmployeeByID.Key(&c.KeyBuilder, cmd.AccountRepID)
			if c.knownMissing(rep) {
				refusals = append(refusals, commerce.NewNotFound("employee", cmd.AccountRepID, "accountRepId"))
			}
			c.addConditionCheck(rep, table.RecordExists)
		}
		if len(refusals) > 0 {
			return nil, refusals
		}
		return &customer, nil
	})
}

// readCustomer reads the customer that a mutation changes. If the customer does not have the
// expected version, it returns the customer and a VersionConflict. It also reads the records with
// the keys in more, and stores them in c.known.
//
// Errors: commerce.NotFound, commerce.VersionConflict, model.ErrCorrupt, errors from
// table.WrapError.
func (c *change) readCustomer(ctx context.Context, id commerce.CustomerID, field string, expected *int, more ...model.Keys) (*commerce.Customer, model.Record, error) {
	k := model.CustomerByID.Key(&c.KeyBuilder, id)
	return readRecordToChange(ctx, c, c.table.DecodeCustomer, "customer", id, field, expected, append([]model.Keys{k}, more...)...)
}

// updateCustomer updates a customer's record and its edges. current is the record in the table. If
// before and after have the same attributes, updateCustomer writes nothing and returns false.
func (c *change) updateCustomer(current model.Record, before, after *commerce.Customer) bool {
	if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(after)) {
		return false
	}
	after.Version, after.UpdatedAt = before.Version+1, c.table.TimeAfter(before.UpdatedAt)
	c.updateWithEdges(&c.KeyBuilder, current, before, after, model.AttrVersion, "updatedAt", "accountRepId")
	return true
}

// UpdateCustomer changes a customer's attributes.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current customer),
// commerce.EmailTaken, and errors from mutate.
func (m Mutations) UpdateCustomer(ctx context.Context, caller Caller, cmd commerce.CustomerChange) (*commerce.Customer, error) {
	return mutate(ctx, m.table, &model.WriteUpdateCustomer, caller, cmd, m.table.DecodeCustomer, func(ctx context.Context, c *change) (*commerce.Customer, error) {
		before, current, err := c.readCustomer(ctx, cmd.ID, "id", cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if !c.updateCustomer(current, before, &after) {
			return before, nil
		}
		if cmd.Email != nil {
			c.restoreClaims(&model.EntityEmailClaim, before, &after)
		}
		return &after, nil
	})
}

// AssignAccountRep sets or removes a customer's account rep. The account rep is the employee who is
// responsible for the customer.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current customer), and errors from
// mutate.
func (m Mutations) AssignAccountRep(ctx context.Context, caller Caller, cmd commerce.AccountRepChange) (*commerce.Customer, error) {
	return mutate(ctx, m.table, &model.WriteAssignAccountRep, caller, cmd, m.table.DecodeCustomer, func(ctx context.Context, c *change) (*commerce.Customer, error) {
		var rep []model.Keys
		if cmd.EmployeeID != "" {
			rep = append(rep, model.EmployeeByID.Key(&c.KeyBuilder, cmd.EmployeeID))
		}
		before, current, err := c.readCustomer(ctx, cmd.CustomerID, "customerId", cmd.ExpectedVersion, rep...)
		if err != nil {
			return before, err
		}
		for _, k := range rep {
			if c.knownMissing(k) {
				return nil, commerce.NewNotFound("employee", cmd.EmployeeID, "employeeId")
			}
			c.addConditionCheck(k, table.RecordExists)
		}
		after := *before
		after.AccountRepID = cmd.EmployeeID
		if !c.updateCustomer(current, before, &after) {
			c.writes = nil
			return before, nil
		}
		return &after, nil
	})
}
