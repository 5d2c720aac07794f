package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// orderUnit is an order's item collection, and the copies of the order in customers' partitions.
type orderUnit struct {
	selfContained
	id            commerce.OrderID
	main          model.Record
	items, events []model.Record
	// copies are those that were found, by customer.
	copies map[commerce.CustomerID]model.Record
	// hints are customers who may have a copy besides the one whom the order names.
	hints map[commerce.CustomerID]bool

	// truth is what judge came to: the order with its customer, and lines with all items where they
	// are known; nil where there is no order or it cannot be read.
	truth *commerce.Order
	lines []commerce.LineItem
	known bool
	// lastOwn is when the last event with a position happened.
	lastOwn time.Time
	// again reports that what the order holds may have been summed before.
	again bool
}

func (u *orderUnit) key(t *table.Table) model.Keys { return model.OrderByID.Key(t.KeyBuilder(), u.id) }

func (u *orderUnit) add(e *model.Entity, rec model.Record) {
	switch e.Name {
	case model.EntityOrder.Name:
		u.main = rec
	case model.EntityOrderItem.Name:
		u.items = append(u.items, rec)
	case model.EntityOrderEvent.Name:
		u.events = append(u.events, rec)
	}
}

func (u *orderUnit) read(ctx context.Context, c *check) error {
	u.main, u.items, u.events, u.copies = nil, nil, nil, map[commerce.CustomerID]model.Record{}
	b := c.table.KeyBuilder()
	partition := model.OrderByID.Key(b, u.id).PK
	if b.Err != nil {
		return b.Err
	}
	if err := c.client.Collection(ctx, model.OrderCollection, partition, u.add); err != nil {
		return err
	}
	ks := make([]model.Keys, 0, 2)
	for _, id := range u.candidates() {
		ks = append(ks, u.copyKey(c.table, id))
	}
	found, err := c.client.Get(ctx, repair.Consistent, ks...)
	if err != nil {
		return err
	}
	u.addCopies(found)
	return nil
}

// addCopies takes the copies of this order out of what was found.
func (u *orderUnit) addCopies(found map[model.Keys]model.Record) {
	for k, rec := range found {
		u.copies[commerce.CustomerID(model.KeyValue(model.EntityCustomerOrder.PK, k.PK))] = rec
	}
}

// candidates are the customers in whose partitions a copy may be, the one whom the order names
// first.
func (u *orderUnit) candidates() []commerce.CustomerID {
	ids := []commerce.CustomerID{u.named()}
	ids = append(ids, slices.Sorted(maps.Keys(u.hints))...)
	for _, item := range u.items {
		at := model.Reader{Record: item}
		ids = append(ids, commerce.CustomerID(at.Text("customerId")))
	}
	return ids
}

// named is the customer whom the order's own record names; empty where it names none.
func (u *orderUnit) named() commerce.CustomerID {
	at := model.Reader{Record: u.main}
	return commerce.CustomerID(at.Text("customerId"))
}

// copyKey is the key of a customer's copy; empty where there can be none.
func (u *orderUnit) copyKey(t *table.Table, id commerce.CustomerID) model.Keys {
	b := t.KeyBuilder()
	k := model.CustomerOrderKeys(b, model.CustomerOrderKey{Customer: id, Order: u.id})
	if b.Err != nil {
		return model.Keys{}
	}
	return k
}

// orderHeader is what one of the records of an order says, without the items, and the items that it
// carries.
type orderHeader struct {
	record model.Record
	order  *commerce.Order
	err    error
	lines  []commerce.LineItem
	listed bool
}

// header reads what can be read of one of the records of an order, taking the ids from its key.
func (u *orderUnit) header(v *repair.Verdict, e *model.Entity, rec model.Record, customer commerce.CustomerID) orderHeader {
	if rec == nil {
		return orderHeader{}
	}
	read := v.Legible(e, rec)
	plain := repair.WithKey(read, map[string]string{"orderId": string(u.id), "customerId": string(customer)})
	delete(plain, "items")
	if at := (model.Reader{Record: read}); !at.Has("currency") && len(u.items) > 0 {
		// Whoever left it out on the order may have written it on the items.
		item := model.Reader{Record: u.items[0]}
		plain["currency"] = model.Str(string(item.Currency(v.Table.Currency)))
	}
	h := orderHeader{record: rec}
	h.order, h.err = v.Table.DecodeOrder(model.Reader{Record: plain})
	if h.err == nil && customer == "" {
		h.err = fmt.Errorf("%w: attribute %q is missing", model.ErrCorrupt, "customerId")
	}
	if placed, err := time.Parse(time.RFC3339, model.TextOf(read, "createdAt")); err == nil {
		h.order.PlacedAt = placed
	}
	if read["items"] != nil {
		lines, err := repair.DecodeLines(read["items"], h.order.Total.Currency)
		h.lines, h.listed = lines, err == nil && !v.Left(e, model.KeyOf(rec), "items")
	}
	return h
}

