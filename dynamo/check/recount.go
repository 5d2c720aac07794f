package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// counted is a record with derived numbers, and the numbers that it should have.
type counted struct {
	// record is the record as it was read before the base values. The numbers are right as long as this
	// record is unchanged, because every mutation that changes one of them also changes the record.
	record  model.Record
	numbers totals
	// buckets are the other records that contain parts of the numbers (see readBuckets).
	buckets []model.Record
	// passes is the number of successive passes with the same record.
	passes int
	// doubt is the reason why the numbers may be wrong, or empty.
	doubt string
}

// reasonOrdersChanged means that counts may be wrong, because orders changed while they were
// counted. If the orders are counted again, the counts may become certain.
const reasonOrdersChanged = "orders changed each time they were counted"

// recount counts the derived numbers of some targets again, in one or more passes. Verifiers of
// different targets share the passes, because each pass reads many orders.
type recount struct {
	// run runs one pass. previous is the result of the pass before it, or nil.
	run func(ctx context.Context, previous map[derive.Target]counted) (map[derive.Target]counted, error)
	// turn is a lock, because only one pass may run at a time. It is a channel instead of a mutex, so
	// that a caller can stop waiting when its context ends.
	turn   chan struct{}
	passes []map[derive.Target]counted
}

func newRecount(run func(context.Context, map[derive.Target]counted) (map[derive.Target]counted, error)) *recount {
	return &recount{run: run, turn: make(chan struct{}, 1)}
}

// afterPass returns the result of pass n for a target. The first pass has the number 0. If pass n
// has not run yet, afterPass runs it.
func (r *recount) afterPass(ctx context.Context, t derive.Target, n int) (counted, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return counted{}, fmt.Errorf("count again: %w", ctx.Err())
	}
	for len(r.passes) <= n {
		var previous map[derive.Target]counted
		if len(r.passes) > 0 {
			previous = r.passes[len(r.passes)-1]
		}
		found, err := r.run(ctx, previous)
		if err != nil {
			return counted{}, err
		}
		r.passes = append(r.passes, found)
	}
	return r.passes[n][t], nil
}

// recountTargets returns a recount of the targets among the candidates that must be counted again. A
// pass reads orders only if numbers depend on them. The caller counts the lists.
func (c *check) recountTargets(targets []target, candidates map[target]candidate) *recount {
	var all []derive.Target
	readsOpen, readsAll := false, false
	for _, k := range targets {
		stock, orders := candidates[k].recountStock, candidates[k].countOrders
		switch {
		case k.kind == targetProduct && (stock || orders):
			all, readsOpen = append(all, derive.TargetOf(&model.EntityProduct, k.id)), readsOpen || stock
		case k.kind == targetRecords && stock:
			t := newRecordsVerifier(k.id).target()
			all, readsAll = append(all, t), readsAll || slices.ContainsFunc(scanTotals(t.Entity), c.readsOrders)
		}
	}
	return newRecount(func(ctx context.Context, previous map[derive.Target]counted) (map[derive.Target]counted, error) {
		found, err := c.readTargets(ctx, all)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			now := found[t]
			if now.buckets, err = c.readBuckets(ctx, t, now.record); err != nil {
				return nil, err
			}
			found[t] = now
		}
		if err := c.waitForIndex(ctx); err != nil {
			return nil, err
		}
		var numbers totals
		if readsOpen || readsAll {
			if _, err := c.orders.discover(ctx); err != nil {
				return nil, err
			}
			if numbers, _, err = c.orders.count(ctx, func(_ derive.Target, s commerce.Status) bool { return readsAll || s == 0 || s.ReservesStock() }); err != nil {
				return nil, err
			}
		}
		for t, now := range found {
			now.numbers, now.passes = numbers, 1
			if before := previous[t]; model.EqualRecords(before.record, now.record) && slices.EqualFunc(before.buckets, now.buckets, model.EqualRecords) {
				now.passes += before.passes
			}
			found[t] = now
		}
		return found, nil
	})
}

// countAgain returns the result of pass n of a recount for a target, with the numbers that are counted
// from lists.
func (c *check) countAgain(ctx context.Context, r *recount, t derive.Target, n int) (counted, error) {
	now, err := r.afterPass(ctx, t, n)
	if err != nil {
		return now, err
	}
	now.numbers = maps.Clone(now.numbers)
	for _, s := range scanTotals(t.Entity) {
		if s.List == nil {
			continue
		}
		listed, err := c.countList(ctx, s.Attributes[0], t.Entity, t.Value(0), model.Range{})
		if err != nil {
			return now, err
		}
		if now.numbers == nil {
			now.numbers = totals{}
		}
		for k, n := range listed {
			now.numbers.addAmount(k, n)
		}
	}
	return now, nil
}

