package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// customerVerifier verifies a customer's record and its edges (copies with other index keys). It
// also verifies the order count, the email claim, the last event and the monthly spending.
type customerVerifier struct {
	baseVerifier
	id commerce.CustomerID
	recordWithEdges
	claim     model.Record
	lastEvent model.Record
	// lastEventBefore is the customer's last event, as read before the orders were counted.
	lastEventBefore model.Record
	// claimOwner is set only if the email address is reserved for another customer. It is the record
	// of that customer.
	claimOwner model.Record
	copyCount  int
	// lastUpdated are the customer's most recently updated orders. newerCopies and newerEvents are
	// orders that may have a newer event than lastEvent (see candidate). newestEvent is the newest
	// event in newerCopies and newerEvents.
	lastUpdated, newerCopies, newerEvents newerOrders
	newestEvent                           *commerce.Event
	// copiedBytes is the total size, in bytes, of the order copies that the scan read in the
	// customer's partition.
	copiedBytes int
	// uncountable reports whether the customer has too many orders for a server to count them on
	// request. The stored order count is then necessary.
	uncountable bool
	table       *table.Table
	// spendingSums are the totals of the customer's orders by month. spendingRecords are the stored
	// totals. hasUnreadableOrder reports whether spendingSums is incomplete, because an order cannot
	// be read.
	spendingSums       commerce.Spendings
	spendingRecords    map[model.Keys]model.Record
	hasUnreadableOrder bool
	// referenced reports whether an order refers to the customer.
	referenced bool
	// claimedAddress is an email address that is reserved for the customer, or empty. If the
	// customer's record is lost, the repair writes a substitute with this address.
	claimedAddress string
}

func newCustomerVerifier(t *table.Table, id string) *customerVerifier {
	return &customerVerifier{
		id: commerce.CustomerID(id), table: t, recordWithEdges: newRecordWithEdges(&model.EntityCustomer, map[string]string{"customerId": id}),
		spendingSums: commerce.Spendings{}, spendingRecords: map[model.Keys]model.Record{},
	}
}

func (v *customerVerifier) addRecord(e *model.Entity, rec model.Record) {
	switch e.BaseEntity().Name {
	case model.EntityCustomer.Name:
		v.put(rec)
	case model.EntityLastEvent.Name:
		v.lastEvent = rec
	case model.EntitySpending.Name:
		v.spendingRecords[model.KeyOf(rec)] = rec
	case model.EntityCustomerOrder.Name:
		v.copyCount++
		v.addSpending(rec)
		v.lastUpdated = v.lastUpdated.laterOf(newerOrders{[]commerce.OrderID{commerce.OrderID(model.FirstPlaceholderValue(e.SK, model.TextOf(rec, model.AttrSK)))}, updatedAt(rec)})
		v.copiedBytes += model.SizeOf(rec)
		// A server counts the orders with Query requests, and each request reads at most 1 MB. During
		// the scan, estimate the number of requests from the size of the orders. The method read counts
		// the requests that it sends.
		v.uncountable = v.copiedBytes > (table.MaxCountPages-1)*table.MaxQueryBytes
	}
}

func (v *customerVerifier) key(*table.Table) model.Keys { return v.primaryKey }

