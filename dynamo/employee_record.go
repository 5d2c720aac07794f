package dynamo

import "github.com/ordergraph/ordergraph/commerce"

func employeeKey(b *keyBuilder, id commerce.EmployeeID) keys {
	return keys{PK: b.key(entityEmployee.PK, string(id)), SK: b.key(entityEmployee.SK)}
}

// employeeRecords are all records of an employee: the employee, and an edge each for the lists by
// name, by job title and by warehouse. The edges carry everything, so that a list is one Query.
func employeeRecords(b *keyBuilder, e commerce.Employee) []record {
	id := string(e.ID)
	attributes := employeeAttributes(e)
	own := employeeKey(b, e.ID)
	own.IndexPK = b.sharded(entityEmployee.IndexPK, id)
	own.IndexSK = b.key(entityEmployee.IndexSK, string(e.HireDate), id)
	records := []record{own.attributes().with(attributes).with(record{"entity": str(entityEmployee.Name)})}

	edge := func(to Entity, value string) {
		k := keys{
			PK: b.key(to.PK, id), SK: b.key(to.SK),
			IndexPK: b.key(to.IndexPK, value), IndexSK: b.key(to.IndexSK, id),
		}
		records = append(records, k.attributes().with(attributes).with(record{"entity": str(to.Name)}))
	}
	edge(entityEmployeeName, e.Name)
	edge(entityEmployeeTitle, e.JobTitle)
	if e.WarehouseID != "" {
		edge(entityEmployeeWarehouse, string(e.WarehouseID))
	}
	return records
}

func employeeAttributes(e commerce.Employee) record {
	r := record{
		"employeeId": str(string(e.ID)), "name": str(e.Name), "phoneNumbers": texts(e.PhoneNumbers), "jobTitle": str(e.JobTitle),
		"hireDate": str(string(e.HireDate)), attrVersion: num(e.Version),
	}
	if e.WarehouseID != "" {
		r["warehouseId"] = str(string(e.WarehouseID))
	}
	return r
}

// decodeEmployee reads an employee's record or one of its edges.
//
// Errors: ErrCorrupt.
func decodeEmployee(r reader) (*commerce.Employee, error) {
	e := &commerce.Employee{
		ID:           commerce.EmployeeID(r.mustText("employeeId")),
		Name:         r.mustText("name"),
		PhoneNumbers: r.texts("phoneNumbers"),
		JobTitle:     r.mustText("jobTitle"),
		WarehouseID:  commerce.WarehouseID(r.textOrKey("warehouseId", &entityEmployeeWarehouse)),
		Version:      r.number(attrVersion),
	}
	date, err := commerce.ParseDate(r.mustText("hireDate"))
	if err != nil {
		r.fail("hireDate", err.Error())
	}
	e.HireDate = date
	return e, r.err()
}
