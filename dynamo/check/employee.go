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
	// records are the record and the edges that were found.
	records map[model.Keys]model.Record
	truth   *commerce.Employee
}

// employeeEntities are an employee's record and the edges, in the order in which they are believed.
func employeeEntities() []*model.Entity {
	return []*model.Entity{&model.EntityEmployee, &model.EntityEmployeeName, &model.EntityEmployeeTitle, &model.EntityEmployeeWarehouse}
}

func (u *employeeUnit) key(t *table.Table) model.Keys {
	return model.EmployeeByID.Key(t.KeyBuilder(), u.id)
}

func (u *employeeUnit) add(_ *model.Entity, rec model.Record) { u.records[model.KeyOf(rec)] = rec }

func (u *employeeUnit) keys(t *table.Table) []model.Keys {
	b := t.KeyBuilder()
	entities := employeeEntities()
	ks := make([]model.Keys, len(entities))
	for i, e := range entities {
		ks[i] = model.Keys{PK: b.Key(e.PK, string(u.id)), SK: b.Key(e.SK)}
	}
	return ks
}

func (u *employeeUnit) read(ctx context.Context, c *check) (err error) {
	u.records, err = c.client.Get(ctx, repair.Consistent, u.keys(c.table)...)
	return err
}

func (u *employeeUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	u.truth = nil
	ks := u.keys(c.table)
	var from model.Record
	decode := func(e *model.Entity, rec model.Record) (*commerce.Employee, error) {
		return model.DecodeEmployee(model.Reader{Record: repair.WithKey(v.Legible(e, rec), map[string]string{"employeeId": string(u.id)})})
	}
	for i, e := range employeeEntities() {
		if rec := u.records[ks[i]]; rec != nil && u.truth == nil {
			if employee, err := decode(e, rec); err == nil {
				u.truth, from = employee, rec
			}
		}
	}
	main := u.records[ks[0]]
	v.Source = model.KeyOf(from)
	v.Basis, v.Believed = ks[0], main
	if u.truth == nil {
		if main != nil {
			_, err := decode(&model.EntityEmployee, main)
			v.Unreadable(ks[0], err)
			return v
		}
		for i, e := range employeeEntities() {
			rec := u.records[ks[i]]
			switch {
			case rec == nil:
			case repair.IsBare(e, rec):
				v.Orphan(repair.DriftOrphanEdge, rec, "the employee does not exist")
			default:
				_, err := decode(e, rec)
				v.Unreadable(ks[i], err)
			}
		}
		return v
	}
	if main != nil {
		v.Basis, v.Believed = model.KeyOf(from), from
	}
	if u.truth.WarehouseID == "" {
		u.truth.WarehouseID = commerce.WarehouseID(model.IndexValueOf(&model.EntityEmployeeWarehouse, u.records[ks[len(ks)-1]]))
	}
	b := c.table.KeyBuilder()
	wanted := map[model.Keys]model.Record{}
	for _, rec := range model.EmployeeRecords(b, *u.truth) {
		wanted[model.KeyOf(rec)] = rec
	}
	if b.Err != nil {
		v.Unreadable(ks[0], b.Err)
		return v
	}
	for i, e := range employeeEntities() {
		switch have, want := u.records[ks[i]], wanted[ks[i]]; {
		case have != nil && want != nil:
			v.Compare(e, have, want, repair.DriftEdgeDiffers)
		case have != nil && v.Left(e, ks[i], "warehouseId"):
			v.Legible(e, have)
		case have != nil:
			v.Orphan(repair.DriftOrphanEdge, have, "the employee works in no warehouse")
		case want != nil && i == 0:
			v.Absent(repair.DriftEmployeeMissing, want, from, "only edges are left")
		case want != nil:
			v.Absent(repair.DriftEdgeMissing, want, nil, "the employee exists")
		}
	}
	return v
}

func (u *employeeUnit) settled(c *check, _, _ *repair.Verdict) {
	if u.truth != nil && u.truth.WarehouseID != "" {
		c.refer(u.truth.WarehouseID)
	}
}
