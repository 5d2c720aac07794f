package counting

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// OrderListCounts compares the stored order counts of products and account reps (the employees
// responsible for customers) with the scanned orders. It is safe for concurrent use.
type OrderListCounts struct {
	table *table.Table
	// If countNow is true, each product or account rep without a stored order count becomes a
	// candidate, so its orders are counted.
	countNow bool
	// Products contains the order counts of products, by the key of the product's record. Reps
	// contains the order counts of account reps, by the key of the employee's record.
	Products, Reps Counters
}

// NewOrderListCounts returns an OrderListCounts for a new scan of the table. If a product or
// account rep has no stored order count, its orders are counted only if countNow is true.
func NewOrderListCounts(t *table.Table, countNow bool) *OrderListCounts {
	return &OrderListCounts{table: t, countNow: countNow}
}

// AddRecord counts a scanned record of the entity e. An order item counts for its product. The
// customer's copy of an order counts for the order's account rep.
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

// accountRepOf returns the account rep of an order. order is the copy in the customer's partition,
// because the index key of this copy contains the account rep. If there is no account rep,
// accountRepOf returns an empty ID.
func accountRepOf(order model.Record) commerce.EmployeeID {
	return commerce.EmployeeID(model.FirstPlaceholderValue(model.EntityCustomerOrder.IndexPK, model.TextOf(order, model.AttrIndexPK)))
}

func (l *OrderListCounts) productKey(sku commerce.SKU) model.Keys {
	return model.ProductBySKU.Key(l.table.KeyBuilder(), sku)
}

func (l *OrderListCounts) employeeKey(id commerce.EmployeeID) model.Keys {
	return model.EmployeeByID.Key(l.table.KeyBuilder(), id)
}

// AddProductCount adds the order count that is stored in a product's record. k is the key of the
// record. If the record has no count, orders is nil.
func (l *OrderListCounts) AddProductCount(k model.Keys, orders *int) {
	switch {
	case orders != nil:
		l.Products.SetStoredCount(k, *orders)
	case l.countNow:
		l.Products.SetStoredCount(k, MissingCount)
	}
}

// AddEmployeeCounts adds the stored order count of an account rep. k is the key of the employee's
// record. records contains all records of the employee's partition. Several of these records each
// count a part of the rep's orders, and AddEmployeeCounts adds up their counts.
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

// MarkChanged calls Counters.MarkChanged for the products and account reps of an order. records
// contains the order's records before and after a repair. If left is true, an inconsistency
// remains.
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
