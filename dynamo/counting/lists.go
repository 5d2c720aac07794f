package counting

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// ListCounts compares the numbers of orders that products and employees keep with the orders in their
// lists, as a scan reads them. It is safe for concurrent use.
type ListCounts struct {
	table *table.Table
	// countNow reports whether orders are to be counted that nobody has counted.
	countNow bool
	// Products and Reps are the numbers of orders by the key of the product or the employee.
	Products, Reps Counters
}

// NewListCounts returns Lists for a scan that begins now. countNow reports whether orders are to be
// counted that nobody has counted.
func NewListCounts(t *table.Table, countNow bool) *ListCounts {
	return &ListCounts{table: t, countNow: countNow}
}

// AddRecord takes a record. It counts a line item for its product, and an order for its account rep.
func (l *ListCounts) AddRecord(e *model.Entity, rec model.Record) {
	switch e.Name {
	case model.EntityOrderItem.Name:
		l.Products.Increment(l.productKey(commerce.SKU(model.KeyValue(e.SK, model.TextOf(rec, model.AttrSK)))))
	case model.EntityCustomerOrder.Name:
		if rep := accountRepOf(rec); rep != "" {
			l.Reps.Increment(l.employeeKey(rep))
		}
	}
}

// accountRepOf returns the account rep in whose list a customer's copy of an order is; empty if there
// is none.
func accountRepOf(order model.Record) commerce.EmployeeID {
	return commerce.EmployeeID(model.KeyValue(model.EntityCustomerOrder.IndexPK, model.TextOf(order, model.AttrIndexPK)))
}

func (l *ListCounts) productKey(sku commerce.SKU) model.Keys {
	return model.ProductBySKU.Key(l.table.KeyBuilder(), sku)
}

func (l *ListCounts) employeeKey(id commerce.EmployeeID) model.Keys {
	return model.EmployeeByID.Key(l.table.KeyBuilder(), id)
}

// AddProduct takes the number that a product's record keeps; nil for none.
func (l *ListCounts) AddProduct(k model.Keys, orders *int) {
	switch {
	case orders != nil:
		l.Products.SetRecorded(k, *orders)
	case l.countNow:
		l.Products.SetRecorded(k, MissingCount)
	}
}

// AddEmployee takes the records in an employee's partition.
func (l *ListCounts) AddEmployee(k model.Keys, records map[model.Keys]model.Record) {
	diag := &repair.Diagnosis{Table: l.table}
	parts, orders, complete := 0, 0, false
	for at, rec := range records {
		if e := model.EntityOf(at); e != nil && e.Name == model.EntityRepOrders.Name {
			verifyPartAlone(diag, rec)
			r := model.Reader{Record: rec}
			parts, orders, complete = parts+1, orders+r.Number(model.AttrOrders), complete || r.Flag(model.AttrComplete)
		}
	}
	switch exists := records[k] != nil; {
	case !diag.Clean(), !exists && parts > 0, exists && !complete && l.countNow:
		l.Reps.SetRecorded(k, MissingCount)
	case complete:
		l.Reps.SetRecorded(k, orders)
	}
}

// MarkChanged takes the products and the records of an order that had an inconsistency. left reports
// whether one is left.
func (l *ListCounts) MarkChanged(products []commerce.SKU, records []model.Record, left bool) {
	for _, sku := range products {
		l.Products.MarkChanged(l.productKey(sku), left)
	}
	for _, rec := range records {
		for _, rep := range []commerce.EmployeeID{commerce.EmployeeID(model.TextOf(rec, "accountRepId")), accountRepOf(rec)} {
			l.Reps.MarkChanged(l.employeeKey(rep), left)
		}
	}
}
