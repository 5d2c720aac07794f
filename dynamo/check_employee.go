package dynamo

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
)

// employeeUnit is an employee's record and edges.
type employeeUnit struct {
	selfContained
	id commerce.EmployeeID
	// records are the record and the edges that were found.
	records map[keys]record
	truth   *commerce.Employee
}

// employeeEntities are an employee's record and the edges, in the order in which they are believed.
func employeeEntities() []*Entity {
	return []*Entity{&entityEmployee, &entityEmployeeName, &entityEmployeeTitle, &entityEmployeeWarehouse}
}

func (u *employeeUnit) key(t *Table) keys { return employeeKey(t.keyBuilder(), u.id) }

func (u *employeeUnit) add(_ *Entity, rec record) { u.records[keyOf(rec)] = rec }

func (u *employeeUnit) keys(t *Table) []keys {
	b := t.keyBuilder()
	entities := employeeEntities()
	ks := make([]keys, len(entities))
	for i, e := range entities {
		ks[i] = keys{PK: b.key(e.PK, string(u.id)), SK: b.key(e.SK)}
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
	var from record
	decode := func(e *Entity, rec record) (*commerce.Employee, error) {
		return decodeEmployee(reader{record: withKey(v.legible(e, rec), map[string]string{"employeeId": string(u.id)})})
	}
	for i, e := range employeeEntities() {
		if rec := u.records[ks[i]]; rec != nil && u.truth == nil {
			if employee, err := decode(e, rec); err == nil {
				u.truth, from = employee, rec
			}
		}
	}
	main := u.records[ks[0]]
	v.source = keyOf(from)
	v.basis, v.believed = ks[0], main
	if u.truth == nil {
		if main != nil {
			_, err := decode(&entityEmployee, main)
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
		v.basis, v.believed = keyOf(from), from
	}
	if u.truth.WarehouseID == "" {
		u.truth.WarehouseID = commerce.WarehouseID(indexValueOf(&entityEmployeeWarehouse, u.records[ks[len(ks)-1]]))
	}
	b := c.table.keyBuilder()
	wanted := map[keys]record{}
	for _, rec := range employeeRecords(b, *u.truth) {
		wanted[keyOf(rec)] = rec
	}
	if b.err != nil {
		v.unreadable(ks[0], b.err)
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
