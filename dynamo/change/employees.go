package change

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// HireEmployee adds an employee (WP17).
//
// Errors: commerce.Refusals of AlreadyExists and NotFound; and the errors of mutate.
func (m Mutations) HireEmployee(ctx context.Context, caller Caller, cmd commerce.Employee) (*commerce.Employee, error) {
	id, err := idOr(m.table, cmd.ID, "emp_")
	if err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteHireEmployee, caller, cmd, model.DecodeEmployee, func(_ context.Context, c *change) (*commerce.Employee, error) {
		employee := cmd
		employee.ID, employee.Version = id, 1
		var refusals commerce.Refusals
		if _, exists := c.stands(model.EmployeeByID.Key(&c.KeyBuilder, id)); exists {
			refusals = append(refusals, commerce.Exists("employee", id, "id"))
		}
		createAll(c, &employee)
		none := model.RepPartRecord(&c.KeyBuilder, commerce.RepOrders{EmployeeID: id, Part: model.FirstPart, Complete: true})
		c.tally(none, model.Record{model.AttrOrders: model.Num(0)}, nil, model.AttrEmployeeID, model.AttrPart, model.AttrComplete)
		if err := c.worksIn(cmd.WarehouseID); err != nil {
			refusals = append(refusals, *err)
		}
		if len(refusals) > 0 {
			return nil, refusals
		}
		return &employee, nil
	})
}

// worksIn requires a warehouse to exist, unless id is empty. It does not read the warehouse.
func (c *change) worksIn(id commerce.WarehouseID) *commerce.NotFound {
	if id == "" {
		return nil
	}
	k := model.WarehouseByID.Key(&c.KeyBuilder, id)
	c.require(k, table.Present)
	if c.missing(k) {
		unknown := commerce.Unknown("warehouse", id, "warehouseId")
		return &unknown
	}
	return nil
}

// UpdateEmployee changes an employee and the edges that list the employee (WP18).
//
// Errors: commerce.NotFound, VersionConflict (with the current employee); and the errors of mutate.
func (m Mutations) UpdateEmployee(ctx context.Context, caller Caller, cmd commerce.EmployeeChange) (*commerce.Employee, error) {
	return mutate(ctx, m.table, &model.WriteUpdateEmployee, caller, cmd, model.DecodeEmployee, func(ctx context.Context, c *change) (*commerce.Employee, error) {
		before, current, err := existing(ctx, c, model.DecodeEmployee, "employee", cmd.ID, "id", model.EmployeeByID.Key(&c.KeyBuilder, cmd.ID))
		if err != nil {
			return nil, err
		}
		if err := expect("employee", cmd.ExpectedVersion, before.Version); err != nil {
			return before, err
		}
		after := *before
		cmd.Apply(&after)
		if model.SameRecord(model.Attributes(before), model.Attributes(&after)) {
			return before, nil
		}
		after.Version++
		rewrite(c, &c.KeyBuilder, current, before, &after, table.Still(current, model.AttrVersion))
		if after.WarehouseID != before.WarehouseID {
			if unknown := c.worksIn(after.WarehouseID); unknown != nil {
				return nil, *unknown
			}
		}
		return &after, nil
	})
}
