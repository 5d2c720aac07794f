package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/govalues/decimal"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// orderVerifier verifies an order's partition, and the copies of the order in other partitions.
type orderVerifier struct {
	baseVerifier
	id            commerce.OrderID
	orderRecord   model.Record
	items, events []model.Record
	// others contains the order's payments, returns and fulfillments.
	others recordsWithEdges
	// edges contains the edges of the order itself.
	edges recordWithEdges
	// copies maps a customer to the copy of the order in the customer's partition.
	copies  map[commerce.CustomerID]model.Record
	earlier []model.Record // the records of all earlier reads, before a repair changed them
	// extraCustomers may have a copy of the order, although the order does not name them.
	extraCustomers map[commerce.CustomerID]bool

	// verify sets decoded, lines and linesKnown. decoded is the order with the right customer, or nil
	// if it is missing or unreadable. linesKnown reports whether lines is complete.
	decoded    *commerce.Order
	lines      []commerce.LineItem
	linesKnown bool
	// lastEventAt is the time of the last event that Ordergraph wrote.
	lastEventAt time.Time
	// mayBeCounted reports whether check.numbers may already include the order.
	mayBeCounted bool
}

func (v *orderVerifier) key(t *table.Table) model.Keys {
	return model.OrderByID.Key(t.KeyBuilder(), v.id)
}

func (v *orderVerifier) addRecord(e *model.Entity, rec model.Record) {
	switch e.Name {
	case model.EntityOrder.Name:
		v.orderRecord = rec
	case model.EntityOrderItem.Name:
		v.items = append(v.items, rec)
	case model.EntityOrderEvent.Name:
		v.events = append(v.events, rec)
	default:
		if e.IsEdge() && e.Of == &model.EntityOrder {
			v.edges.put(rec)
			return
		}
		v.others.add(e, rec)
	}
}

func (v *orderVerifier) read(ctx context.Context, c *check) error {
	v.earlier = append(v.earlier, v.records()...)
	v.orderRecord, v.items, v.events, v.copies, v.others = nil, nil, nil, map[commerce.CustomerID]model.Record{}, recordsWithEdges{}
	v.edges = edgesOfOrder(v.id)
	b := c.table.KeyBuilder()
	partition := model.OrderByID.Key(b, v.id).PK
	if b.Err != nil {
		return b.Err
	}
	if err := c.client.readItemCollection(ctx, model.OrderCollection, partition, v.addRecord); err != nil {
		return err
	}
	ks := make([]model.Keys, 0, 2)
	for _, id := range v.possibleCustomers() {
		ks = append(ks, v.copyKey(c.table, id))
	}
	found, err := c.client.get(ctx, consistent, ks...)
	if err != nil {
		return err
	}
	v.addCopies(found)
	return nil
}

func (v *orderVerifier) addCopies(found map[model.Keys]model.Record) {
	for k, rec := range found {
		v.copies[commerce.CustomerID(model.FirstPlaceholderValue(model.EntityCustomerOrder.PK, k.PK))] = rec
	}
}

// possibleCustomers returns the customers who may have a copy, starting with namedCustomer.
func (v *orderVerifier) possibleCustomers() []commerce.CustomerID {
	ids := []commerce.CustomerID{v.namedCustomer()}
	ids = append(ids, slices.Sorted(maps.Keys(v.extraCustomers))...)
	for _, item := range v.items {
		at := model.Reader{Record: item}
		ids = append(ids, commerce.CustomerID(at.Text("customerId")))
	}
	return ids
}

// namedCustomer returns the customer that the order's own record names, or an empty ID.
func (v *orderVerifier) namedCustomer() commerce.CustomerID {
	at := model.Reader{Record: v.orderRecord}
	return commerce.CustomerID(at.Text("customerId"))
}

