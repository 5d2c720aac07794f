package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// customerVerifier verifies a customer's record and its edges. It
// also verifies the order count, the email claim, the last event and the monthly spending.
type customerVerifier struct {
	baseVerifier
	id commerce.CustomerID
	recordWithEdges
	others    recordsWithEdges
	claim     model.Record
	lastEvent model.Record
	// deletion is the record which states that the customer was deleted. It is nil for other
	// customers.
	deletion model.Record
	// unerased are the copies of orders that may contain personal data, although the customer was erased.
	// unerasedOrders are the orders' own records.
	unerased       []model.Record
	unerasedOrders map[model.Keys]model.Record
	// lastEventBefore is the customer's last event, as read before the orders were counted.
	lastEventBefore model.Record
	// claimOwner is another customer's record, if the email address is reserved for that customer.
	claimOwner model.Record
	copyCount  int
	// lastUpdated are the customer's most recently updated orders. newerCopies and newerEvents are as
	// in candidate. newestEvent is the newest event of these two.
	lastUpdated, newerCopies, newerEvents newerOrders
	newestEvent                           *commerce.Event
	// copiedBytes is the size of the order copies that the scan read in the customer's partition.
	copiedBytes int
	// uncountable reports that a server cannot count the orders on request, so it needs orderCount.
	uncountable bool
	table       *table.Table
	// sums are the numbers that derive from the orders. They lack the items of the orders unlisted,
	// which do not embed their items. hasUnreadableOrder reports whether they lack an order, because it
	// cannot be read. spendingRecords are the stored sums of spending.
	sums               derive.Totals
	unlisted           []*commerce.Order
	hasUnreadableOrder bool
	spendingRecords    map[model.Keys]model.Record
	// reservationUnsettled reports whether the last event changed while its numbers were computed.
	reservationUnsettled bool
	// referenced reports whether an order refers to the customer.
	referenced bool
	// claimedAddress is an address reserved for the customer, or empty. A substitute record gets it.
	claimedAddress string
}

func newCustomerVerifier(t *table.Table, id string) *customerVerifier {
	return &customerVerifier{
		id: commerce.CustomerID(id), table: t, recordWithEdges: newRecordWithEdges(&model.EntityCustomer, map[string]string{"customerId": id}),
		sums: newCustomerSums(), spendingRecords: map[model.Keys]model.Record{}, others: recordsWithEdges{},
	}
}

func (v *customerVerifier) addRecord(e *model.Entity, rec model.Record) {
	switch e.BaseEntity().Name {
	case model.EntityCustomer.Name:
		v.put(rec)
	case model.EntityLastEvent.Name:
		v.lastEvent = rec
	case model.EntityDeletedCustomer.Name:
		v.deletion = rec
	case model.EntitySpending.Name:
		v.spendingRecords[model.KeyOf(rec)] = rec
	case model.EntityOrder.Name:
		v.copyCount++
		v.addOrder(rec)
		v.lastUpdated = v.lastUpdated.laterOf(newerOrders{[]commerce.OrderID{commerce.OrderID(model.FirstPlaceholderValue(e.SK, model.TextOf(rec, model.AttrSK)))}, updatedAt(rec)})
		v.copiedBytes += model.SizeOf(rec)
		// A server counts the orders with Query requests of at most 1 MB. During the scan, estimate their
		// number from the size of the orders. The method read counts the requests that it sends.
		v.uncountable = v.copiedBytes > (table.MaxCountPages-1)*table.MaxQueryBytes
	default:
		v.others.add(e, rec)
	}
}

func (v *customerVerifier) key(*table.Table) model.Keys { return v.primaryKey }

