package check

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// statusCountsVerifier verifies a counts record, which is one of the records that count orders by
// status.
type statusCountsVerifier struct {
	baseVerifier
	part    string
	counter *orderCounter
	// pass is the number of the next pass. Each pass counts the orders once. counted is the result of
	// the last pass.
	pass       int
	counted    partCounts
	isRepaired bool
}

// addStatusCountCandidates selects the counts records that are missing or differ from the scanned
// orders, to verify them again. If no counts record is marked as complete, it selects records only
// if opts.Repair is set.
func (c *check) addStatusCountCandidates() {
	for _, part := range c.orderCounter.candidates(c.opts.Repair) {
		c.addCandidate(target{targetStatusCounts, part}, candidate{})
	}
}

// repOrderCountVerifier verifies the stored number of orders of an account rep.
type repOrderCountVerifier struct {
	baseVerifier
	counter *repOrderCounter
}

// addRepOrderCandidates selects the account reps to verify again. Their stored order count differs
// from the number of scanned orders.
func (c *check) addRepOrderCandidates() {
	for _, id := range c.numbers.candidates(&model.EntityRepOrders, model.AttrOrders, false) {
		c.addCandidate(target{targetRepOrders, id}, candidate{})
	}
}

// addStoredRepCounts adds the sum of the order counts in an employee's partition. If it is missing,
// it must be counted only if opts.Repair is set.
func (c *check) addStoredRepCounts(v *employeeVerifier) {
	diag := &diagnosis{table: c.table}
	parts, orders, complete := 0, 0, false
	for at, rec := range v.records {
		if e := model.EntityOf(at); e != nil && e.Name == model.EntityRepOrders.Name {
			verifyPartWithoutCount(diag, rec)
			r := model.Reader{Record: rec}
			parts, orders, complete = parts+1, orders+r.Number(model.AttrOrders), complete || r.Flag(model.AttrComplete)
		}
	}
	switch k, exists := repOrders(v.id), v.record() != nil; {
	case !diag.isClean(), !exists && parts > 0, exists && !complete && c.opts.Repair:
		c.numbers.setStored(k, missing)
	case complete:
		c.numbers.setStored(k, orders)
	}
}

// addStoredOrderCount adds the order count in a product's record. If it is missing, it must be
// counted only if opts.Repair is set.
func (c *check) addStoredOrderCount(p *commerce.Product) {
	switch {
	case p.OrderCount != nil:
		c.numbers.setStored(productOrders(p.SKU), *p.OrderCount)
	case c.opts.Repair:
		c.numbers.setStored(productOrders(p.SKU), missing)
	}
}

// repOrders identifies the order count of an account rep.
func repOrders(id commerce.EmployeeID) number {
	return number{&model.EntityRepOrders, model.AttrOrders, string(id)}
}

// productOrders identifies the order count of a product.
func productOrders(sku commerce.SKU) number {
	return number{&model.EntityProduct, model.AttrOrderCount, string(sku)}
}

// markOrderCountsChanged calls numbers.markChanged for the order counts of the products and account
// reps in an order's records, before and after a repair.
func (c *check) markOrderCountsChanged(records []model.Record, left bool) {
	for _, rec := range records {
		for _, sku := range namedProducts(rec) {
			c.numbers.markChanged(productOrders(sku), left)
		}
		indexed := model.FirstPlaceholderValue(model.EntityCustomerOrder.IndexPK, model.TextOf(rec, model.AttrIndexPK))
		for _, rep := range []string{model.TextOf(rec, "accountRepId"), indexed} {
			c.numbers.markChanged(repOrders(commerce.EmployeeID(rep)), left)
		}
	}
}

func (v *repOrderCountVerifier) addRecord(*model.Entity, model.Record) {}

func (v *repOrderCountVerifier) key(*table.Table) model.Keys { return v.counter.key() }

func (v *repOrderCountVerifier) read(ctx context.Context, _ *check) error { return v.counter.read(ctx) }

func (v *repOrderCountVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	v.counter.verify(diag, c.opts.Repair)
	return diag
}

func (v *repOrderCountVerifier) uncertainty(*diagnosis) string { return v.counter.uncertainty() }

func (v *statusCountsVerifier) addRecord(_ *model.Entity, rec model.Record) { v.counted.record = rec }

func (v *statusCountsVerifier) key(t *table.Table) model.Keys {
	return statusCountsKey(t, v.part)
}

// maxRecountPasses is the maximum number of times that the orders are counted. They are counted
// again only if an order changed during the previous count.
const maxRecountPasses = 20

func (v *statusCountsVerifier) read(ctx context.Context, c *check) (err error) {
	if v.isRepaired {
		v.counted.record, err = v.counter.readCountsRecord(ctx, v.part)
		return err
	}
	for v.counted.uncertainty = reasonOrdersChanged; v.counted.uncertainty == reasonOrdersChanged && v.pass < maxRecountPasses; v.pass++ {
		if v.counted, err = v.counter.count(ctx, v.part, v.pass); err != nil {
			return err
		}
	}
	return nil
}

func (v *statusCountsVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table, trustedKey: v.key(c.table), trusted: v.counted.record}
	if v.counted.uncertainty == "" && !v.isRepaired {
		verifyStatusCounts(diag, v.part, v.counted.record, v.counted.byStatus)
	}
	return diag
}

func (v *statusCountsVerifier) updateCheckState(*check, *diagnosis, *diagnosis) {
	v.counter.excludePart(v.part)
}

// uncertainty returns the reason why the last count may be wrong, or an empty string if the count
// is right.
func (v *statusCountsVerifier) uncertainty(*diagnosis) string { return v.counted.uncertainty }

// markRepaired prevents another count after a repair. The counts are still right, because the
// repair succeeds only if the counts record has not changed since the orders were counted.
func (v *statusCountsVerifier) markRepaired() { v.isRepaired = true }