// copyKey returns the key of a customer's copy, or an empty key if an ID is not valid in a key.
func (v *orderVerifier) copyKey(t *table.Table, id commerce.CustomerID) model.Keys {
	b := t.KeyBuilder()
	k := model.KeysOfCustomerOrder(b, model.CustomerOrderKey{Customer: id, Order: v.id})
	if b.Err != nil {
		return model.Keys{}
	}
	return k
}

// orderHeader is a decoded record: the order's own record or its copy in a customer's partition.
type orderHeader struct {
	record model.Record
	order  *commerce.Order
	err    error
	// listedLines are the line items that the record embeds.
	listedLines []commerce.LineItem
	// hasList reports whether the record embeds line items and all of them are readable.
	hasList bool
}

// decodeHeader decodes the readable attributes of rec, which is the order's own record or its copy.
// The decoded order has the IDs v.id and customer, even if rec contains other IDs.
func (v *orderVerifier) decodeHeader(diag *diagnosis, e *model.Entity, rec model.Record, customer commerce.CustomerID) orderHeader {
	if rec == nil {
		return orderHeader{}
	}
	read := diag.withoutUnreadable(e, rec)
	plain := withKeyAttributes(read, map[string]string{"orderId": string(v.id), "customerId": string(customer)})
	delete(plain, "items")
	if at := (model.Reader{Record: read}); !at.Has("currency") && len(v.items) > 0 {
		// Records written by other software may contain the currency only in the items.
		item := model.Reader{Record: v.items[0]}
		plain["currency"] = model.Str(string(item.Currency(diag.table.Currency)))
	}
	h := orderHeader{record: rec}
	h.order, h.err = diag.table.DecodeOrder(model.Reader{Record: plain})
	if h.err == nil && customer == "" {
		h.err = fmt.Errorf("%w: attribute %q is missing", model.ErrCorrupt, "customerId")
	}
	if placed, err := time.Parse(time.RFC3339, model.TextOf(read, "createdAt")); err == nil {
		h.order.PlacedAt = placed
	}
	if read["items"] != nil {
		lines, err := decodeLines(read["items"], h.order.Total.Currency)
		h.listedLines, h.hasList = lines, err == nil && !diag.mustLeaveUnchanged(e, model.KeyOf(rec), "items")
	}
	return h
}

func (h orderHeader) readable() bool { return h.record != nil && h.err == nil }

