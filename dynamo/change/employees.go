package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// HireEmployee creates an employee.
//
// Errors: commerce.UserErrors (AlreadyExists, NotFound), and errors from mutate.
func (m Mutations) HireEmployee(ctx context.Context, caller Caller, cmd commerce.Employee) (*commerce.Employee, error) {
	id, err := newIDUnlessSet(m.table, cmd.ID, "emp_")
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteHireEmployee, caller, cmd, model.DecodeEmployee, func(_ context.Context, c *change) (*commerce.Employee, error) {
		employee := cmd
		employee.ID, employee.Version = id, 1
		var refusals commerce.UserErrors
		if c.exists(model.EmployeeByID.Key(&c.KeyBuilder, id)) {
			refusals = append(refusals, commerce.NewAlreadyExists("employee", id, "id"))
		}
		c.createWithCopies(&employee)
		counted := c.IdentifyingRecord(&model.EntityRepOrders, string(id), model.FirstRepCountPart).Merge(model.Record{model.AttrComplete: model.Bool(true)})
		c.addToCounters(counted, model.Record{model.AttrOrders: model.Num(0)}, nil)
		if err := c.requireWarehouse(cmd.WarehouseID); err != nil {
			refusals = append(refusals, *err)
		}
		if len(refusals) > 0 {
			return nil, refusals
		}
		return &employee, nil
	})
}

// requireWarehouse adds the condition that a warehouse exists, without reading the warehouse. If
// c.known shows that the warehouse is missing, requireWarehouse returns an error.
func (c *change) requireWarehouse(id commerce.WarehouseID) *commerce.NotFound {
	if id == "" {
		return nil
	}
	k := model.WarehouseByID.Key(&c.KeyBuilder, id)
	c.addConditionCheck(k, table.RecordExists)
	if c.knownMissing(k) {
		unknown := commerce.NewNotFound("warehouse", id, "warehouseId")
		return &unknown
	}
	return nil
}

// UpdateEmployee changes an employee's attributes.
//
// Errors: commerce.NotFound, commerce.VersionConflict (with the current employee), and errors from
// mutate.
func (m Mutations) UpdateEmployee(ctx context.Context, caller Caller, cmd commerce.EmployeeChange) (*commerce.Employee, error) {
	return mutate(ctx, m.table, &model.WriteUpdateEmployee, caller, cmd, model.DecodeEmployee, func(ctx context.Context, c *change) (*commerce.Employee, error) {
		before, current, err := readRecordToChange(ctx, c, model.DecodeEmployee, "employee", cmd.ID, "id", cmd.ExpectedVersion, model.EmployeeByID.Key(&c.KeyBuilder, cmd.ID))
		if err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if model.EqualRecords(model.EncodeAttributes(before), model.EncodeAttributes(&after)) {
			return before, nil
		}
		after.Version++
		c.updateWithEdges(&c.KeyBuilder, current, before, &after, model.AttrVersion)
		if after.WarehouseID != before.WarehouseID {
			if unknown := c.requireWarehouse(after.WarehouseID); unknown != nil {
				return nil, *unknown
			}
		}
		return &after, nil
	})
}
