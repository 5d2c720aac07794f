package model

import "github.com/ordergraph/ordergraph/commerce"

// EmployeeKeys returns the keys of an employee.
func EmployeeKeys(b *KeyBuilder, id commerce.EmployeeID) Keys {
	return Keys{PK: b.Key(EntityEmployee.PK, string(id)), SK: b.Key(EntityEmployee.SK)}
}

// EmployeeRecords are all records of an employee: the employee, and an edge each for the lists by
// name, by job title and by warehouse. The edges carry everything, so that a list is one Query.
func EmployeeRecords(b *KeyBuilder, e commerce.Employee) []Record {
	id := string(e.ID)
	attributes := EmployeeAttributes(e)
	own := EmployeeKeys(b, e.ID)
	own.IndexPK = b.sharded(EntityEmployee.IndexPK, id)
	own.IndexSK = b.Key(EntityEmployee.IndexSK, string(e.HireDate), id)
	records := []Record{own.Attributes().With(attributes).With(Record{"entity": Str(EntityEmployee.Name)})}

	edge := func(to Entity, value string) {
		k := Keys{
			PK: b.Key(to.PK, id), SK: b.Key(to.SK),
			IndexPK: b.Key(to.IndexPK, value), IndexSK: b.Key(to.IndexSK, id),
		}
		records = append(records, k.Attributes().With(attributes).With(Record{"entity": Str(to.Name)}))
	}
	edge(EntityEmployeeName, e.Name)
	edge(EntityEmployeeTitle, e.JobTitle)
	if e.WarehouseID != "" {
		edge(EntityEmployeeWarehouse, string(e.WarehouseID))
	}
	return records
}

// EmployeeAttributes returns the attributes of an employee and of the employee's edges.
func EmployeeAttributes(e commerce.Employee) Record {
	r := Record{
		"employeeId": Str(string(e.ID)), "name": Str(e.Name), "phoneNumbers": Texts(e.PhoneNumbers), "jobTitle": Str(e.JobTitle),
		"hireDate": Str(string(e.HireDate)), AttrVersion: Num(e.Version),
	}
	if e.WarehouseID != "" {
		r["warehouseId"] = Str(string(e.WarehouseID))
	}
	return r
}

// DecodeEmployee reads an employee's record or one of its edges.
//
// Errors: ErrCorrupt.
func DecodeEmployee(r Reader) (*commerce.Employee, error) {
	e := &commerce.Employee{
		ID:           commerce.EmployeeID(r.MustText("employeeId")),
		Name:         r.MustText("name"),
		PhoneNumbers: r.Texts("phoneNumbers"),
		JobTitle:     r.MustText("jobTitle"),
		WarehouseID:  commerce.WarehouseID(r.textOrKey("warehouseId", &EntityEmployeeWarehouse)),
		Version:      r.Number(AttrVersion),
	}
	date, err := commerce.ParseDate(r.MustText("hireDate"))
	if err != nil {
		r.Fail("hireDate", err.Error())
	}
	e.HireDate = date
	return e, r.Err()
}