func (v *customerVerifier) read(ctx context.Context, c *check) error {
	v.claim, v.lastEvent, v.claimOwner, v.copyCount = nil, nil, nil, 0
	v.spendingSums, v.hasUnreadableOrder = commerce.Spendings{}, false
	b := c.table.KeyBuilder()
	lastEventKey := model.LastEvent.Key(b, v.id)
	if b.Err != nil {
		return b.Err
	}
	found, err := c.client.Get(ctx, repair.Consistent, append(v.keys(), lastEventKey)...)
	if err != nil {
		return err
	}
	v.records, v.lastEvent = found, found[lastEventKey]
	v.lastEventBefore = v.lastEvent
	pages := 0
	if v.copyCount, pages, err = c.client.CustomerOrders(ctx, v.id, v.addSpending); err != nil {
		return err
	}
	if err := v.readSpending(ctx, c); err != nil {
		return err
	}
	if err := v.readNewestEvent(ctx, c); err != nil {
		return err
	}
	v.uncountable = pages > table.MaxCountPages
	if err := v.readEmailClaim(ctx, c); err != nil {
		return err
	}
	if owner := commerce.CustomerID(model.TextOf(v.claim, "customerId")); owner != "" && owner != v.id {
		b := c.table.KeyBuilder()
		if k := model.CustomerByID.Key(b, owner); b.Err == nil {
			if found, err = c.client.Get(ctx, repair.Consistent, k); err != nil {
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
		found, err := c.client.Get(ctx, repair.Consistent, k)
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

// standIn returns a substitute for a lost customer. The substitute has the customer's ID. Its email
// address is claimedAddress. If claimedAddress is empty, standIn makes an address from the ID.
func (v *customerVerifier) standIn(t *table.Table) *commerce.Customer {
	at, email := t.Now(), v.claimedAddress
	if email == "" {
		email = string(v.id) + repair.StandInEmailDomain
	}
	return &commerce.Customer{ID: v.id, Name: string(v.id), Email: email, CreatedAt: at, UpdatedAt: at, Version: 1}
}

// emailClaimKey returns the key of the record that reserves the customer's email address. If the
// address is invalid, it returns an empty key.
func (v *customerVerifier) emailClaimKey(t *table.Table) model.Keys {
	decoded, _ := decodeFirst(&repair.Diagnosis{Table: t}, &v.recordWithEdges, t.DecodeCustomer)
	if decoded == nil {
		decoded = v.standIn(t)
	}
	email, err := commerce.ParseEmail(decoded.Email)
	if err != nil {
		return model.Keys{}
	}
	return model.EmailClaim.Key(t.KeyBuilder(), email)
}

func (v *customerVerifier) verify(c *check) *repair.Diagnosis {
	diag := &repair.Diagnosis{Table: c.table}
	b := c.table.KeyBuilder()
	diag.TrustedKey, diag.Trusted = v.primaryKey, v.record()
	decoded, source := decodeFirst(diag, &v.recordWithEdges, c.table.DecodeCustomer)
	diag.Source = model.KeyOf(source)
	exists := decoded != nil || v.record() != nil || v.referenced || v.copyCount > 0
	v.verifyLastEvent(diag, exists)
	for _, rec := range v.spendingRecords {
		if !exists {
			diag.AddOrphan(repair.DriftSpending, rec, "the customer does not exist")
		}
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
			diag.Dependencies = append(diag.Dependencies, repair.UnchangedRecord{Key: model.KeyOf(v.claim), AsRead: v.claim})
		}
	case v.record() == nil:
		diag.Trusted = nil
	default:
		diag.TrustedKey, diag.Trusted = model.KeyOf(source), source
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
			diag.Dependencies = append(diag.Dependencies, repair.UnchangedRecord{Key: model.LastEvent.Key(b, v.id), AsRead: v.lastEventBefore})
		}
	} else {
		customer.OrderCount = nil
	}
	v.verifySpending(c, diag, &customer)
	expected := model.CustomerRecords(b, customer)
	if b.Err != nil {
		diag.AddUnreadable(model.CustomerByID.Key(&model.KeyBuilder{Shards: b.Shards}, v.id), b.Err)
		return diag
	}
	main, claim := expected[0], expected[1]
	switch {
	case v.record() != nil:
		diag.Compare(&model.EntityCustomer, v.record(), main, repair.DriftEdgeDiffers)
	case source == nil:
		diag.AddStandIn(repair.DriftCustomerMissing, main, detail)
	default:
		diag.AddMissing(repair.DriftCustomerMissing, main, source, detail)
	}
	v.verifyEmailClaim(diag, claim)
	v.verifyEdges(diag, expected)
	return diag
}

// verifyLastEvent reports the record of the customer's last event if the record is incomplete or
// outdated, or if the customer is missing.
func (v *customerVerifier) verifyLastEvent(diag *repair.Diagnosis, exists bool) {
	if v.lastEvent == nil {
		return
	}
	event, err := model.DecodeEvent(model.Reader{Record: diag.WithoutUnreadable(&model.EntityLastEvent, v.lastEvent)})
	switch {
	case !exists:
		diag.AddOrphan(repair.DriftLastEvent, v.lastEvent, "the customer does not exist")
	case err != nil:
		diag.AddOrphan(repair.DriftLastEvent, v.lastEvent, strings.TrimPrefix(repair.DecodeErrorReason(err), model.ErrCorrupt.Error()+": "))
	case v.lastEventOutdated(diag.Table) && diag.UnreadableAttributes[model.KeyOf(v.lastEvent)] == nil:
		diag.AddFinding(repair.DriftLastEvent, model.KeyOf(v.lastEvent), fmt.Sprintf("the last event is %s, but order %s has the newer event %s", event.ID, v.newestEvent.OrderID, v.newestEvent.ID), repair.RemedyRepair)
		diag.Fixes = append(diag.Fixes, repair.NewReplacement(v.lastEvent, model.LastEventRecord(diag.Table.KeyBuilder(), v.id, *v.newestEvent)))
	default:
		diag.Compare(&model.EntityLastEvent, v.lastEvent, model.LastEventRecord(diag.Table.KeyBuilder(), v.id, *event), repair.DriftLastEvent)
	}
}

func (v *customerVerifier) verifyEmailClaim(diag *repair.Diagnosis, want model.Record) {
	have := v.claim
	if diag.WithoutUnreadable(&model.EntityEmailClaim, have); have != nil && diag.MustLeaveUnchanged(&model.EntityEmailClaim, model.KeyOf(have), model.AttrCustomerID) {
		return
	}
	email := model.FirstPlaceholderValue(model.EntityEmailClaim.PK, model.TextOf(want, model.AttrPK))
	switch owner := model.TextOf(have, "customerId"); {
	case have == nil && v.firstRecord() == nil:
		// The missing customer has already been reported, so add the claim to the repair without another
		// finding.
		diag.AddPut(want, nil)
	case have == nil:
		diag.AddMissing(repair.DriftEmailClaimMissing, want, nil, fmt.Sprintf("no record reserves the email address of customer %s", v.id))
	case owner != string(v.id) && hasEmail(v.claimOwner, email):
		diag.AddFinding(repair.DriftEmailShared, model.CustomerByID.Key(diag.Table.KeyBuilder(), v.id), fmt.Sprintf("the email address %s is reserved for customer %s, who also has this address", email, owner), repair.RemedyManual)
	default:
		if other := commerce.CustomerID(owner); other != v.id {
			b := diag.Table.KeyBuilder()
			if k := model.CustomerByID.Key(b, other); b.Err == nil {
				diag.Dependencies = append(diag.Dependencies, repair.UnchangedRecord{Key: k, AsRead: v.claimOwner})
			}
		}
		diag.Compare(&model.EntityEmailClaim, have, want, repair.DriftEmailClaimMissing)
	}
}

// lacksOrderCount reports whether the customer's record exists without an orderCount.
func (v *customerVerifier) lacksOrderCount() bool {
	return v.record() != nil && v.record()[model.AttrOrderCount] == nil
}

// uncertainty returns a message if the last event changed while a missing orderCount was computed.
// Then an order may have been placed, and the computed count may be wrong.
func (v *customerVerifier) uncertainty(*repair.Diagnosis) string {
	if v.uncountable && v.lacksOrderCount() && !model.EqualRecords(v.lastEventBefore, v.lastEvent) {
		return "new orders were placed each time the orders were counted"
	}
	return ""
}

// hasMainRecord reports whether the customer's record exists.
func (v *customerVerifier) hasMainRecord() bool { return v.record() != nil }

// hasValidEmail reports whether a customer's record has a valid email address.
func hasValidEmail(customer model.Record) bool {
	_, err := commerce.ParseEmail(model.TextOf(customer, "email"))
	return err == nil
}

// hasEmail reports whether email is the address in a customer's record. email must have the form
// that commerce.ParseEmail returns.
func hasEmail(customer model.Record, email string) bool {
	parsed, err := commerce.ParseEmail(model.TextOf(customer, "email"))
	return err == nil && parsed == email
}

// updateCheckState marks the email claim of a missing customer as reported, so that the check does
// not report the claim again.
func (v *customerVerifier) updateCheckState(c *check, diag, _ *repair.Diagnosis) {
	if v.claim != nil && diag.HasKind(repair.DriftCustomerMissing) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported.Add(model.KeyOf(v.claim).Text())
	}
}

// emailClaimVerifier compares an email claim with the customer that the claim names. An email claim
// is the record that reserves an email address for one customer.
type emailClaimVerifier struct {
	baseVerifier
	email    string
	claim    model.Record
	customer recordWithEdges
}

func (v *emailClaimVerifier) key(t *table.Table) model.Keys {
	return model.EmailClaim.Key(t.KeyBuilder(), v.email)
}

func (v *emailClaimVerifier) addRecord(_ *model.Entity, rec model.Record) { v.claim = rec }

func (v *emailClaimVerifier) read(ctx context.Context, c *check) error {
	v.claim, v.customer = nil, recordWithEdges{}
	b := c.table.KeyBuilder()
	k := model.EmailClaim.Key(b, v.email)
	if b.Err != nil {
		return b.Err
	}
	found, err := c.client.Get(ctx, repair.Consistent, k)
	if err != nil {
		return err
	}
	v.claim = found[k]
	v.customer = v.customerOfClaim()
	v.customer.records, err = c.client.Get(ctx, repair.Consistent, v.customer.keys()...)
	return err
}

// customerOfClaim returns the customer that the claim names. The customer's records have not been
// read yet.
func (v *emailClaimVerifier) customerOfClaim() recordWithEdges {
	return newRecordWithEdges(&model.EntityCustomer, map[string]string{"customerId": model.TextOf(v.claim, model.AttrCustomerID)})
}

// verify reports an email claim that names a missing customer, or a customer with another email
// address. customerVerifier reports the other inconsistencies of email claims.
func (v *emailClaimVerifier) verify(c *check) *repair.Diagnosis {
	diag := &repair.Diagnosis{Table: c.table}
	if v.claim == nil {
		return diag
	}
	if diag.WithoutUnreadable(&model.EntityEmailClaim, v.claim); diag.MustLeaveUnchanged(&model.EntityEmailClaim, model.KeyOf(v.claim), model.AttrCustomerID) {
		return diag
	}
	// If the customer's record is missing, use an edge (a copy with other index keys) instead. A
	// repair may restore the customer's record from this edge.
	customer := v.customer.firstRecord()
	diag.TrustedKey, diag.Trusted = v.customer.primaryKey, v.customer.record()
	id := model.TextOf(v.claim, "customerId")
	switch {
	case hasEmail(customer, v.email), c.hasReported(model.KeyOf(v.claim)):
	case customer == nil && c.hasUnreadableOrders(commerce.CustomerID(id)):
		// In this case, keep the claim. An unreadable order names the customer, so a later check may
		// restore the customer with this address.
	case customer != nil && !hasValidEmail(customer):
		// In this case, keep the claim. The customer's record has no valid address, and the claim may
		// contain the right one.
	case customer == nil:
		diag.AddOrphan(repair.DriftOrphanClaim, v.claim, fmt.Sprintf("customer %q does not exist", id))
	default:
		diag.AddOrphan(repair.DriftOrphanClaim, v.claim, fmt.Sprintf("the email address of customer %s is %s", id, model.TextOf(customer, "email")))
	}
	return diag
}

// hasMainRecord reports whether the customer that the claim names has a record.
func (v *emailClaimVerifier) hasMainRecord() bool { return v.customer.record() != nil }
