package counting

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// OrderListCounts compares the order counts of products and account reps with the lengths of their order
// lists. A scan of the table adds the stored counts and the orders. OrderListCounts is safe for
// concurrent use.
type OrderListCounts struct {
	table *table.Table
	// countNow reports whether to calculate the order count of a product or account rep that has no
	// stored count.
	countNow bool
	// Products contains the order counts of products, by the product's key. Reps contains the order
	// counts of account reps, by the employee's key.
	Products, Reps Counters
}

// NewOrderListCounts returns OrderListCounts for a scan of the table that starts now. If countNow is true,
// missing order counts of products and account reps are calculated.
func NewOrderListCounts(t *table.Table, countNow bool) *OrderListCounts {
	return &OrderListCounts{table: t, countNow: countNow}
}

// AddRecord counts a scanned record: an order item for its product, and the customer's copy of an
// order for the account rep of the order. It ignores other records.
func (l *OrderListCounts) AddRecord(e *model.Entity, rec model.Record) {
	switch e.Name {
	case model.EntityOrderItem.Name:
		l.Products.Increment(l.productKey(commerce.SKU(model.FirstPlaceholderValue(e.SK, model.TextOf(rec, model.AttrSK)))))
	case model.EntityCustomerOrder.Name:
		if rep := accountRepOf(rec); rep != "" {
			l.Reps.Increment(l.employeeKey(rep))
		}
	}
}

// accountRepOf returns the account rep in the index key of the customer's copy of an order. It
// returns an empty ID if the key contains no account rep.
func accountRepOf(order model.Record) commerce.EmployeeID {
	return commerce.EmployeeID(model.FirstPlaceholderValue(model.EntityCustomerOrder.IndexPK, model.TextOf(order, model.AttrIndexPK)))
}

func (l *OrderListCounts) productKey(sku commerce.SKU) model.Keys {
	return model.ProductBySKU.Key(l.table.KeyBuilder(), sku)
}

func (l *OrderListCounts) employeeKey(id commerce.EmployeeID) model.Keys {
	return model.EmployeeByID.Key(l.table.KeyBuilder(), id)
}

// AddProductCount adds the order count that a product's record contains. orders is nil if the record has
// no count.
func (l *OrderListCounts) AddProductCount(k model.Keys, orders *int) {
	switch {
	case orders != nil:
		l.Products.SetStoredCount(k, *orders)
	case l.countNow:
		l.Products.SetStoredCount(k, MissingCount)
	}
}

// AddEmployeeCounts adds the order counts in an employee's partition.
func (l *OrderListCounts) AddEmployeeCounts(k model.Keys, records map[model.Keys]model.Record) {
	diag := &repair.Diagnosis{Table: l.table}
	parts, orders, complete := 0, 0, false
	for at, rec := range records {
		if e := model.EntityOf(at); e != nil && e.Name == model.EntityRepOrders.Name {
			verifyPartWithoutCount(diag, rec)
			r := model.Reader{Record: rec}
			parts, orders, complete = parts+1, orders+r.Number(model.AttrOrders), complete || r.Flag(model.AttrComplete)
		}
	}
	switch exists := records[k] != nil; {
	case !diag.IsClean(), !exists && parts > 0, exists && !complete && l.countNow:
		l.Reps.SetStoredCount(k, MissingCount)
	case complete:
		l.Reps.SetStoredCount(k, orders)
	}
}

// MarkChanged calls Counters.MarkChanged for the products and account reps that the records of an
// order name. records contains the order's records before and after a repair. left reports whether
// the order still has an inconsistency.
func (l *OrderListCounts) MarkChanged(records []model.Record, left bool) {
	for _, rec := range records {
		for _, sku := range NamedProducts(rec) {
			l.Products.MarkChanged(l.productKey(sku), left)
		}
		for _, rep := range []commerce.EmployeeID{commerce.EmployeeID(model.TextOf(rec, "accountRepId")), accountRepOf(rec)} {
			l.Reps.MarkChanged(l.employeeKey(rep), left)
		}
	}
}
