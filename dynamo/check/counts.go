package check

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// statusCountsVerifier verifies one of the records that count orders by status, or that add up the sales of
// a day.
type statusCountsVerifier struct {
	baseVerifier
	derive.Target
	recount *recount
	// pass is the number of the next pass. Each pass counts the orders once.
	pass       int
	counted    counted
	isRepaired bool
}

func statusCountsTarget(part, shard string) derive.Target {
	return derive.TargetOf(&model.EntityOrderCounts, part, shard)
}

// statusCountsTargetAt returns the record with a primary key that counts orders or adds up sales.
func statusCountsTargetAt(k model.Keys) derive.Target {
	if model.EntityOf(k) == &model.EntityDailySales {
		return salesTargetAt(k)
	}
	return statusCountsTarget(model.FirstPlaceholderValue(model.EntityOrderCounts.SK, k.SK), model.EntityOrderCounts.Shard(k.PK))
}

// addStatusCountCandidates selects the counts records that are missing or differ from the scanned
// orders, to verify them again. If no counts record is marked as complete, it selects records only
// if opts.Repair is set.
func (c *check) addStatusCountCandidates() {
	if !c.keepsStatusCounts && (!c.opts.Repair || c.summary.Orders == 0) {
		return
	}
	for _, counts := range c.layout().FirstCounters() {
		if t := statusCountsTarget(counts.Part, counts.Shard); !c.scannedCounts[t] {
			c.numbers.setStored(number{t, model.AttrComplete}, missing)
		}
	}
	for _, t := range c.numbers.candidateTargets(&model.EntityOrderCounts, "", true) {
		c.uncounted.Store(t, true)
		c.addCandidate(target{targetStatusCounts, t.Key(c.table.KeyBuilder()).Text()}, candidate{})
	}
}

// addStoredStatusCounts adds the numbers in a scanned counts record. If the record is inconsistent,
// it is verified again in any case.
func (c *check) addStoredStatusCounts(rec model.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := statusCountsTargetAt(model.KeyOf(rec))
	at := model.Reader{Record: rec}
	c.scannedCounts[t], c.keepsStatusCounts = true, c.keepsStatusCounts || at.Flag(model.AttrComplete)
	sums := totals{}
	for _, s := range commerce.Statuses() {
		stored := number{t, s.String()}
		sums[stored] = integer(at.Number(s.String()))
		c.numbers.setStoredAmount(stored, sums[stored])
	}
	diag := &diagnosis{table: c.table}
	if verifyStatusCounts(diag, t, counted{record: rec, numbers: sums}); !diag.isClean() {
		c.numbers.setStored(number{t, model.AttrComplete}, missing)
	}
}

// verifyStatusCounts adds the differences between a counts record and the actual counts to diag.
func verifyStatusCounts(diag *diagnosis, t derive.Target, now counted) {
	b := diag.table.KeyBuilder()
	counts := commerce.OrderCounts{Part: t.Value(0), Shard: t.Value(1), Complete: b.Layout.HasFirstCounters(t.Value(1))}
	for _, s := range commerce.Statuses() {
		counts.ByStatus[s] = now.numbers.int(number{t, s.String()})
	}
	want := model.OrderCountsRecord(b, counts)
	switch {
	case !isPart(t.Value(0), model.OrderCountParts), !b.Layout.HasCounters(t.Value(1)):
		if now.record != nil {
			diag.addOrphan(kindStatusCounts, now.record, "this record stores order counts, but its key contains an invalid record number or shard")
		}
	case now.record == nil && !counts.Complete && counts.ByStatus == commerce.StatusCounts{}:
		// The record begins with the first order that it counts.
	case now.record == nil:
		diag.addMissing(kindStatusCounts, want, nil, "this record with order counts by status is missing")
	default:
		diag.compare(&model.EntityOrderCounts, now.record, want, kindStatusCounts)
	}
}

// isPart reports whether part is the number of one of several records that store parts of a number.
func isPart(part string, parts int) bool {
	n, err := strconv.Atoi(part)
	return err == nil && n >= 0 && n < parts && part == strconv.Itoa(n)
}

func (v *statusCountsVerifier) addRecord(*model.Entity, model.Record) {}

func (v *statusCountsVerifier) key(t *table.Table) model.Keys { return v.Key(t.KeyBuilder()) }

