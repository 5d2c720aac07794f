package model

import "github.com/ordergraph/ordergraph/commerce"

func employeeAttributes(a *attributeVisitor, e *commerce.Employee) {
	idAttribute(a, AttrEmployeeID, &e.ID, commerce.MaxIDLength)
	textAttribute(a, "name", &e.Name, commerce.MaxName)
	normalizedAttribute(a, &e.Name)
	a.texts("phoneNumbers", &e.PhoneNumbers, commerce.MaxPhoneNumbers, commerce.MaxPhoneNumberLength)
	textAttribute(a, "jobTitle", &e.JobTitle, commerce.MaxName)
	normalizedAttribute(a, &e.JobTitle)
	parsedTextAttribute(a, "hireDate", &e.HireDate, commerce.ParseDate, "2026-01-01")
	a.customFields("Employee", &e.CustomFields)
	indexedTextAttribute(a, "warehouseId", &e.WarehouseID, commerce.MaxIDLength, warehouseKey, presenceOptional)
	a.version(&e.Version)
}

// DecodeEmployee decodes an employee's record or one of its edges.
//
// Errors: ErrCorrupt.
func DecodeEmployee(r Reader) (*commerce.Employee, error) {
	a, e := attributeVisitor{Reader: r}, &commerce.Employee{}
	employeeAttributes(&a, e)
	return e, a.Err()
}
