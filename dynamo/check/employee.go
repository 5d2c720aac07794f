package check

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// employeeVerifier verifies an employee's record and its edges.
type employeeVerifier struct {
	baseVerifier
	id commerce.EmployeeID
	recordWithEdges
	others  recordsWithEdges
	decoded *commerce.Employee
}

func newEmployeeVerifier(id string) *employeeVerifier {
	return &employeeVerifier{id: commerce.EmployeeID(id), recordWithEdges: newRecordWithEdges(&model.EntityEmployee, map[string]string{"employeeId": id}), others: recordsWithEdges{}}
}

func (v *employeeVerifier) key(*table.Table) model.Keys { return v.primaryKey }

func (v *employeeVerifier) addRecord(e *model.Entity, rec model.Record) {
	if base := e.BaseEntity(); base.Kind == model.Base && base != v.entity {
		v.others.add(e, rec)
		return
	}
	v.put(rec)
}

func (v *employeeVerifier) read(ctx context.Context, c *check) (err error) {
	if v.records, err = c.client.get(ctx, consistent, v.keys()...); err != nil {
		return err
	}
	v.others, err = c.readOthers(ctx, v.entity, v.primaryKey.PK)
	return err
}

func (v *employeeVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	v.others.verify(diag)
	decoded, source := decodeFirst(diag, &v.recordWithEdges, model.DecodeEmployee)
	diag.trustedKey, diag.trusted = v.primaryKey, v.record()
	if v.record() == nil && decoded != nil && !c.opts.Restore {
		if v.verifyEdges(diag, nil); len(diag.fixes) > 0 { // a repair keeps unreadable edges
			diag.addFinding(kindEmployeeMissing, v.primaryKey, "the record is missing, so a repair deletes its edges (copies with other index keys); if the record was lost, repair with -restore", remedyRepair)
		}
		return diag
	}
	v.decoded = decoded
	diag.source = model.KeyOf(source)
	if decoded == nil {
		reportUndecodable(diag, &v.recordWithEdges, model.DecodeEmployee)
		return diag
	}
	if decoded.WarehouseID == "" {
		decoded.WarehouseID = commerce.WarehouseID(model.IndexValueOf(&model.EntityEmployeeWarehouse, v.edge(&model.EntityEmployeeWarehouse)))
	}
	b := c.table.KeyBuilder()
	expected := model.EncodeWithEdges(b, decoded)
	if b.Err != nil {
		diag.addUnreadable(v.primaryKey, b.Err)
		return diag
	}
	if v.record() == nil {
		diag.addMissing(kindEmployeeMissing, expected[0], source, "the record is missing, but edges (copies of the record with other index keys) exist")
	} else {
		diag.trustedKey, diag.trusted = model.KeyOf(source), source
		diag.compare(&model.EntityEmployee, v.record(), expected[0], kindEdgeDiffers)
	}
	v.verifyEdges(diag, expected)
	return diag
}

func (v *employeeVerifier) updateCheckState(c *check, _, _ *diagnosis) {
	if v.decoded != nil && v.decoded.WarehouseID != "" {
		c.addReferencedWarehouse(v.decoded.WarehouseID)
	}
}