// maxRecountPasses is the maximum number of times that orders are counted. They are counted again
// only if an order changed during the previous count.
const maxRecountPasses = 20

func (v *statusCountsVerifier) read(ctx context.Context, c *check) (err error) {
	if v.isRepaired || !c.table.Layout.Derivations().Writes(v.Entity.Name) { // no count is needed
		now, err := c.readTargets(ctx, []derive.Target{v.Target})
		v.counted.record = now[v.Target].record
		return err
	}
	for v.counted.doubt = reasonOrdersChanged; v.counted.doubt == reasonOrdersChanged && v.pass < maxRecountPasses; v.pass++ {
		if v.counted, err = v.recount.afterPass(ctx, v.Target, v.pass); err != nil {
			return err
		}
	}
	return nil
}

func (v *statusCountsVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table, trustedKey: v.key(c.table), trusted: v.counted.record}
	switch {
	case v.counted.doubt != "" || v.isRepaired:
	case v.Entity == &model.EntityDailySales:
		verifyDailySales(diag, v.Target, v.counted)
	default:
		verifyStatusCounts(diag, v.Target, v.counted)
	}
	return diag
}

func (v *statusCountsVerifier) updateCheckState(c *check, _, _ *diagnosis) {
	c.uncounted.Delete(v.Target)
}

func (v *statusCountsVerifier) uncertainty(*diagnosis) string { return v.counted.doubt }

// markRepaired prevents another count after a repair. The counts are still right, because the
// repair succeeds only if the counts record has not changed since the orders were counted.
func (v *statusCountsVerifier) markRepaired() { v.isRepaired = true }

// repOrdersVerifier verifies the stored number of orders of an account rep. Several records store
// parts of it (see model.RepOrderCountParts).
type repOrdersVerifier struct {
	baseVerifier
	id commerce.EmployeeID

	employee model.Record
	// settled are the contributions of the orders placed before the scan. Only the first pass counts
	// these orders, because the account rep of an order never changes.
	settled totals
	// parts contains the results with certain counts. orphans are the records with an invalid number.
	parts   map[derive.Target]counted
	orphans []model.Record
}

func (v *repOrdersVerifier) part(i int) derive.Target {
	return derive.TargetOf(&model.EntityRepOrders, string(v.id), strconv.Itoa(i))
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
		c.numbers.addStored(productOrders(p.SKU), *p.OrderCount, true)
	case c.opts.Repair:
		c.numbers.setStored(productOrders(p.SKU), missing)
	}
}

// repOrders identifies the order count of an account rep.
func repOrders(id commerce.EmployeeID) number {
	return number{derive.TargetOf(&model.EntityRepOrders, string(id)), model.AttrOrders}
}

// productOrders identifies the order count of a product.
func productOrders(sku commerce.SKU) number {
	return number{derive.TargetOf(&model.EntityProduct, string(sku)), model.AttrOrderCount}
}

