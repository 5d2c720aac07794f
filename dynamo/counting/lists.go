package counting

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Lists compares the numbers of orders that products and employees keep with the orders in their
// lists, as a scan reads them. It is safe for concurrent use.
type Lists struct {
	table *table.Table
	// countNow reports whether orders are to be counted that nobody has counted.
	countNow bool
	// Products and Reps are the numbers of orders by the key of the product or the employee.
	Products, Reps Numbers
}

// NewLists returns Lists for a scan that begins now. countNow reports whether orders are to be
// counted that nobody has counted.
func NewLists(t *table.Table, countNow bool) *Lists { return &Lists{table: t, countNow: countNow} }

// Listed takes a record. It counts a line item for its product, and an order for its account rep.
func (l *Lists) Listed(e *model.Entity, rec model.Record) {
	switch e.Name {
	case model.EntityOrderItem.Name:
		l.Products.Count(l.product(commerce.SKU(model.KeyValue(e.SK, model.TextOf(rec, model.AttrSK)))))
	case model.EntityCustomerOrder.Name:
		if rep := listedUnder(rec); rep != "" {
			l.Reps.Count(l.employee(rep))
		}
	}
}

// listedUnder returns the account rep in whose list a customer's copy of an order is; empty if there
// is none.
func listedUnder(order model.Record) commerce.EmployeeID {
	return commerce.EmployeeID(model.KeyValue(model.EntityCustomerOrder.IndexPK, model.TextOf(order, model.AttrIndexPK)))
}

func (l *Lists) product(sku commerce.SKU) model.Keys {
	return model.ProductBySKU.Key(l.table.KeyBuilder(), sku)
}

func (l *Lists) employee(id commerce.EmployeeID) model.Keys {
	return model.EmployeeByID.Key(l.table.KeyBuilder(), id)
}

// Product takes the number that a product's record keeps; nil for none.
func (l *Lists) Product(k model.Keys, orders *int) {
	switch {
	case orders != nil:
		l.Products.Keep(k, *orders)
	case l.countNow:
		l.Products.Keep(k, Uncounted)
	}
}

// Employee takes the records in an employee's partition.
func (l *Lists) Employee(k model.Keys, records map[model.Keys]model.Record) {
	v := &repair.Verdict{Table: l.table}
	parts, orders, complete := 0, 0, false
	for at, rec := range records {
		if e := model.EntityOf(at); e != nil && e.Name == model.EntityRepOrders.Name {
			compareAlone(v, rec)
			r := model.Reader{Record: rec}
			parts, orders, complete = parts+1, orders+r.Number(model.AttrOrders), complete || r.Flag(model.AttrComplete)
		}
	}
	switch exists := records[k] != nil; {
	case !v.Clean(), !exists && parts > 0, exists && !complete && l.countNow:
		l.Reps.Keep(k, Uncounted)
	case complete:
		l.Reps.Keep(k, orders)
	}
}

// Changed takes the products and the records of an order that had an inconsistency. left reports
// whether one is left.
func (l *Lists) Changed(products []commerce.SKU, records []model.Record, left bool) {
	for _, sku := range products {
		l.Products.Change(l.product(sku), left)
	}
	for _, rec := range records {
		for _, rep := range []commerce.EmployeeID{commerce.EmployeeID(model.TextOf(rec, "accountRepId")), listedUnder(rec)} {
			l.Reps.Change(l.employee(rep), left)
		}
	}
}