// owner returns the customer to whom the order belongs. This is the customer in the order's own
// record, if this customer has a copy of the order or an item names the same customer. Otherwise,
// the newest record determines the owner: the order's own record or the copy with the highest
// version.
func (v *orderVerifier) owner(diag *diagnosis) commerce.CustomerID {
	named := v.namedCustomer()
	if v.copies[named] != nil {
		return named
	}
	onItems := v.itemCustomers()
	if named != "" && onItems[named] {
		return named
	}
	ownHeader := v.decodeHeader(diag, &model.EntityOrder, v.orderRecord, named)
	// If several copies have the highest version, choose the customer that the items name.
	best, version, onBest := commerce.CustomerID(""), -1, false
	for _, id := range slices.Sorted(maps.Keys(v.copies)) {
		n := 0
		if h := v.decodeHeader(diag, &model.EntityCustomerOrder, v.copies[id], id); h.readable() {
			n = h.order.Version + 1
		}
		// If the own record is readable, ignore older copies, and copies with the same customer.
		if ownHeader.readable() && (n <= ownHeader.order.Version || updatedAt(v.copies[id]).Before(updatedAt(v.orderRecord)) ||
			model.TextOf(v.copies[id], model.AttrCustomerID) == string(named)) {
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

func (v *orderVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	b := c.table.KeyBuilder()
	v.decoded, v.lines, v.linesKnown, v.lastEventAt = nil, nil, false, time.Time{}
	customer := v.owner(diag)
	copied := v.copies[customer]
	ownHeader, copyHeader := v.decodeHeader(diag, &model.EntityOrder, v.orderRecord, customer), v.decodeHeader(diag, &model.EntityCustomerOrder, copied, customer)
	diag.trustedKey, diag.trusted = model.OrderByID.Key(b, v.id), v.orderRecord
	trusted, other := ownHeader, copyHeader
	if copyHeader.readable() && (!ownHeader.readable() || copyHeader.order.Version > ownHeader.order.Version) {
		trusted, other = copyHeader, ownHeader
		diag.trustedKey, diag.trusted = model.KeyOf(copied), copied
	}
	switch {
	case v.orderRecord == nil && copied == nil:
		for _, item := range v.items {
			diag.addOrphan(kindOrphanItem, item, "the order does not exist")
		}
		for _, event := range v.events {
			diag.addOrphan(kindOrphanEvent, event, "the order does not exist")
		}
		for _, k := range sortedKeys(v.others) {
			kind := kindOrphanPayment
			switch model.EntityOf(k) {
			case &model.EntityReturn:
				kind = kindOrphanReturn
			case &model.EntityFulfillment:
				kind = kindOrphanFulfillment
			}
			diag.addFinding(kind, k, "the order does not exist", remedyManual)
		}
		v.edges.verifyEdges(diag, nil)
		return diag
	case !trusted.readable():
		for _, h := range []orderHeader{ownHeader, copyHeader} {
			if h.err != nil {
				diag.addUnreadable(model.KeyOf(h.record), h.err)
			}
		}
		return diag
	}
	diag.source = model.KeyOf(trusted.record)
	o := *trusted.order
	o.CustomerID = customer
	if o.AccountRepID == "" {
		o.AccountRepID = commerce.EmployeeID(model.IndexValueOf(&model.EntityCustomerOrder, copied))
	}
	diag.erased = o.Erased
	payments, paymentsKnown := v.verifyPayments(diag, &o)
	v.verifyFulfillments(diag, &o)
	v.decoded = &o
	v.verifyItems(diag, b, o, trusted, other)
	for _, id := range slices.Sorted(maps.Keys(v.copies)) {
		if id != customer && !diag.mustLeaveUnchanged(&model.EntityOrder, model.OrderByID.Key(b, v.id), model.AttrCustomerID) {
			diag.addOrphan(kindOrphanOrderCopy, v.copies[id], fmt.Sprintf("the order belongs to customer %s", customer))
		}
	}
	v.verifyTimeline(diag, o)
	v.verifyOthers(diag, o, payments, paymentsKnown)
	return diag
}

// verifyOthers verifies the order's payments and returns. If known is true, payments are all payments.
func (v *orderVerifier) verifyOthers(diag *diagnosis, o commerce.Order, payments []commerce.Payment, known bool) {
	refunds := derive.Totals{Only: []*model.Entity{&model.EntityReturn}}
	for _, p := range payments {
		refunds.Add(&p)
	}
	refunded := map[model.Keys]model.Record{}
	for _, d := range refunds.Deltas {
		k := d.Key(diag.table.KeyBuilder())
		if refunded[k] = d.Numbers(); v.others[k] == nil {
			diag.addFinding(kindReturnMissing, k, "a refund names the return, but it does not exist", remedyManual)
		}
	}
	for _, r := range v.others.sorted() {
		want := model.Record{}
		if stored := r.record(); r.entity == &model.EntityReturn && known {
			if want.Merge(refunded[r.primaryKey]); stored[model.AttrRefunded] != nil && want[model.AttrRefunded] == nil {
				want[model.AttrRefunded] = model.Num(0)
			}
		}
		if decoded, err := decode(diag, r, r.primaryKey, diag.table.DecodeReturn); r.entity == &model.EntityReturn && err == nil && v.linesKnown {
			o.Items = v.lines
			if paid, err := o.PaidFor(*decoded); err == nil {
				want["amount"], want["currency"] = model.AmountValue(paid), model.Str(string(paid.Currency))
			}
		}
		r.verify(diag, want)
	}
}

// verifyPayments verifies the order's payments, and sets the sums of the order to what they contribute. It
// returns the payments. If one of them cannot be read, it returns false, and the stored sums stay.
func (v *orderVerifier) verifyPayments(diag *diagnosis, o *commerce.Order) (payments []commerce.Payment, known bool) {
	for _, r := range v.others.sorted() {
		if r.entity != &model.EntityPayment {
			continue
		}
		p, err := decode(diag, r, r.primaryKey, diag.table.DecodePayment)
		if err != nil {
			return nil, false // verify reports the payment
		}
		if p.Amount.Currency != o.Total.Currency {
			diag.addFinding(kindInvalidValue, r.primaryKey, fmt.Sprintf("the currency is %s, but the currency of the order is %s", p.Amount.Currency, o.Total.Currency), remedyManual)
			return nil, false
		}
		payments = append(payments, *p)
	}
	totals, err := derive.PaymentTotals(nil, o.Total.Currency, payments...)
	switch {
	case len(payments) == 0:
		o.PaymentTotals = nil
	case err == nil:
		o.PaymentTotals = totals
	}
	return payments, true
}

// verifyFulfillments sets the sums of the order to what its fulfillments contribute. If one of them cannot be
// read, the stored sums stay.
func (v *orderVerifier) verifyFulfillments(diag *diagnosis, o *commerce.Order) {
	var all []derive.Change
	for _, r := range v.others.sorted() {
		if r.entity != &model.EntityFulfillment {
			continue
		}
		f, err := decode(diag, r, r.primaryKey, diag.table.DecodeFulfillment)
		if err != nil {
			return // verify reports the fulfillment
		}
		all = append(all, derive.Change{After: f})
	}
	o.Fulfilled = derive.FulfillmentTotals(nil, all...)
}

// verifyItems verifies the order's own record, the customer's copy and the item records.
func (v *orderVerifier) verifyItems(diag *diagnosis, b *model.KeyBuilder, o commerce.Order, trusted, other orderHeader) {
	v.lines, v.linesKnown = v.chooseLines(diag, o, trusted, other)
	if v.linesKnown && !diag.mustLeaveUnchanged(&model.EntityOrder, diag.trustedKey, model.AttrAdjustments) {
		if total, err := totalOf(o, v.lines); err == nil {
			o.Total = total
			v.decoded.Total = total
		}
	}
	if o.Erased {
		o.Items = v.lines
		model.Erase(&o)
		v.lines = o.Items
	}
	expected := model.OrderRecords(b, o, v.lines, nil)
	if b.Err != nil {
		diag.addUnreadable(model.OrderByID.Key(&model.KeyBuilder{Layout: b.Layout}, v.id), b.Err)
		v.decoded = nil
		return
	}
	main, copied := expected[0], expected[1]
	items := slices.DeleteFunc(slices.Clone(expected[2:]), func(r model.Record) bool { return model.EntityOf(model.KeyOf(r)) != &model.EntityOrderItem })
	if !v.linesKnown {
		// The items are unknown, so keep the stored attributes that derive from the items.
		copyAttributes(main, v.orderRecord, "items", "itemCount")
		copyAttributes(copied, v.copies[o.CustomerID], "items", "itemCount")
	}
	if v.orderRecord == nil {
		diag.addMissing(kindOrderMissing, main, trusted.record, fmt.Sprintf("the order's own record is missing, but customer %s has a copy of the order", o.CustomerID))
	} else {
		diag.compare(&model.EntityOrder, v.orderRecord, main, kindOrderCopyDiffers)
	}
	if have := v.copies[o.CustomerID]; have == nil {
		diag.addMissing(kindOrderCopyMissing, copied, trusted.record, "the order has no copy in its customer's partition")
	} else {
		diag.compare(&model.EntityCustomerOrder, have, copied, kindOrderCopyDiffers)
	}
	v.verifyOrderEdges(diag, expected)
	if !v.linesKnown {
		return
	}
	have := map[model.Keys]model.Record{}
	for _, item := range v.items {
		have[model.KeyOf(item)] = item
	}
	for _, want := range items {
		k := model.KeyOf(want)
		if have[k] == nil {
			diag.addMissing(kindItemMissing, want, nil, "the item's record is missing, but the order's item list and total include the item")
		} else {
			diag.compare(&model.EntityOrderItem, have[k], want, kindItemDiffers)
		}
		delete(have, k)
	}
	for _, item := range v.items {
		if have[model.KeyOf(item)] != nil {
			diag.addOrphan(kindOrphanItem, item, "the order's item list and total do not include the item")
		}
	}
}

// edgesOfOrder returns an order without records, to which its edges are added.
func edgesOfOrder(id commerce.OrderID) recordWithEdges {
	return newRecordWithEdges(&model.EntityOrder, map[string]string{"orderId": string(id)})
}

// verifyOrderEdges compares the edges of the order with the expected ones, which are among the records in
// expected.
func (v *orderVerifier) verifyOrderEdges(diag *diagnosis, expected []model.Record) {
	want := []model.Record{} // not nil, because the order exists
	for _, rec := range expected {
		if e := model.EntityOf(model.KeyOf(rec)); e != nil && e.IsEdge() {
			if !v.linesKnown {
				copyAttributes(rec, v.edges.records[model.KeyOf(rec)], "items", "itemCount")
			}
			want = append(want, rec)
		}
	}
	v.edges.verifyEdges(diag, want)
}

// copyAttributes copies the named attributes to want, and removes those that have lacks.
func copyAttributes(want, have model.Record, names ...string) {
	for _, name := range names {
		if delete(want, name); have[name] != nil {
			want[name] = have[name]
		}
	}
}

// chooseLines returns the order's line items, or false if they are unknown. Normally, it uses the
// item records. If no item record exists, or only the list in an order record matches the order's
// total and item count, it uses this list.
func (v *orderVerifier) chooseLines(diag *diagnosis, o commerce.Order, trusted, other orderHeader) ([]commerce.LineItem, bool) {
	var lines []commerce.LineItem
	problems := map[model.Keys]error{}
	for _, item := range v.items {
		named := map[string]string{"productId": model.FirstPlaceholderValue(model.EntityOrderItem.SK, model.TextOf(item, model.AttrSK))}
		line, err := model.DecodeEmbeddedItem(model.Reader{Record: withKeyAttributes(diag.withoutUnreadable(&model.EntityOrderItem, item), named)}, o.Total.Currency)
		if err != nil {
			problems[model.KeyOf(item)] = err
			continue
		}
		line.OrderID, line.CustomerID = v.id, o.CustomerID
		lines = append(lines, line)
	}
	complete := len(problems) == 0
	addsUp := func(lines []commerce.LineItem) bool {
		sum, err := totalOf(o, lines)
		return err == nil && sameMoney(sum, o.Total)
	}
	for _, h := range []orderHeader{trusted, other} {
		if !h.hasList || len(h.listedLines) == 0 || h.listedLines[0].UnitPrice.Currency != o.Total.Currency {
			continue
		}
		// Compare the number of items, too, because the loss of an item with a price of zero does not
		// change the total.
		counted := o.ItemCount != nil && len(h.listedLines) == *o.ItemCount && len(lines) != *o.ItemCount
		if addsUp(h.listedLines) && (!complete || !addsUp(lines) || counted) || len(v.items) == 0 {
			// Write all item records in one transaction. If only some were written, the next check would
			// trust this incomplete set of items.
			diag.singleTransaction = len(v.items) == 0 && !addsUp(h.listedLines)
			return model.SortBySKU(h.listedLines), true
		}
	}
	switch {
	case !complete:
		for _, item := range v.items {
			if err := problems[model.KeyOf(item)]; err != nil {
				diag.addUnreadable(model.KeyOf(item), err)
			}
		}
		return nil, false
	case (diag.mustLeaveUnchanged(&model.EntityOrder, model.KeyOf(trusted.record), "items") || diag.mustLeaveUnchanged(&model.EntityOrder, model.KeyOf(other.record), "items")) && (len(lines) == 0 || !addsUp(lines)):
		return nil, false // the items may be in the list, which is unreadable
	case len(lines) == 0 && !o.Total.Amount.IsZero():
		diag.addFinding(kindUnreadable, model.OrderByID.Key(diag.table.KeyBuilder(), v.id), fmt.Sprintf("the order has a total of %s, but no items", o.Total.Decimal()), remedyManual)
		return nil, false
	}
	return lines, true
}

// verifyTimeline reports invalid events of the order. The last status that an event sets must be
// the order's status. Otherwise, verifyTimeline also reports the order.
func (v *orderVerifier) verifyTimeline(diag *diagnosis, o commerce.Order) {
	b := diag.table.KeyBuilder()
	var last, lastTo *commerce.Event
	certain, statusSet := true, false
	for _, rec := range v.events {
		id := commerce.EventID(model.FirstPlaceholderValue(model.EntityOrderEvent.SK, model.TextOf(rec, model.AttrSK)))
		plain := withKeyAttributes(diag.withoutUnreadable(&model.EntityOrderEvent, rec), map[string]string{"eventId": string(id), "orderId": string(v.id)})
		event, err := model.DecodeEvent(model.Reader{Record: plain})
		if err != nil {
			diag.addUnreadable(model.KeyOf(rec), err)
			certain = false
			continue
		}
		if o.Erased {
			model.Erase(event)
		}
		want := model.EventRecord(b, *event)
		list := b.Derivations.Of(b.Derivations.EventList(event.To == 0))
		if at, ok := event.ID.Time(); rec[model.AttrIndexPK] == nil && (!ok || list.State != model.Readable || at.Before(list.Since) || !model.IsOrdergraphEvent(rec)) {
			delete(want, model.AttrIndexPK) // the table did not list such events then
			delete(want, model.AttrIndexSK)
		}
		diag.compare(&model.EntityOrderEvent, rec, want, kindKeyAttribute)
		if diag.table.EventPosition(event.ID) == "" {
			// Other software wrote this event. It may be the last event, because its position is unknown.
			statusSet = statusSet || event.To == o.Status
			continue
		}
		last = event
		if model.IsOrdergraphEvent(rec) {
			v.lastEventAt, _ = event.ID.Time()
		}
		switch {
		case event.To != 0:
			lastTo, certain = event, true
		case diag.mustLeaveUnchanged(&model.EntityOrderEvent, model.KeyOf(rec), "to"):
			certain = false
		}
	}
	v.verifyUpdatedAt(diag, o)
	if !certain || statusSet || lastTo != nil && lastTo.To == o.Status {
		return
	}
	event := &commerce.Event{OrderID: v.id, Type: commerce.EventImported, To: o.Status, Version: o.Version + 1, Actor: repairEventActor, Note: "the last event did not match the order's status"}
	if o.Erased {
		model.Erase(event)
	}
	detail := fmt.Sprintf("the order is %s, but no event sets a status", o.Status)
	if len(v.events) > 0 {
		detail = fmt.Sprintf("the order is %s, but no event sets that status", o.Status)
	}
	if lastTo != nil {
		event.From = lastTo.To
		detail = fmt.Sprintf("the last event sets %s, but the order is %s", lastTo.To, o.Status)
	}
	if last != nil {
		event.ID, event.At = last.ID, last.At
	}
	diag.addFinding(kindTimeline, model.OrderByID.Key(b, v.id), detail, remedyRepair)
	diag.fixes = append(diag.fixes, recordFix{event: event, customer: o.CustomerID})
	v.updateOrderForEvent(diag, o)
}

// verifyUpdatedAt reports and fixes an order whose updatedAt is earlier than its last event.
func (v *orderVerifier) verifyUpdatedAt(diag *diagnosis, o commerce.Order) {
	updated := updatedAt(diag.trusted)
	if updated.IsZero() || !updated.Before(v.lastEventAt) {
		return
	}
	diag.addFinding(kindUpdatedAt, diag.trustedKey, fmt.Sprintf("updatedAt is %s, but the last event happened at %s", model.Timestamp(updated), model.Timestamp(v.lastEventAt)), remedyRepair)
	for _, r := range v.headerRecords(diag.table, o) {
		if diag.mustLeaveUnchanged(r.entity, r.key, "updatedAt") {
			continue
		}
		if fix := findOrAddFix(diag, r); fix != nil {
			fix.setAttribute("updatedAt", model.Str(model.Timestamp(v.lastEventAt)))
		}
	}
}

// headerRecord is the order's own record, the customer's copy or an edge. A missing record is nil.
type headerRecord struct {
	entity *model.Entity
	key    model.Keys
	record model.Record
}

func (v *orderVerifier) headerRecords(t *table.Table, o commerce.Order) []headerRecord {
	records := []headerRecord{
		{&model.EntityOrder, model.OrderByID.Key(t.KeyBuilder(), v.id), v.orderRecord},
		{&model.EntityCustomerOrder, v.copyKey(t, o.CustomerID), v.copies[o.CustomerID]},
	}
	for _, e := range model.EntityOrder.Edges() {
		if !e.KeysOnly && t.Layout.Derivations().Writes(e.Name) {
			records = append(records, headerRecord{e, v.edges.edgeKey(e), v.edges.edge(e)})
		}
	}
	return records
}

// findOrAddFix returns the fix (the planned write) of a record, and adds the fix if necessary. If
// the record is missing and no fix creates it, or if a fix deletes it, the result is nil.
func findOrAddFix(diag *diagnosis, r headerRecord) *recordFix {
	i := slices.IndexFunc(diag.fixes, func(fix recordFix) bool { return fix.event == nil && fix.key == r.key })
	switch {
	case i < 0 && r.record == nil:
		return nil
	case i < 0:
		i = len(diag.fixes)
		diag.fixes = append(diag.fixes, recordFix{key: r.key, asRead: r.record, set: model.Record{}})
	case diag.fixes[i].isDelete:
		return nil
	}
	return &diag.fixes[i]
}

// updateOrderForEvent is called if a repair will append an event to the order. It adds changes of
// the order's updatedAt and version to this repair. Otherwise, a resumed subscription would not
// find the event.
func (v *orderVerifier) updateOrderForEvent(diag *diagnosis, o commerce.Order) {
	for _, r := range v.headerRecords(diag.table, o) {
		dated, versioned := !diag.mustLeaveUnchanged(r.entity, r.key, "updatedAt"), !diag.mustLeaveUnchanged(r.entity, r.key, model.AttrVersion)
		if !dated && !versioned {
			continue
		}
		fix := findOrAddFix(diag, r)
		if fix == nil {
			continue
		}
		fix.setsUpdatedAt = dated
		if versioned {
			fix.setAttribute(model.AttrVersion, model.Num(o.Version+1))
		}
	}
}

// hasMainRecord reports whether the customer in the order's own record is certainly right. This is
// true if that customer has a copy of the order, or if an item names the same customer.
func (v *orderVerifier) hasMainRecord() bool {
	named := v.namedCustomer()
	return named != "" && (v.copies[named] != nil || v.itemCustomers()[named])
}

func (v *orderVerifier) itemCustomers() map[commerce.CustomerID]bool {
	customers := map[commerce.CustomerID]bool{}
	for _, item := range v.items {
		customers[commerce.CustomerID(model.TextOf(item, model.AttrCustomerID))] = true
	}
	return customers
}

// updateCheckState adds what the order contributes to derived numbers. If check.numbers may already
// include it, it selects the products for a recount instead. If the findings about the order may
// affect a customer's order count or spending, it selects the customer to verify again.
func (v *orderVerifier) updateCheckState(c *check, diag, last *diagnosis) {
	if !diag.isClean() {
		c.markOrderCountsChanged(v.id, append(v.earlier, v.records()...), !last.isClean())
	}
	// If the order's own record was missing, the scan may not have found the order.
	if diag.hasKind(kindOrderMissing) {
		c.orders.add(v.id, nil)
	}
	if !last.isClean() && v.misleadsRecount(c) {
		c.orders.markMisleading(v.id, v.extraCustomers)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !diag.isClean() && c.opts.Repair && v.namedCustomer() != "" {
		c.addCandidateLocked(target{targetCustomer, string(v.namedCustomer())}, candidate{}) // a repair may have changed the customer's spending
	}
	if !last.isClean() {
		c.inconsistentCustomers[v.namedCustomer()] = true
		for id := range v.copies {
			c.inconsistentCustomers[id] = true
		}
	}
	if !v.reservationKnown(diag) {
		c.markUncertainStockLocked(v)
		c.unreadableCustomers[v.namedCustomer()] = true
	}
	if v.decoded == nil {
		return
	}
	switch {
	case !v.mayBeCounted:
		c.numbers.add(c.layout(), v.decodedWithItems())
	case v.decoded.Status.ReservesStock():
		for _, line := range v.lines {
			c.addCandidateLocked(target{targetProduct, string(line.SKU)}, candidate{recountStock: true})
		}
	}
	for _, copies := range []struct {
		kind    string
		missing int
	}{{kindOrderCopyMissing, 1}, {kindOrphanOrderCopy, -1}} {
		for _, f := range diag.findings {
			if f.kind != copies.kind {
				continue
			}
			id := commerce.CustomerID(model.FirstPlaceholderValue(model.EntityCustomerOrder.PK, f.key.PK))
			if last.hasFinding(f.kind, f.key) { // this inconsistency was not repaired
				c.missingCopies[id] += copies.missing
			}
			c.addCandidateLocked(target{targetCustomer, string(id)}, candidate{referenced: copies.missing > 0})
		}
	}
}

// decodedWithItems returns the decoded order with its line items.
func (v *orderVerifier) decodedWithItems() *commerce.Order {
	o := *v.decoded
	o.Items = v.lines
	return &o
}

// reservationKnown reports whether the stock that the order reserves is known. diag is the result of
// verify.
func (v *orderVerifier) reservationKnown(diag *diagnosis) bool {
	return v.decoded != nil && (v.linesKnown || !v.decoded.Status.ReservesStock()) || !diag.hasKind(kindUnreadable)
}

// misleadsRecount reports whether a recount, which reads the order's own record and, if necessary,
// its items, would count other amounts than the order contributes.
func (v *orderVerifier) misleadsRecount(c *check) bool {
	own, right := totals{}, totals{}
	if o, _ := c.ownOrder(v.id, v.orderRecord, v.items); o != nil {
		own.add(c.layout(), o, c.readsOrders)
	}
	if v.decoded != nil {
		right.add(c.layout(), v.decodedWithItems(), c.readsOrders)
	}
	return !maps.EqualFunc(own, right, decimal.Decimal.Equal)
}

func (v *orderVerifier) records() []model.Record {
	return append(append(slices.Collect(maps.Values(v.copies)), v.orderRecord), v.items...)
}

func (v *orderVerifier) skus() []commerce.SKU {
	var all []commerce.SKU
	for _, rec := range v.records() {
		all = append(all, namedProducts(rec)...)
	}
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
