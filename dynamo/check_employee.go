package dynamo

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
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
	return model.EmployeeKeys(t.KeyBuilder(), u.id)
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
	u.records, err = c.client.get(ctx, consistent, u.keys(c.table)...)
	return err
}

func (u *employeeUnit) judge(c *check) *verdict {
	v := &verdict{table: c.table}
	u.truth = nil
	ks := u.keys(c.table)
	var from model.Record
	decode := func(e *model.Entity, rec model.Record) (*commerce.Employee, error) {
		return model.DecodeEmployee(model.Reader{Record: withKey(v.legible(e, rec), map[string]string{"employeeId": string(u.id)})})
	}
	for i, e := range employeeEntities() {
		if rec := u.records[ks[i]]; rec != nil && u.truth == nil {
			if employee, err := decode(e, rec); err == nil {
				u.truth, from = employee, rec
			}
		}
	}
	main := u.records[ks[0]]
	v.source = model.KeyOf(from)
	v.basis, v.believed = ks[0], main
	if u.truth == nil {
		if main != nil {
			_, err := decode(&model.EntityEmployee, main)
			v.unreadable(ks[0], err)
			return v
		}
		for i, e := range employeeEntities() {
			rec := u.records[ks[i]]
			switch {
			case rec == nil:
			case isBare(e, rec):
				v.orphan(driftOrphanEdge, rec, "the employee does not exist")
			default:
				_, err := decode(e, rec)
				v.unreadable(ks[i], err)
			}
		}
		return v
	}
	if main != nil {
		v.basis, v.believed = model.KeyOf(from), from
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
		v.unreadable(ks[0], b.Err)
		return v
	}
	for i, e := range employeeEntities() {
		switch have, want := u.records[ks[i]], wanted[ks[i]]; {
		case have != nil && want != nil:
			v.compare(e, have, want, driftEdgeDiffers)
		case have != nil && v.left(e, ks[i], "warehouseId"):
			v.legible(e, have)
		case have != nil:
			v.orphan(driftOrphanEdge, have, "the employee works in no warehouse")
		case want != nil && i == 0:
			v.absent(driftEmployeeMissing, want, from, "only edges are left")
		case want != nil:
			v.absent(driftEdgeMissing, want, nil, "the employee exists")
		}
	}
	return v
}

func (u *employeeUnit) settled(c *check, _, _ *verdict) {
	if u.truth != nil && u.truth.WarehouseID != "" {
		c.refer(u.truth.WarehouseID)
	}
}