// recountStatuses returns a recount of the order counts by status and of the sales by day, in the records
// that are still to be verified.
func (c *check) recountStatuses() *recount {
	return newRecount(func(ctx context.Context, _ map[derive.Target]counted) (map[derive.Target]counted, error) {
		all := map[derive.Target]counted{}
		// The records with the same counter add up the same orders.
		targets := map[derive.Target][]derive.Target{}
		for t := range c.uncounted.Range {
			counter := counterOf(t.(derive.Target))
			targets[counter] = append(targets[counter], t.(derive.Target))
		}
		for _, counter := range slices.SortedFunc(maps.Keys(targets), func(a, b derive.Target) int {
			return cmp.Or(cmp.Compare(a.Value(1), b.Value(1)), cmp.Compare(a.Value(0), b.Value(0)))
		}) {
			before, err := c.readTargets(ctx, targets[counter])
			if err != nil {
				return nil, err
			}
			numbers, unreadable, err := c.orders.count(ctx, func(of derive.Target, _ commerce.Status) bool { return of == counter })
			if err != nil {
				return nil, err
			}
			after, err := c.readTargets(ctx, targets[counter])
			if err != nil {
				return nil, err
			}
			for t, now := range after {
				switch now.numbers = numbers; {
				case unreadable != "":
					now.doubt = fmt.Sprintf("the status of %s cannot be read", model.OrderByID.Key(c.table.KeyBuilder(), unreadable).PK)
				case t.Entity == &model.EntityDailySales && c.orders.hasUnknownTotal(counter):
					now.doubt = "the total of an order cannot be read"
				case !model.EqualRecords(before[t].record, now.record):
					now.doubt = reasonOrdersChanged
				}
				all[t] = now
			}
		}
		if err := c.waitForIndex(ctx); err != nil {
			return nil, err
		}
		// If the index contains orders that were not counted, another pass is necessary.
		placed, err := c.orders.discover(ctx)
		for _, id := range placed {
			for _, t := range targets[statusCountsTarget(c.layout().OrderCounter(id))] {
				if now := all[t]; now.doubt == "" && mayAddUp(c.table.Layout.Get(), t, id) {
					now.doubt = reasonOrdersChanged
					all[t] = now
				}
			}
		}
		return all, err
	})
}