func (h orderHeader) readable() bool { return h.record != nil && h.err == nil }

// customer tells whose the order is. An order's customer never changes, so where the customer whom
// the order names has no copy and no item names that customer either, another who has a copy is the
// right one. A copy that is older than the order's own record, or names the same customer as that,
// is none: it was left behind.
func (u *orderUnit) customer(v *repair.Verdict) commerce.CustomerID {
	named := u.named()
	if u.copies[named] != nil {
		return named
	}
	onItems := u.onItems()
	if named != "" && onItems[named] {
		return named
	}
	own := u.header(v, &model.EntityOrder, u.main, named)
	// The items decide between copies of one version.
	best, version, onBest := commerce.CustomerID(""), -1, false
	for _, id := range slices.Sorted(maps.Keys(u.copies)) {
		n := 0
		if h := u.header(v, &model.EntityCustomerOrder, u.copies[id], id); h.readable() {
			n = h.order.Version + 1
		}
		if own.readable() && (n <= own.order.Version || updatedAt(u.copies[id]).Before(updatedAt(u.main)) ||
			model.TextOf(u.copies[id], model.AttrCustomerID) == string(named)) {
			continue
		}
		if n > version || n == version && onItems[id] && !onBest {
			best, version, onBest = id, n, onItems[id]
		}
	}
	if best == "" {
		return named
	}
	return best
}

func (u *orderUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	b := c.table.KeyBuilder()
	u.truth, u.lines, u.known, u.lastOwn = nil, nil, false, time.Time{}
	customer := u.customer(v)
	copied := u.copies[customer]
	own, theirs := u.header(v, &model.EntityOrder, u.main, customer), u.header(v, &model.EntityCustomerOrder, copied, customer)
	v.Basis, v.Believed = model.OrderByID.Key(b, u.id), u.main
	truth, other := own, theirs
	if theirs.readable() && (!own.readable() || theirs.order.Version > own.order.Version) {
		truth, other = theirs, own
		v.Basis, v.Believed = model.KeyOf(copied), copied
	}
	switch {
	case u.main == nil && copied == nil:
		for _, item := range u.items {
			v.Orphan(repair.DriftOrphanItem, item, "the order does not exist")
		}
		for _, event := range u.events {
			v.Orphan(repair.DriftOrphanEvent, event, "the order does not exist")
		}
		return v
	case !truth.readable():
		for _, h := range []orderHeader{own, theirs} {
			if h.err != nil {
				v.Unreadable(model.KeyOf(h.record), h.err)
			}
		}
		return v
	}
	v.Source = model.KeyOf(truth.record)
	o := *truth.order
	o.CustomerID = customer
	if o.AccountRepID == "" {
		o.AccountRepID = commerce.EmployeeID(model.IndexValueOf(&model.EntityCustomerOrder, copied))
	}
	u.truth = &o
	u.judgeItems(v, b, o, truth, other)
	for _, id := range slices.Sorted(maps.Keys(u.copies)) {
		if id != customer && !v.Left(&model.EntityOrder, model.OrderByID.Key(b, u.id), model.AttrCustomerID) {
			v.Orphan(repair.DriftOrphanCopy, u.copies[id], fmt.Sprintf("the order is customer %s's", customer))
		}
	}
	u.judgeTimeline(v, o)
	return v
}