func (v *customerVerifier) read(ctx context.Context, c *check) error {
	v.claim, v.lastEvent, v.claimOwner, v.copyCount = nil, nil, nil, 0
	v.sums, v.hasUnreadableOrder, v.unlisted, v.unerased = newCustomerSums(), false, nil, nil
	b := c.table.KeyBuilder()
	lastEventKey := model.LastEvent.Key(b, v.id)
	if b.Err != nil {
		return b.Err
	}
	found, err := c.client.get(ctx, consistent, append(v.keys(), lastEventKey, model.DeletedCustomerKey(v.id))...)
	if err != nil {
		return err
	}
	v.records, v.lastEvent, v.deletion = found, found[lastEventKey], found[model.DeletedCustomerKey(v.id)]
	v.lastEventBefore = v.lastEvent
	if v.others, err = c.readOthers(ctx, v.entity, v.primaryKey.PK, &model.EntityDeletedCustomer); err != nil {
		return err
	}
	pages := 0
	if v.copyCount, pages, err = c.client.customerOrders(ctx, v.id, v.addOrder); err != nil {
		return err
	}
	if err := v.readUnerasedOrders(ctx, c); err != nil {
		return err
	}
	if err := v.readSpending(ctx, c); err != nil {
		return err
	}
	if err := v.readNewestEvent(ctx, c); err != nil {
		return err
	}
	if err := v.readReservation(ctx, c); err != nil {
		return err
	}
	v.uncountable = pages > table.MaxCountPages
	if err := v.readEmailClaim(ctx, c); err != nil {
		return err
	}
	if owner := commerce.CustomerID(model.TextOf(v.claim, "customerId")); owner != "" && owner != v.id {
		b := c.table.KeyBuilder()
		if k := model.CustomerByID.Key(b, owner); b.Err == nil {
			if found, err = c.client.get(ctx, consistent, k); err != nil {
				return err
			}
			v.claimOwner = found[k]
		}
	}
	return nil
}

// readEmailClaim reads the record that reserves the customer's email address. If no readable record
// contains this address, it uses claimedAddress. If claimedAddress is no longer reserved for the
// customer, readEmailClaim clears it. Then it uses the address that standIn makes from the ID.
func (v *customerVerifier) readEmailClaim(ctx context.Context, c *check) error {
	for {
		k := v.emailClaimKey(c.table)
		found, err := c.client.get(ctx, consistent, k)
		if err != nil {
			return err
		}
		v.claim = found[k]
		if v.claimedAddress == "" || model.TextOf(v.claim, model.AttrCustomerID) == string(v.id) {
			return nil
		}
		v.claimedAddress = ""
	}
}

// standIn returns a substitute for a lost customer, with claimedAddress or an address from the ID.
func (v *customerVerifier) standIn(t *table.Table) *commerce.Customer {
	at, email := t.Now(), v.claimedAddress
	if email == "" {
		email = string(v.id) + standInEmailDomain
	}
	return &commerce.Customer{ID: v.id, Name: string(v.id), Email: email, CreatedAt: at, UpdatedAt: at, Version: 1}
}

// emailClaimKey returns the key of the email claim, or an empty key if the address is invalid.
func (v *customerVerifier) emailClaimKey(t *table.Table) model.Keys {
	decoded, _ := decodeFirst(&diagnosis{table: t}, &v.recordWithEdges, t.DecodeCustomer)
	if decoded == nil {
		decoded = v.standIn(t)
	}
	email, err := commerce.EmailKey(decoded.Email)
	if err != nil {
		return model.Keys{}
	}
	return model.EmailClaim.Key(t.KeyBuilder(), email)
}

