package check

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// counterOf returns the record that counts the orders by status whose sales a record adds up. For a
// record that counts orders by status, it returns this record.
func counterOf(t derive.Target) derive.Target {
	if t.Entity == &model.EntityDailySales {
		return statusCountsTarget(t.Value(2), t.Value(3))
	}
	return t
}

// mayAddUp reports whether an order may contribute to a record with sales or with order counts.
func mayAddUp(l model.Layout, t derive.Target, id commerce.OrderID) bool {
	_, isULID := id.Time()
	return t.Entity != &model.EntityDailySales || !isULID || t.Value(1) == string(commerce.Order{ID: id}.DailySales(l.DayOf).Day)
}

// salesTargetAt returns the record with a primary key that adds up the sales of a day.
func salesTargetAt(k model.Keys) derive.Target {
	values, _ := model.EntityDailySales.SK.Values(k.SK)
	return derive.TargetOf(&model.EntityDailySales, append(values, model.EntityDailySales.Shard(k.PK))...)
}

// verifiesSales reports whether the check includes the sales by day, according to their state when it
// begins. It omits them until they are readable, because older records lack them.
func (c *check) verifiesSales() bool { return c.salesVerified }

// addStoredSales adds the numbers in a scanned record with the sales of a day. If the record is
// inconsistent, it is verified again in any case.
func (c *check) addStoredSales(rec model.Record) {
	if !c.verifiesSales() {
		return
	}
	t := salesTargetAt(model.KeyOf(rec))
	stored, err := c.table.DecodeDailySales(model.Reader{Record: rec})
	orders, spent := number{t, model.AttrOrders}, number{t, model.AttrSpent}
	if err == nil {
		c.numbers.setStored(orders, stored.Orders)
		c.numbers.setStoredAmount(spent, stored.Total.Amount)
	}
	diag := &diagnosis{table: c.table}
	if err == nil {
		verifyDailySales(diag, t, counted{record: rec, numbers: totals{orders: integer(stored.Orders), spent: stored.Total.Amount}})
	}
	if err != nil || !diag.isClean() {
		c.numbers.setStored(orders, missing)
	}
}

// verifyDailySales adds the differences between a record with sales and the actual sales to diag.
func verifyDailySales(diag *diagnosis, t derive.Target, now counted) {
	b := diag.table.KeyBuilder()
	s := commerce.DailySales{
		Day: commerce.Date(t.Value(1)), Part: t.Value(2), Shard: t.Value(3), Orders: now.numbers.int(number{t, model.AttrOrders}),
		Total: commerce.Money{Currency: commerce.Currency(t.Value(0)), Amount: now.numbers[number{t, model.AttrSpent}]},
	}
	want := model.DailySalesRecord(b, s)
	switch {
	case b.Err != nil: // an order of other software has a currency that no key can contain
	case !diag.table.Layout.Derivations().Writes(t.Entity.Name):
		if now.record != nil {
			diag.addOrphan(kindDailySales, now.record, "the table does not have sales by day")
		}
	case !isPart(s.Part, model.OrderCountParts), !b.Layout.HasCounters(s.Shard):
		if now.record != nil {
			diag.addOrphan(kindDailySales, now.record, "this record stores sales, but its key contains an invalid record number or shard")
		}
	case now.record == nil && s.Orders == 0 && s.Total.Amount.IsZero():
		// The record begins with the first order that is not cancelled.
	case now.record == nil:
		diag.addMissing(kindDailySales, want, nil, "this record with the sales of a day is missing")
	default:
		diag.compare(t.Entity, now.record, want, kindDailySales)
	}
}

// addSalesCandidates selects the records with sales that are missing or differ from the scanned orders.
func (c *check) addSalesCandidates() {
	if !c.verifiesSales() {
		return
	}
	for _, t := range c.numbers.candidateTargets(&model.EntityDailySales, "", true) {
		c.uncounted.Store(t, true)
		c.addCandidate(target{targetStatusCounts, t.Key(c.table.KeyBuilder()).Text()}, candidate{})
	}
}

// markSalesChanged selects the records with the sales of an order for a recount. records are the order's
// records before and after a repair.
func (c *check) markSalesChanged(records []model.Record) {
	for _, rec := range records {
		o, err := c.table.DecodeOrder(model.Reader{Record: rec})
		if err != nil {
			continue
		}
		derive.Contributions(c.layout(), o, func(t derive.Target, _ derive.Amount) {
			if t.Entity == &model.EntityDailySales && t.Entity != c.numbers.omitted {
				c.numbers.markChanged(number{t, model.AttrOrders}, false)
			}
		})
	}
}