// waitForIndex waits until the index contains all earlier writes.
func (c *check) waitForIndex(ctx context.Context) error {
	if err := table.Sleep(ctx, c.opts.IndexLag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	return nil
}

// readTargets reads the records of targets.
func (c *check) readTargets(ctx context.Context, targets []derive.Target) (map[derive.Target]counted, error) {
	b := c.table.KeyBuilder()
	keys := make([]model.Keys, len(targets))
	for i, t := range targets {
		keys[i] = t.Key(b)
	}
	found, err := c.client.get(ctx, consistent, keys...)
	records := make(map[derive.Target]counted, len(targets))
	for i, t := range targets {
		records[t] = counted{record: found[keys[i]]}
	}
	return records, err
}

// countList counts the contributions of a list's records to a sum, by the keys of these records.
//
// It returns an error if value is not valid in a key, and the errors of client.queryRange.
func (c *check) countList(ctx context.Context, attribute string, target *model.Entity, value string, within model.Range) (totals, error) {
	i := slices.IndexFunc(derive.Sums(), func(s derive.Sum) bool { return s.Target == target && s.Attributes[0] == attribute })
	sum := &derive.Sums()[i]
	partition, err := sum.List.PK.Build(value)
	if err != nil {
		return nil, err
	}
	sums := totals{}
	for _, key := range c.layout().Partitions(sum.List, partition) {
		if err := c.client.queryRange(ctx, sum.List, key, string(sum.List.SK), within, types.SelectCount, func(out *dynamodb.QueryOutput) error {
			for _, rec := range out.Items {
				k := model.KeyOf(rec)
				sums.add(c.layout(), sum.Listed(value, model.EntityOf(k).KeyValues(k)), func(s *derive.Sum) bool { return s == sum })
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// maxVisibilityDelay is the maximum time from the creation of an order's ID until reads find the
// order. It includes the difference between the clocks of servers.
const maxVisibilityDelay = time.Minute

// scannedOrders contains what the scan has learnt about the orders, so that derived numbers can be
// counted again. It is safe for concurrent use.
type scannedOrders struct {
	check *check
	// since is a time shortly before the start of the scan. The scan may have missed orders that were
	// placed at this time or later.
	since time.Time

	mu sync.Mutex
	// settled contains what delivered and cancelled orders contribute, by the record that counts them
	// by status. It excludes orders that are new, or that a repair may change. A recount does not read
	// the settled orders again.
	settled map[derive.Target]totals
	// open contains the other orders. It maps the same records to the orders, and each order to its
	// status. If the status is unknown or may be wrong, it is 0.
	open map[derive.Target]map[commerce.OrderID]commerce.Status
	// misleading contains the orders whose own record contributes other amounts than the order should,
	// because it could not be repaired. The values are further customers who may have a copy.
	misleading map[commerce.OrderID]map[commerce.CustomerID]bool
	// unknownTotals are the records that count an order by status whose total cannot be read.
	unknownTotals map[derive.Target]bool
	// discoveredUntil is the time when discover last queried the index.
	discoveredUntil time.Time
}

func newScannedOrders(c *check) *scannedOrders {
	now := c.table.Now()
	return &scannedOrders{
		check: c, since: now.Add(-maxVisibilityDelay), discoveredUntil: now,
		settled: map[derive.Target]totals{}, open: map[derive.Target]map[commerce.OrderID]commerce.Status{}, misleading: map[commerce.OrderID]map[commerce.CustomerID]bool{},
		unknownTotals: map[derive.Target]bool{},
	}
}

// add adds an order. o is nil if the order may be inconsistent. It reports whether the order is new.
func (s *scannedOrders) add(id commerce.OrderID, o *commerce.Order) (isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	layout := s.check.layout()
	counter := statusCountsTarget(layout.OrderCounter(id))
	if o != nil && !s.isRecent(id) && len(o.Status.Transitions()) == 0 {
		if s.settled[counter] == nil {
			s.settled[counter] = totals{}
		}
		s.settled[counter].add(layout, o, s.check.readsOrders)
		return true
	}
	if s.open[counter] == nil {
		s.open[counter] = map[commerce.OrderID]commerce.Status{}
	}
	_, known := s.open[counter][id]
	if s.open[counter][id] = 0; o != nil {
		s.open[counter][id] = o.Status
	}
	return !known
}

// isRecent reports whether the scan may have missed the order.
func (s *scannedOrders) isRecent(id commerce.OrderID) bool {
	placed, ok := id.Time()
	return ok && !placed.Before(s.since)
}

// markMisleading is called if an order's own record contributes wrong amounts.
func (s *scannedOrders) markMisleading(id commerce.OrderID, extraCustomers map[commerce.CustomerID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misleading[id] = extraCustomers
}

// unsettled returns the orders that a recount must read, and what the other orders contribute. Its
// argument selects the orders by the record that counts them, and by their status.
func (s *scannedOrders) unsettled(includes func(counter derive.Target, status commerce.Status) bool) (orders []commerce.OrderID, settled totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settled = totals{}
	for counter, numbers := range s.settled {
		if includes(counter, 0) {
			for k, n := range numbers {
				settled.addAmount(k, n)
			}
		}
	}
	for counter, open := range s.open {
		for id, status := range open {
			if includes(counter, status) {
				orders = append(orders, id)
			}
		}
	}
	slices.Sort(orders)
	return orders, settled
}

// hasUnknownTotal reports whether the total of an order cannot be read. counter is the record that counts the
// order by status.
func (s *scannedOrders) hasUnknownTotal(counter derive.Target) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknownTotals[counter]
}

// count adds up what orders contribute. Its argument is as for unsettled. If the status of an order
// cannot be read, it returns this order's ID as unreadable.
//
// It returns the errors of client.get and client.query.
func (s *scannedOrders) count(ctx context.Context, includes func(derive.Target, commerce.Status) bool) (sums totals, unreadable commerce.OrderID, err error) {
	c := s.check
	orders, sums := s.unsettled(includes)
	add := func(o *commerce.Order) {
		s.mu.Lock()
		defer s.mu.Unlock()
		sums.add(c.layout(), o, c.readsOrders)
	}
	// special contains the orders that need further reads. Few orders do.
	var special []func(context.Context) error
	for batch := range slices.Chunk(orders, table.MaxBatchKeys) {
		b := c.table.KeyBuilder()
		keys := make([]model.Keys, len(batch))
		for i, id := range batch {
			keys[i] = model.OrderByID.Key(b, id)
		}
		found, err := c.client.get(ctx, consistent, keys...)
		if err != nil {
			return nil, "", err
		}
		for i, id := range batch {
			s.mu.Lock()
			extra, misleading := s.misleading[id]
			s.mu.Unlock()
			o, complete := c.ownOrder(id, found[keys[i]], nil)
			if o != nil && o.Total.Currency == "" {
				s.mu.Lock()
				s.unknownTotals[statusCountsTarget(c.layout().OrderCounter(id))] = true
				s.mu.Unlock()
			}
			switch {
			case misleading || found[keys[i]] != nil && o == nil:
				special = append(special, func(ctx context.Context) error {
					v := &orderVerifier{id: id, extraCustomers: extra}
					if err := v.read(ctx, c); err != nil {
						return err
					}
					if !v.reservationKnown(v.verify(c)) {
						c.mu.Lock()
						c.markUncertainStockLocked(v)
						c.mu.Unlock()
					}
					if v.decoded != nil {
						o = v.decodedWithItems()
					}
					if o == nil {
						s.mu.Lock()
						defer s.mu.Unlock()
						unreadable = id
						return nil
					}
					add(o)
					return nil
				})
			case found[keys[i]] == nil:
			case !complete:
				special = append(special, func(ctx context.Context) error {
					var items []model.Record
					err := c.client.query(ctx, &model.OrderItems.AccessPattern, keys[i].PK, string(model.OrderItems.SK), func(out *dynamodb.QueryOutput) error {
						for _, rec := range out.Items {
							items = append(items, rec)
						}
						return nil
					})
					o, _ := c.ownOrder(id, found[keys[i]], items)
					add(o)
					return err
				})
			default:
				add(o)
			}
		}
	}
	err = table.Parallel(ctx, len(special), c.opts.Parallel, func(ctx context.Context, i int) error { return special[i](ctx) })
	return sums, unreadable, err
}

// ownOrder decodes an order's own record as far as possible. If its status cannot be read, the
// result is nil. If the order reserves stock but the record has no readable list of items, ownOrder uses
// the records of the items. If items is nil then, complete is false.
func (c *check) ownOrder(id commerce.OrderID, rec model.Record, items []model.Record) (o *commerce.Order, complete bool) {
	status, err := commerce.ParseStatus(model.TextOf(rec, "status"))
	if err != nil {
		return nil, true
	}
	if o, err = c.table.DecodeOrder(model.Reader{Record: rec}); err != nil {
		o = &commerce.Order{}
	}
	at := model.Reader{Record: rec}
	o.ID, o.Status = id, status
	if o.Items, err = decodeLines(rec["items"], at.Currency(c.table.Currency)); err == nil || !status.ReservesStock() {
		return o, true
	}
	o.Items = nil
	for _, item := range items {
		at := model.Reader{Record: item}
		o.Items = append(o.Items, commerce.LineItem{SKU: commerce.SKU(model.FirstPlaceholderValue(model.EntityOrderItem.SK, at.Text(model.AttrSK))), Quantity: at.Number("qty")})
	}
	return o, items != nil
}

// discover adds the orders that the index contains since the last call, and returns the new ones.
func (s *scannedOrders) discover(ctx context.Context) (placed []commerce.OrderID, err error) {
	t := s.check.table
	now := t.Now()
	from, _ := commerce.MinULIDAt(s.discoveredUntil.Add(-maxVisibilityDelay))
	to, _ := commerce.MinULIDAt(now.Add(model.MaxClockSkew))
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersPlaced.PK.Build(status.String())
		if err != nil {
			return nil, err
		}
		for _, partition := range t.Layout.Get().Partitions(&model.OrdersPlaced.AccessPattern, base) {
			err := s.check.client.queryRange(ctx, &model.OrdersPlaced.AccessPattern, partition, string(model.OrdersPlaced.SK), model.Range{From: from, To: to}, types.SelectCount, func(out *dynamodb.QueryOutput) error {
				for _, rec := range out.Items {
					if id := commerce.OrderID(model.FirstPlaceholderValue(model.EntityOrder.PK, model.KeyOf(rec).PK)); s.isRecent(id) && s.add(id, nil) {
						placed = append(placed, id)
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	s.discoveredUntil = now
	return placed, nil
}

// namedProducts returns the products in a record of an order: the product of a line item, or all
// products in the record's list of line items.
func namedProducts(rec model.Record) (skus []commerce.SKU) {
	if e := model.EntityOf(model.KeyOf(rec)); e != nil && e.Name == model.EntityOrderItem.Name {
		return []commerce.SKU{commerce.SKU(model.FirstPlaceholderValue(e.SK, model.TextOf(rec, model.AttrSK)))}
	}
	if l, ok := rec["items"].(*types.AttributeValueMemberL); ok {
		for _, e := range l.Value {
			if m, ok := e.(*types.AttributeValueMemberM); ok {
				skus = append(skus, commerce.SKU(model.TextOf(m.Value, "productId")))
			}
		}
	}
	return skus
}

// totalOf returns the total of an order with the given line items, in its currency.
//
// If the total has more digits than an amount can have, totalOf returns an error.
func totalOf(o commerce.Order, lines []commerce.LineItem) (commerce.Money, error) {
	total := commerce.Money{Currency: o.Total.Currency}
	for _, line := range lines {
		line.UnitPrice.Currency = total.Currency
		subtotal, err := line.Subtotal()
		if err != nil {
			return total, err
		}
		if total, err = total.Plus(subtotal); err != nil {
			return total, err
		}
	}
	return o.TotalOf(total)
}