func (v *customerVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	b := c.table.KeyBuilder()
	diag.trustedKey, diag.trusted = v.primaryKey, v.record()
	decoded, source := decodeFirst(diag, &v.recordWithEdges, c.table.DecodeCustomer)
	diag.source = model.KeyOf(source)
	exists := decoded != nil || v.record() != nil || v.referenced || v.copyCount > 0 || v.deletion != nil
	v.verifyLastEvent(c, diag, exists)
	v.others.verify(diag)
	for _, k := range sortedKeys(v.spendingRecords) {
		if !exists {
			diag.addOrphan(kindSpending, v.spendingRecords[k], "the customer does not exist")
		}
	}
	if v.id.IsGuest() {
		return diag // a guest has no record of its own
	}
	if v.deletion != nil || exists && v.record() == nil && !c.opts.Restore {
		v.verifyDeletion(c, diag)
		return diag
	}
	detail := "the record is missing, but edges (copies of the record with other index keys) exist"
	switch {
	case decoded == nil && (!v.isLost() || !v.referenced && v.copyCount == 0):
		reportUndecodable(diag, &v.recordWithEdges, c.table.DecodeCustomer)
		return diag
	case decoded == nil:
		decoded = v.standIn(c.table)
		detail = "the customer has orders, but no other record"
		if v.claimedAddress != "" {
			detail = "the customer has orders and a record that reserves an email address, but no other record"
			diag.dependencies = append(diag.dependencies, unchangedRecord{key: model.KeyOf(v.claim), asRead: v.claim})
		}
	case v.record() == nil:
		diag.trusted = nil
	default:
		diag.trustedKey, diag.trusted = model.KeyOf(source), source
	}
	customer := *decoded
	if customer.AccountRepID == "" {
		customer.AccountRepID = commerce.EmployeeID(model.IndexValueOf(&model.EntityCustomerRep, v.edge(&model.EntityCustomerRep)))
	}
	if v.record() != nil { // only the customer's own record has this attribute, its edges do not
		customer.SpendingComplete = (&model.Reader{Record: v.record()}).Flag(model.AttrSpendingComplete)
	}
	// Set the order count. Do not add an order count if a server can count the orders on request.
	//
	// Each new order increments the stored count. So the new count is right if the record does not
	// change between the start of the count and the repair.
	if v.record() == nil || !v.lacksOrderCount() || v.uncountable {
		n := max(0, v.copyCount+c.missingCopiesOf(v.id))
		customer.OrderCount = &n
		if v.lacksOrderCount() {
			// If orderCount is missing, a new order does not add orderCount, but it still replaces the last
			// event. So the repair requires that the last event has not changed since the count began.
			diag.dependencies = append(diag.dependencies, unchangedRecord{key: model.LastEvent.Key(b, v.id), asRead: v.lastEventBefore})
		}
	} else {
		customer.OrderCount = nil
	}
	v.verifySpending(c, diag, &customer)
	expected := model.CustomerRecords(b, customer)
	if b.Err != nil {
		diag.addUnreadable(model.CustomerByID.Key(&model.KeyBuilder{Layout: b.Layout}, v.id), b.Err)
		return diag
	}
	main := expected[0]
	claim := expected[slices.IndexFunc(expected, func(r model.Record) bool { return model.EntityOf(model.KeyOf(r)) == &model.EntityEmailClaim })]
	switch {
	case v.record() != nil:
		diag.compare(&model.EntityCustomer, v.record(), main, kindEdgeDiffers)
	case source == nil:
		diag.addStandIn(kindCustomerMissing, main, detail)
	default:
		diag.addMissing(kindCustomerMissing, main, source, detail)
	}
	if v.claim == nil && v.firstRecord() == nil {
		diag.addPut(claim, nil) // the missing customer is already reported, so add the claim without another finding
	} else {
		diag.verifyClaim(&model.EntityEmailClaim, v.primaryKey, v.claim, claim, v.claimOwner)
	}
	v.verifyEdges(diag, expected)
	return diag
}

// verifyDeletion verifies the records of a deleted customer. The orders, the last event and the
// spending remain. The record and its edges must not exist: emailClaimVerifier deletes the claim. A
// missing record counts as deleted, so that a repair never undoes a deletion.
func (v *customerVerifier) verifyDeletion(c *check, diag *diagnosis) {
	b := c.table.KeyBuilder()
	diag.source = model.Keys{}
	if v.deletion == nil {
		diag.addFinding(kindCustomerMissing, v.primaryKey, "the record is missing, so a repair deletes the customer; if the record was lost, repair with -restore", remedyRepair)
		diag.addPut(model.DeletedCustomerRecord(b, commerce.DeletedCustomer{ID: v.id, DeletedAt: c.table.Now()}), nil)
	} else {
		key := model.KeyOf(v.deletion)
		diag.trustedKey, diag.trusted = key, v.deletion
		named := withKeyAttributes(diag.withoutUnreadable(&model.EntityDeletedCustomer, v.deletion), model.EntityDeletedCustomer.KeyValues(key))
		if deleted, err := model.DecodeDeletedCustomer(model.Reader{Record: named}); err == nil {
			v.verifyErasure(diag, deleted)
			diag.compare(&model.EntityDeletedCustomer, v.deletion, model.DeletedCustomerRecord(b, *deleted), kindErasure)
		} else {
			diag.addUnreadable(key, err)
		}
	}
	if v.record() != nil {
		diag.addOrphan(kindCustomerDeleted, v.record(), "the customer is deleted")
	}
	v.verifySpending(c, diag, &commerce.Customer{ID: v.id, SpendingComplete: true})
	v.verifyEdges(diag, nil)
}

// isErased reports whether the customer is erased, or will be.
func (v *customerVerifier) isErased() bool { return model.TextOf(v.deletion, "erasure") != "" }

// ownKey returns the key of the order's own record, if rec is a customer's copy of it.
func ownKey(b *model.KeyBuilder, rec model.Record) model.Keys {
	return model.OrderByID.Key(b, commerce.OrderID(model.FirstPlaceholderValue(model.EntityCustomerOrder.SK, model.TextOf(rec, model.AttrSK))))
}