// judgeItems finds what is wrong with the order's two records and its items.
func (u *orderUnit) judgeItems(v *repair.Verdict, b *model.KeyBuilder, o commerce.Order, truth, other orderHeader) {
	u.lines, u.known = u.believedLines(v, o, truth, other)
	if u.known {
		if total, err := counting.Total(u.lines, o.Total.Currency); err == nil {
			o.Total = total
			u.truth.Total = total
		}
	}
	wanted := model.OrderRecords(b, o, u.lines, nil)
	if b.Err != nil {
		v.Unreadable(model.OrderByID.Key(&model.KeyBuilder{Shards: b.Shards}, u.id), b.Err)
		u.truth = nil
		return
	}
	main, copied, items := wanted[0], wanted[1], wanted[2:]
	if !u.known {
		// What follows from the items is left as it is.
		keep(main, u.main, "items", "itemCount")
		keep(copied, u.copies[o.CustomerID], "items", "itemCount")
	}
	if u.main == nil {
		v.Absent(repair.DriftOrderMissing, main, truth.record, fmt.Sprintf("the order stands in the partition of customer %s only", o.CustomerID))
	} else {
		v.Compare(&model.EntityOrder, u.main, main, repair.DriftOrderDiffers)
	}
	if have := u.copies[o.CustomerID]; have == nil {
		v.Absent(repair.DriftCopyMissing, copied, truth.record, "the order exists, the copy in its customer's partition does not")
	} else {
		v.Compare(&model.EntityCustomerOrder, have, copied, repair.DriftOrderDiffers)
	}
	if !u.known {
		return
	}
	have := map[model.Keys]model.Record{}
	for _, item := range u.items {
		have[model.KeyOf(item)] = item
	}
	for _, want := range items {
		k := model.KeyOf(want)
		if have[k] == nil {
			v.Absent(repair.DriftItemMissing, want, nil, "the order's list and its total have it")
		} else {
			v.Compare(&model.EntityOrderItem, have[k], want, repair.DriftItemDiffers)
		}
		delete(have, k)
	}
	for _, item := range u.items {
		if have[model.KeyOf(item)] != nil {
			v.Orphan(repair.DriftOrphanItem, item, "neither the order's list nor its total has it")
		}
	}
}

// keep makes attributes of want those of have.
func keep(want, have model.Record, names ...string) {
	for _, name := range names {
		if delete(want, name); have[name] != nil {
			want[name] = have[name]
		}
	}
}

// believedLines are all items of an order. The items' records are believed, except where the total
// adds up with the list on the order and not with them, or where there are none. It tells false,
// after it found what cannot be read, where nothing tells what the items are.
func (u *orderUnit) believedLines(v *repair.Verdict, o commerce.Order, truth, other orderHeader) ([]commerce.LineItem, bool) {
	var lines []commerce.LineItem
	problems := map[model.Keys]error{}
	for _, item := range u.items {
		named := map[string]string{"productId": model.KeyValue(model.EntityOrderItem.SK, model.TextOf(item, model.AttrSK))}
		line, err := model.DecodeLine(model.Reader{Record: repair.WithKey(v.Legible(&model.EntityOrderItem, item), named)}, o.Total.Currency)
		if err != nil {
			problems[model.KeyOf(item)] = err
			continue
		}
		line.OrderID, line.CustomerID = u.id, o.CustomerID
		lines = append(lines, line)
	}
	whole := len(problems) == 0
	addsUp := func(lines []commerce.LineItem) bool {
		sum, err := counting.Total(lines, o.Total.Currency)
		return err == nil && repair.SameMoney(sum, o.Total)
	}
	for _, h := range []orderHeader{truth, other} {
		if !h.listed || len(h.lines) == 0 || h.lines[0].UnitPrice.Currency != o.Total.Currency {
			continue
		}
		// Something free of charge changes no total, but the number of items tells.
		counted := o.ItemCount != nil && len(h.lines) == *o.ItemCount && len(lines) != *o.ItemCount
		if addsUp(h.lines) && (!whole || !addsUp(lines) || counted) || len(u.items) == 0 {
			// With some of the items' records, nothing would tell that the list was right.
			v.AtOnce = len(u.items) == 0 && !addsUp(h.lines)
			return model.BySKU(h.lines), true
		}
	}
	switch {
	case !whole:
		for _, item := range u.items {
			if err := problems[model.KeyOf(item)]; err != nil {
				v.Unreadable(model.KeyOf(item), err)
			}
		}
		return nil, false
	case (v.Left(&model.EntityOrder, model.KeyOf(truth.record), "items") || v.Left(&model.EntityOrder, model.KeyOf(other.record), "items")) && (len(lines) == 0 || !addsUp(lines)):
		return nil, false // the list that cannot be read may tell
	case len(lines) == 0 && !o.Total.Amount.IsZero():
		v.Find(repair.DriftUnreadable, model.OrderByID.Key(v.Table.KeyBuilder(), u.id), fmt.Sprintf("the order has no items, and a total of %s", o.Total.Decimal()), repair.ByHand)
		return nil, false
	}
	return lines, true
}

