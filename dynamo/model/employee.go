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
func EmployeeAttributes(e commerce.Employee) Record { return written(employeeAttributes, e) }

func employeeAttributes(a *attributes, e *commerce.Employee) {
	text(a, "employeeId", &e.ID, commerce.MaxIDLength)
	text(a, "name", &e.Name, commerce.MaxName)
	a.texts("phoneNumbers", &e.PhoneNumbers, commerce.MaxPhoneNumbers, commerce.MaxPhoneNumber)
	text(a, "jobTitle", &e.JobTitle, commerce.MaxName)
	parsed(a, "hireDate", &e.HireDate, commerce.ParseDate, "2026-01-01")
	listedText(a, "warehouseId", &e.WarehouseID, commerce.MaxIDLength, &EntityEmployeeWarehouse, optional)
	a.version(&e.Version)
}

// DecodeEmployee reads an employee's record or one of its edges.
//
// Errors: ErrCorrupt.
func DecodeEmployee(r Reader) (*commerce.Employee, error) {
	a, e := attributes{Reader: r}, &commerce.Employee{}
	employeeAttributes(&a, e)
	return e, a.Err()
}