// readUnerasedOrders reads the orders' own records for the copies in unerased.
//
// Errors are wrapped by table.WrapError.
func (v *customerVerifier) readUnerasedOrders(ctx context.Context, c *check) (err error) {
	var keys []model.Keys
	for _, rec := range v.unerased {
		b := c.table.KeyBuilder()
		if k := ownKey(b, rec); b.Err == nil {
			keys = append(keys, k)
		}
	}
	v.unerasedOrders, err = c.client.get(ctx, consistent, keys...)
	return err
}

// verifyErasure reports the orders of an erased customer that are not marked as erased. A repair marks these
// orders and the customer's copies of them, so it then removes the personal data from all their records.
// Without such orders, an incomplete erasure becomes complete.
func (v *customerVerifier) verifyErasure(diag *diagnosis, deleted *commerce.DeletedCustomer) {
	for _, rec := range v.unerased {
		diag.addFinding(kindErasure, model.KeyOf(rec), "the customer was erased, but the order was not", remedyRepair)
		for _, r := range []model.Record{rec, v.unerasedOrders[ownKey(diag.table.KeyBuilder(), rec)]} {
			if model.TextOf(r, model.AttrCustomerID) == string(v.id) {
				diag.fixes = append(diag.fixes, recordFix{key: model.KeyOf(r), asRead: r, set: model.Record{model.AttrErased: model.Bool(true)}})
			}
		}
	}
	if len(v.unerased) == 0 && v.isErased() {
		deleted.Erasure, deleted.ErasedTo = commerce.ErasureComplete, ""
	}
}

// verifyLastEvent reports a last event that is incomplete, outdated or without a customer, or that
// counts the open orders wrong.
func (v *customerVerifier) verifyLastEvent(c *check, diag *diagnosis, exists bool) {
	if v.lastEvent == nil {
		return
	}
	event, err := model.DecodeEvent(model.Reader{Record: diag.withoutUnreadable(&model.EntityLastEvent, v.lastEvent)})
	_, positioned := event.ID.Time()
	switch {
	case !exists:
		diag.addOrphan(kindLastEvent, v.lastEvent, "the customer does not exist")
		return
	case err != nil:
		diag.addOrphan(kindLastEvent, v.lastEvent, strings.TrimPrefix(decodeErrorReason(err), model.ErrCorrupt.Error()+": "))
		return
	case !positioned || event.OrderID == "":
		diag.addOrphan(kindLastEvent, v.lastEvent, "eventId is not a ULID, or orderId is empty")
		return
	}
	outdated := v.lastEventOutdated(diag.table) && diag.unreadableAttributes[model.KeyOf(v.lastEvent)] == nil
	last := event
	if outdated {
		last = v.newestEvent
	}
	if v.isErased() {
		erased := *last
		model.Erase(&erased)
		last = &erased
	}
	want := model.KeepReservation(model.LastEventRecord(diag.table.KeyBuilder(), v.id, *last), v.lastEvent)
	sums, reported := v.expectedReservation(c)
	if reported {
		want.Merge(sums)
	}
	switch {
	case outdated:
		diag.addFinding(kindLastEvent, model.KeyOf(v.lastEvent), fmt.Sprintf("the last event is %s, but order %s has the newer event %s", event.ID, last.OrderID, last.ID), remedyRepair)
		diag.fixes = append(diag.fixes, newReplacement(v.lastEvent, want))
	case reported && len(v.unlisted) > 0:
		// The scan has not read the items of these orders. Only a further read can count their units.
		diag.addFinding(kindLastEvent, model.KeyOf(v.lastEvent), "the units of orders without an item list are not counted yet", remedyRepair)
	default:
		diag.compare(&model.EntityLastEvent, v.lastEvent, want, kindLastEvent)
	}
	if sums != nil && !reported {
		diag.setUnreported(v.lastEvent, sums)
	}
}

func (v *customerVerifier) lacksOrderCount() bool {
	return v.record() != nil && v.record()[model.AttrOrderCount] == nil
}

// uncertainty returns a message if an order may have been placed or changed while the orders were counted.
func (v *customerVerifier) uncertainty(*diagnosis) string {
	if v.uncountable && v.lacksOrderCount() && !model.EqualRecords(v.lastEventBefore, v.lastEvent) || v.reservationUnsettled {
		return "orders were placed or changed each time the orders were counted"
	}
	return ""
}

func (v *customerVerifier) hasMainRecord() bool { return v.record() != nil }

// updateCheckState marks a missing customer's email claim as reported, to report it only once.
func (v *customerVerifier) updateCheckState(c *check, diag, _ *diagnosis) {
	if v.claim != nil && c.opts.Restore && diag.hasKind(kindCustomerMissing) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported.add(model.KeyOf(v.claim).Text())
	}
}