// judgeTimeline finds events that are wrong, and timelines that do not lead to the order's status.
// An event without a position may have happened at any time, so one that leads to the status is
// enough.
func (u *orderUnit) judgeTimeline(v *repair.Verdict, o commerce.Order) {
	b := v.Table.KeyBuilder()
	var last, lastTo *commerce.Event
	certain, led := true, false
	for _, rec := range u.events {
		id := commerce.EventID(model.KeyValue(model.EntityOrderEvent.SK, model.TextOf(rec, model.AttrSK)))
		plain := repair.WithKey(v.Legible(&model.EntityOrderEvent, rec), map[string]string{"eventId": string(id), "orderId": string(u.id)})
		event, err := model.DecodeEvent(model.Reader{Record: plain})
		if err != nil {
			v.Unreadable(model.KeyOf(rec), err)
			certain = false
			continue
		}
		v.Compare(&model.EntityOrderEvent, rec, model.EventRecord(b, *event), repair.DriftKeyAttribute)
		if v.Table.Position(event.ID) == "" {
			led = led || event.To == o.Status
			continue
		}
		last = event
		if model.IsOwnEvent(rec) {
			u.lastOwn, _ = event.ID.Time()
		}
		switch {
		case event.To != 0:
			lastTo, certain = event, true
		case v.Left(&model.EntityOrderEvent, model.KeyOf(rec), "to"):
			certain = false
		}
	}
	u.judgeUpdatedAt(v, o)
	if !certain || led || lastTo != nil && lastTo.To == o.Status {
		return
	}
	event := &commerce.Event{OrderID: u.id, Type: commerce.EventImported, To: o.Status, Actor: repair.CheckActor, Note: "the timeline did not lead to the order's status"}
	detail := fmt.Sprintf("no event leads to a status, the order is %s", o.Status)
	if len(u.events) > 0 {
		detail = fmt.Sprintf("no event leads to %s, which the order is", o.Status)
	}
	if lastTo != nil {
		event.From = lastTo.To
		detail = fmt.Sprintf("the last event leads to %s, the order is %s", lastTo.To, o.Status)
	}
	if last != nil {
		event.ID, event.At = last.ID, last.At
	}
	v.Find(repair.DriftTimeline, model.OrderByID.Key(b, u.id), detail, repair.ByRepair)
	v.Fixes = append(v.Fixes, repair.Fix{Event: event, Customer: o.CustomerID})
	u.dateWithEvent(v, o)
}

// judgeUpdatedAt finds an order that was updated before its last event, and dates both of its
// records.
func (u *orderUnit) judgeUpdatedAt(v *repair.Verdict, o commerce.Order) {
	updated := updatedAt(v.Believed)
	if updated.IsZero() || !updated.Before(u.lastOwn) {
		return
	}
	v.Find(repair.DriftUpdatedAt, v.Basis, fmt.Sprintf("it was updated at %s, and its last event happened at %s", model.Timestamp(updated), model.Timestamp(u.lastOwn)), repair.ByRepair)
	for _, r := range u.headerRecords(v.Table, o) {
		if v.Left(r.e, r.key, "updatedAt") {
			continue
		}
		if w := fixOf(v, r); w != nil {
			w.Attribute("updatedAt", model.Str(model.Timestamp(u.lastOwn)))
		}
	}
}

// headerRecord is one of the two records of an order, as it was read; nil where there is none.
type headerRecord struct {
	e   *model.Entity
	key model.Keys
	rec model.Record
}

func (u *orderUnit) headerRecords(t *table.Table, o commerce.Order) []headerRecord {
	return []headerRecord{
		{&model.EntityOrder, model.OrderByID.Key(t.KeyBuilder(), u.id), u.main},
		{&model.EntityCustomerOrder, u.copyKey(t, o.CustomerID), u.copies[o.CustomerID]},
	}
}

// fixOf returns the fix of a record, a new one where there is none yet; nil where there is no
// record and none is written.
func fixOf(v *repair.Verdict, r headerRecord) *repair.Fix {
	i := slices.IndexFunc(v.Fixes, func(w repair.Fix) bool { return w.Event == nil && w.Key == r.key })
	switch {
	case i < 0 && r.rec == nil:
		return nil
	case i < 0:
		i = len(v.Fixes)
		v.Fixes = append(v.Fixes, repair.Fix{Key: r.key, Have: r.rec, Set: model.Record{}})
	}
	return &v.Fixes[i]
}

// dateWithEvent makes both records of the order tell of the event that is appended, as every change
// does that writes one: who comes back to a customer's orders reads the timelines of those that
// were changed since.
func (u *orderUnit) dateWithEvent(v *repair.Verdict, o commerce.Order) {
	for _, r := range u.headerRecords(v.Table, o) {
		dated, versioned := !v.Left(r.e, r.key, "updatedAt"), !v.Left(r.e, r.key, model.AttrVersion)
		if !dated && !versioned {
			continue
		}
		w := fixOf(v, r)
		if w == nil {
			continue
		}
		w.Dated = dated
		if versioned {
			w.Attribute(model.AttrVersion, model.Num(o.Version+1))
		}
	}
}

