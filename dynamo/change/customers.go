package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// idOr is the id that a caller chose, or a new one.
func idOr[ID ~string](t *table.Table, chosen ID, prefix string) (ID, error) {
	if chosen != "" {
		return chosen, nil
	}
	id, err := t.NewULID(t.Now())
	return ID(prefix + id), err
}

// CreateCustomer adds a customer (WP1).
//
// Errors: commerce.Refusals of AlreadyExists, EmailTaken, NotFound; and those of mutate.
func (m Mutations) CreateCustomer(ctx context.Context, caller Caller, cmd commerce.Customer) (*commerce.Customer, error) {
	id, err := idOr(m.table, cmd.ID, "cust_")
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteCreateCustomer, caller, cmd, m.table.DecodeCustomer, func(_ context.Context, c *change) (*commerce.Customer, error) {
		customer := cmd
		customer.ID, customer.OrderCount, customer.SpendingComplete, customer.CreatedAt, customer.Version = id, new(int), true, m.table.Now(), 1
		customer.UpdatedAt = customer.CreatedAt
		var refusals commerce.Refusals
		for i, r := range model.CustomerRecords(&c.KeyBuilder, customer) {
			_, stands := c.stands(model.KeyOf(r))
			switch {
			case stands && i == 0:
				refusals = append(refusals, commerce.Exists("customer", id, "id"))
			case stands && i == 1:
				refusals = append(refusals, commerce.Taken())
			}
			if i < 2 {
				c.create(r)
			} else {
				// An edge of a customer who is not there is nobody's.
				c.mirror(nil, r, nil)
			}
		}
		if cmd.AccountRepID != "" {
			rep := model.EmployeeByID.Key(&c.KeyBuilder, cmd.AccountRepID)
			if c.missing(rep) {
				refusals = append(refusals, commerce.Unknown("employee", cmd.AccountRepID, "accountRepId"))
			}
			c.require(rep, table.Present)
		}
		if len(refusals) > 0 {
			return nil, refusals
		}
		return &customer, nil
	})
}

// customer reads the customer that a command names, as order does an order.
//
// Errors: commerce.NotFound, commerce.VersionConflict, ErrCorrupt, those of failed.
func (c *change) customer(ctx context.Context, id commerce.CustomerID, field string, expected *int, along ...model.Keys) (*commerce.Customer, model.Record, error) {
	k := model.CustomerByID.Key(&c.KeyBuilder, id)
	c.conceal(id, k)
	customer, stands, err := existing(ctx, c, c.table.DecodeCustomer, "customer", id, field, append([]model.Keys{k}, along...)...)
	if err != nil {
		return nil, nil, err
	}
	return customer, stands, expect("customer", expected, customer.Version)
}

// rewriteCustomer changes the record and the edges of a customer. It returns false, and writes
// nothing, if the record would stay the same.
func (c *change) rewriteCustomer(stands model.Record, before, after *commerce.Customer) bool {
	if model.SameRecord(model.Attributes(before), model.Attributes(after)) {
		return false
	}
	after.Version, after.UpdatedAt = before.Version+1, c.table.After(before.UpdatedAt)
	rewrite(c, &c.KeyBuilder, stands, before, after, table.Still(stands, c.exactly([]string{model.AttrVersion, "updatedAt", "accountRepId"}, model.AttrOrderCount)...))
	return true
}

// UpdateCustomer changes a customer (WP2).
//
// Errors: commerce.NotFound, VersionConflict (with the customer as it is), EmailTaken; and those of
// mutate.
func (m Mutations) UpdateCustomer(ctx context.Context, caller Caller, cmd commerce.CustomerChange) (*commerce.Customer, error) {
	return mutate(ctx, m.table, &model.WriteUpdateCustomer, caller, cmd, m.table.DecodeCustomer, func(ctx context.Context, c *change) (*commerce.Customer, error) {
		before, stands, err := c.customer(ctx, cmd.ID, "id", cmd.ExpectedVersion)
		if err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if !c.rewriteCustomer(stands, before, &after) {
			return before, nil
		}
		if cmd.Email != nil {
			err = c.claim(before.Email, after)
		}
		return &after, err
	})
}

// claim moves the claim of a customer's e-mail address where that changes.
//
// Errors: commerce.EmailTaken.
func (c *change) claim(before string, after commerce.Customer) error {
	// Other software may have written what is no address: then nothing claims it.
	was, _ := commerce.ParseEmail(before)
	is, err := commerce.ParseEmail(after.Email)
	if err != nil {
		return err
	}
	mine := isCustomer(after.ID)
	claim := model.EmailClaimRecord(&c.KeyBuilder, is, after.ID)
	if r, stands := c.stands(model.KeyOf(claim)); stands && !model.SameValue(r[model.AttrCustomerID], model.Str(string(after.ID))) {
		return commerce.Taken()
	}
	c.upsert(claim, table.Either(table.Absent, mine))
	if was == "" || was == is {
		return nil
	}
	old := model.EmailClaimRecord(&c.KeyBuilder, was, after.ID)
	if r, stands := c.stands(model.KeyOf(old)); !stands || model.SameValue(r[model.AttrCustomerID], model.Str(string(after.ID))) {
		c.remove(old, table.Either(table.Absent, mine))
	}
	return nil
}

// isCustomer is the condition that a record is that customer's.
func isCustomer(id commerce.CustomerID) table.Condition {
	return table.Is(model.AttrCustomerID, "=", model.Str(string(id)))
}

// AssignAccountRep names the employee who looks after a customer from now on, or nobody (WP3).
//
// Errors: commerce.NotFound, VersionConflict (with the customer as it is); and those of mutate.
func (m Mutations) AssignAccountRep(ctx context.Context, caller Caller, cmd commerce.AccountRepChange) (*commerce.Customer, error) {
	return mutate(ctx, m.table, &model.WriteAssignAccountRep, caller, cmd, m.table.DecodeCustomer, func(ctx context.Context, c *change) (*commerce.Customer, error) {
		var rep []model.Keys
		if cmd.EmployeeID != "" {
			rep = append(rep, model.EmployeeByID.Key(&c.KeyBuilder, cmd.EmployeeID))
		}
		before, stands, err := c.customer(ctx, cmd.CustomerID, "customerId", cmd.ExpectedVersion, rep...)
		if err != nil {
			return before, err
		}
		for _, k := range rep {
			if c.missing(k) {
				return nil, commerce.Unknown("employee", cmd.EmployeeID, "employeeId")
			}
			c.require(k, table.Present)
		}
		after := *before
		after.AccountRepID = cmd.EmployeeID
		if !c.rewriteCustomer(stands, before, &after) {
			c.writes = nil
			return before, nil
		}
		return &after, nil
	})
}
