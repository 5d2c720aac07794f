package check

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// employeeUnit is an employee's record and edges.
type employeeUnit struct {
	selfContained
	id commerce.EmployeeID
	edged
	truth *commerce.Employee
}

func newEmployeeUnit(id string) *employeeUnit {
	return &employeeUnit{id: commerce.EmployeeID(id), edged: newEdged(&model.EntityEmployee, map[string]string{"employeeId": id})}
}

func (u *employeeUnit) key(*table.Table) model.Keys { return u.primary }

func (u *employeeUnit) add(_ *model.Entity, rec model.Record) { u.keep(rec) }

func (u *employeeUnit) read(ctx context.Context, c *check) (err error) {
	u.records, err = c.client.Get(ctx, repair.Consistent, u.keys()...)
	return err
}

func (u *employeeUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	truth, from := believed(v, &u.edged, model.DecodeEmployee)
	u.truth = truth
	v.Source = model.KeyOf(from)
	v.Basis, v.Believed = u.primary, u.main()
	if truth == nil {
		judgeUnread(v, &u.edged, model.DecodeEmployee)
		return v
	}
	if truth.WarehouseID == "" {
		truth.WarehouseID = commerce.WarehouseID(model.IndexValueOf(&model.EntityEmployeeWarehouse, u.edge(&model.EntityEmployeeWarehouse)))
	}
	b := c.table.KeyBuilder()
	wanted := model.Records(b, truth)
	if b.Err != nil {
		v.Unreadable(u.primary, b.Err)
		return v
	}
	if u.main() == nil {
		v.Absent(repair.DriftEmployeeMissing, wanted[0], from, "only edges are left")
	} else {
		v.Basis, v.Believed = model.KeyOf(from), from
		v.Compare(&model.EntityEmployee, u.main(), wanted[0], repair.DriftEdgeDiffers)
	}
	u.judgeEdges(v, wanted)
	return v
}

func (u *employeeUnit) settled(c *check, _, _ *repair.Verdict) {
	if u.truth != nil && u.truth.WarehouseID != "" {
		c.refer(u.truth.WarehouseID)
	}
}