// rooted reports whether the order's own record was read, and the copy of the customer whom it
// names or an item that names the same customer. Otherwise the copy may be in any partition.
func (u *orderUnit) rooted() bool {
	named := u.named()
	return named != "" && (u.copies[named] != nil || u.onItems()[named])
}

// onItems returns the customers whom the order's items name.
func (u *orderUnit) onItems() map[commerce.CustomerID]bool {
	customers := map[commerce.CustomerID]bool{}
	for _, item := range u.items {
		customers[commerce.CustomerID(model.TextOf(item, model.AttrCustomerID))] = true
	}
	return customers
}

// settled tells the check what else follows from the order: what it holds of the stock, and whose
// number of orders may have changed.
func (u *orderUnit) settled(c *check, v, last *repair.Verdict) {
	u.tellStatus(c, v, last)
	if !v.Clean() {
		c.lists.Changed(u.skus(), append(slices.Collect(maps.Values(u.copies)), u.main), !last.Clean())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !v.Clean() && c.opts.Repair && u.named() != "" {
		c.suspectLocked(unitKey{unitCustomer, string(u.named())}, suspicion{}) // what the order costs may have changed
	}
	if !last.Clean() {
		c.drifted[u.named()] = true
		for id := range u.copies {
			c.drifted[id] = true
		}
	}
	held, known := u.holds(v)
	if !known {
		c.uncertainLocked(u)
		c.unread[u.named()] = true
	}
	for sku, quantity := range held {
		if u.again {
			c.suspectLocked(unitKey{unitProduct, string(sku)}, suspicion{recount: true})
		} else {
			c.held[sku] += quantity
		}
	}
	if !last.Clean() && u.misleads(c.table, held, last) {
		c.misleading[u.id] = u.hints
	}
	if u.truth == nil {
		return
	}
	for _, class := range []struct {
		name string
		more int
	}{{repair.DriftCopyMissing, 1}, {repair.DriftOrphanCopy, -1}} {
		for _, f := range v.Findings {
			if f.Class != class.name {
				continue
			}
			id := commerce.CustomerID(model.KeyValue(model.EntityCustomerOrder.PK, f.Key.PK))
			if last.HasAt(f.Class, f.Key) { // whatever else is left of the order
				c.ordersToCome[id] += class.more
			}
			c.suspectLocked(unitKey{unitCustomer, string(id)}, suspicion{needed: class.more > 0})
		}
	}
}

// tellStatus tells the check of an order that the scan has not counted by its status, and of one
// whose own record does not tell the status.
func (u *orderUnit) tellStatus(c *check, v, last *repair.Verdict) {
	if v.Has(repair.DriftOrderMissing) {
		c.orders.Add(u.id, nil, false)
	}
	if status, _ := counting.StatusOf(u.main); u.truth == nil || u.truth.Status == status || last.Clean() {
		return
	}
	c.orders.AddDrifted(u.id, func(ctx context.Context) (commerce.Status, error) {
		again := &orderUnit{id: u.id, hints: u.hints}
		if err := again.read(ctx, c); err != nil {
			return 0, err
		}
		if again.judge(c); again.truth == nil {
			return 0, nil
		}
		return again.truth.Status, nil
	})
}

// holds returns what the order holds, as judge found with verdict v. known is false if the order
// may hold something, and cannot be read.
func (u *orderUnit) holds(v *repair.Verdict) (held counting.Holding, known bool) {
	switch {
	case u.truth != nil && !u.truth.Status.Reserves():
		return nil, true
	case u.truth != nil && u.known:
		return counting.LinesHolding(u.lines), true
	}
	return nil, !v.Has(repair.DriftUnreadable)
}

// misleads reports whether a recount, which believes the index and the order's own record, would
// not come to held. v is what is wrong with the order.
func (u *orderUnit) misleads(t *table.Table, held counting.Holding, v *repair.Verdict) bool {
	told, listed := counting.ListedHolding(t, u.main)
	if !listed {
		told = counting.ItemsHolding(u.items)
	}
	return !maps.Equal(told, held) || len(held) > 0 && v.HasAt(repair.DriftIndexKeys, u.key(t))
}

// skus are the products of the order, as far as anything tells.
func (u *orderUnit) skus() []commerce.SKU {
	var all []commerce.SKU
	for _, item := range u.items {
		all = append(all, commerce.SKU(model.KeyValue(model.EntityOrderItem.SK, model.TextOf(item, model.AttrSK))))
	}
	for _, rec := range append([]model.Record{u.main}, slices.Collect(maps.Values(u.copies))...) {
		all = append(all, counting.ListedProducts(rec)...)
	}
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