// markOrderCountsChanged calls numbers.markChanged for the counts to which an order contributes
// according to its records, before and after a repair.
func (c *check) markOrderCountsChanged(id commerce.OrderID, records []model.Record, left bool) {
	c.markSalesChanged(records)
	c.numbers.markChanged(number{statusCountsTarget(c.layout().OrderCounter(id)), model.AttrComplete}, false)
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

func (v *repOrdersVerifier) addRecord(*model.Entity, model.Record) {}

func (v *repOrdersVerifier) key(t *table.Table) model.Keys { return v.part(0).Key(t.KeyBuilder()) }

// read counts the orders in at most maxRecountPasses passes, until all counts are certain. A count is
// certain if no order was placed meanwhile.
func (v *repOrdersVerifier) read(ctx context.Context, c *check) error {
	v.parts = map[derive.Target]counted{}
	for pass := 0; pass < maxRecountPasses && v.uncertainty(nil) != ""; pass++ {
		if err := v.runPass(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (v *repOrdersVerifier) uncertainty(*diagnosis) string {
	if len(v.parts) < model.RepOrderCountParts {
		return reasonOrdersChanged
	}
	return ""
}

func (v *repOrdersVerifier) runPass(ctx context.Context, c *check) error {
	first, err := v.readRecords(ctx, c)
	if err != nil {
		return err
	}
	if err := c.waitForIndex(ctx); err != nil {
		return err
	}
	since, _ := commerce.MinULIDAt(c.orders.since)
	if v.settled == nil {
		if v.settled, err = c.countList(ctx, model.AttrOrders, &model.EntityRepOrders, string(v.id), model.Range{To: since}); err != nil {
			return err
		}
	}
	placed, err := c.countList(ctx, model.AttrOrders, &model.EntityRepOrders, string(v.id), model.Range{From: since})
	if err != nil {
		return err
	}
	last, err := v.readRecords(ctx, c)
	for i := range model.RepOrderCountParts {
		// Every transaction that places an order also changes the record that counts it. So if this record
		// did not change during the count, the new count is certain.
		t := v.part(i)
		if k := (number{t, model.AttrOrders}); model.EqualRecords(first[t], last[t]) {
			v.parts[t] = counted{record: last[t], numbers: totals{k: sum(v.settled[k], placed[k])}}
		}
	}
	return err
}

// readRecords reads the counts records and the employee's record.
func (v *repOrdersVerifier) readRecords(ctx context.Context, c *check) (map[derive.Target]model.Record, error) {
	v.employee, v.orphans = nil, nil
	parts := map[derive.Target]model.Record{}
	err := c.client.readItemCollection(ctx, &model.EmployeeOrderCount.AccessPattern, v.key(c.table).PK, func(e *model.Entity, rec model.Record) {
		part := model.FirstPlaceholderValue(e.SK, model.KeyOf(rec).SK)
		switch {
		case e.Name == model.EntityEmployee.Name:
			v.employee = rec
		case e.Name != model.EntityRepOrders.Name:
		case !isPart(part, model.RepOrderCountParts):
			v.orphans = append(v.orphans, rec)
		default:
			parts[derive.TargetOf(&model.EntityRepOrders, string(v.id), part)] = rec
		}
	})
	return parts, err
}

// verify reports wrong counts. If the table has no complete order count for the rep, it verifies the
// counts only if opts.Repair is set.
func (v *repOrdersVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	sum := 0
	for t, part := range v.parts {
		sum += part.numbers.int(number{t, model.AttrOrders})
	}
	first := v.parts[v.part(0)].record
	diag.trustedKey, diag.trusted = v.key(c.table), first
	for _, rec := range v.orphans {
		diag.addOrphan(kindOrderCount, rec, "this record stores order counts, but its key contains an invalid record number")
	}
	complete := (&model.Reader{Record: first}).Flag(model.AttrComplete)
	for i := range model.RepOrderCountParts {
		t := v.part(i)
		have, orders := v.parts[t].record, v.parts[t].numbers.int(number{t, model.AttrOrders})
		want := model.RepOrderCountRecord(c.table.KeyBuilder(), commerce.RepOrderCount{EmployeeID: v.id, Part: t.Value(1), Complete: t.Value(1) == model.FirstRepCountPart, Orders: orders})
		switch {
		case v.employee == nil && sum == 0:
			if have != nil {
				diag.addOrphan(kindOrderCount, have, "this record counts the orders of an employee who does not exist")
			}
		case !complete && (!c.opts.Repair || v.employee == nil):
			if have != nil {
				verifyPartWithoutCount(diag, have)
			}
		case have != nil:
			diag.compare(&model.EntityRepOrders, have, want, kindOrderCount)
		case i == 0 || orders > 0:
			diag.addMissing(kindOrderCount, want, nil, fmt.Sprintf("this record with order counts is missing; the number of orders with this account rep is %d", sum))
		}
	}
	return diag
}

// verifyPartWithoutCount verifies all attributes of a counts record except its count.
func verifyPartWithoutCount(diag *diagnosis, rec model.Record) {
	at, k := model.Reader{Record: diag.withoutUnreadable(&model.EntityRepOrders, rec)}, model.KeyOf(rec)
	part := model.FirstPlaceholderValue(model.EntityRepOrders.SK, k.SK)
	diag.compare(&model.EntityRepOrders, rec, model.RepOrderCountRecord(diag.table.KeyBuilder(), commerce.RepOrderCount{
		EmployeeID: commerce.EmployeeID(model.FirstPlaceholderValue(model.EntityRepOrders.PK, k.PK)), Part: part,
		Complete: part == model.FirstRepCountPart && at.Flag(model.AttrComplete), Orders: at.Number(model.AttrOrders),
	}), kindOrderCount)
}
