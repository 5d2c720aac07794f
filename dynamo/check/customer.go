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

// customerVerifier verifies a customer's record, its edges (copies with other index keys), the
// order count, the email claim, the last event and the monthly spending.
type customerVerifier struct {
	baseVerifier
	id commerce.CustomerID
	recordWithEdges
	claim     model.Record
	lastEvent model.Record
	// lastEventBefore is the customer's last event, as read before the orders were counted.
	lastEventBefore model.Record
	// If the email claim names another customer, claimOwner is the record of that customer.
	claimOwner model.Record
	copyCount  int
	// lastUpdated are the customer's most recently updated orders. newerCopies and newerEvents are
	// orders that may have an event newer than lastEvent. newestEvent is the newest of these events.
	lastUpdated, newerCopies, newerEvents newerOrders
	newestEvent                           *commerce.Event
	// copiedBytes is the size in bytes of the order copies that the scan read in the partition.
	copiedBytes int
	// uncountable reports whether the server would need too many Query requests to count the orders.
	uncountable bool
	// spendingSums are the sums of the customer's orders by month. spendingRecords are the stored
	// sums. hasUnreadableOrder reports whether spendingSums lacks an order that is unreadable.
	table              *table.Table
	spendingSums       commerce.Spendings
	spendingRecords    map[model.Keys]model.Record
	hasUnreadableOrder bool
	// referenced reports whether an order refers to the customer.
	referenced bool
	// claimedAddress is an email address that an email claim reserves for the customer. It is empty if
	// no claim is known. If the customer's record is lost, the repair restores this address.
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
		// A Query returns at most 1 MB, so this is an estimate. The next read counts the Query requests.
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

// readEmailClaim reads the email claim: the record that reserves the customer's email address. If the
// claim of claimedAddress does not name the customer, readEmailClaim clears claimedAddress.
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

// standIn returns a substitute for a lost customer. It has the ID and, if known, the email address.
func (v *customerVerifier) standIn(t *table.Table) *commerce.Customer {
	at, email := t.Now(), v.claimedAddress
	if email == "" {
		email = string(v.id) + repair.StandInEmailDomain
	}
	return &commerce.Customer{ID: v.id, Name: string(v.id), Email: email, CreatedAt: at, UpdatedAt: at, Version: 1}
}

// emailClaimKey returns the key of the record that reserves the customer's email address. It returns an
// empty key if the address is invalid.
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
	detail := "only edges (copies with other index keys) of the record exist, not the record itself"
	switch {
	case decoded == nil && (!v.isLost() || !v.referenced && v.copyCount == 0):
		reportUndecodable(diag, &v.recordWithEdges, c.table.DecodeCustomer)
		return diag
	case decoded == nil:
		decoded = v.standIn(c.table)
		detail = "the customer has orders, but no other record"
		if v.claimedAddress != "" {
			detail = "the customer has orders and an email claim, but no other record"
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
	if v.record() != nil { // an edge has no such attribute
		customer.SpendingComplete = (&model.Reader{Record: v.record()}).Flag(model.AttrSpendingComplete)
	}
	// Each new order increments orderCount in the customer's record. So the count of the orders is
	// exact if this record does not change from a read before the count until the repair.
	if v.record() == nil || !v.lacksOrderCount() || v.uncountable {
		n := max(0, v.copyCount+c.missingCopiesOf(v.id))
		customer.OrderCount = &n
		if v.lacksOrderCount() {
			// A new order leaves a missing orderCount unchanged, but always replaces the last event.
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

// verifyLastEvent reports the last event if it is incomplete or outdated, or the customer is
// missing.
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
		// The finding about the lost customer includes the missing claim, so add only the fix.
		diag.AddPut(want, nil)
	case have == nil:
		diag.AddMissing(repair.DriftEmailClaimMissing, want, nil, fmt.Sprintf("the email address of customer %s has no claim record", v.id))
	case owner != string(v.id) && hasEmail(v.claimOwner, email):
		diag.AddFinding(repair.DriftEmailShared, model.CustomerByID.Key(diag.Table.KeyBuilder(), v.id), fmt.Sprintf("%s is also the email address of customer %s, and the email claim names that customer", email, owner), repair.RemedyManual)
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

// lacksOrderCount reports whether the customer's record has no orderCount.
func (v *customerVerifier) lacksOrderCount() bool {
	return v.record() != nil && v.record()[model.AttrOrderCount] == nil
}

// uncertainty returns a reason if an order was placed while the missing orderCount was computed.
func (v *customerVerifier) uncertainty(*repair.Diagnosis) string {
	if v.uncountable && v.lacksOrderCount() && !model.EqualRecords(v.lastEventBefore, v.lastEvent) {
		return "new orders were placed each time the orders were counted"
	}
	return ""
}

// hasMainRecord reports whether the customer's record was read.
func (v *customerVerifier) hasMainRecord() bool { return v.record() != nil }

// hasValidEmail reports whether a customer's record has a valid email address.
func hasValidEmail(customer model.Record) bool {
	_, err := commerce.ParseEmail(model.TextOf(customer, "email"))
	return err == nil
}

// hasEmail reports whether a customer's record has an email address. email must be an address
// returned by commerce.ParseEmail.
func hasEmail(customer model.Record, email string) bool {
	parsed, err := commerce.ParseEmail(model.TextOf(customer, "email"))
	return err == nil && parsed == email
}

// updateCheckState marks the email claim of a missing customer as reported, to avoid a second report.
func (v *customerVerifier) updateCheckState(c *check, diag, _ *repair.Diagnosis) {
	if v.claim != nil && diag.HasKind(repair.DriftCustomerMissing) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported.Add(model.KeyOf(v.claim).Text())
	}
}

// emailClaimVerifier compares the claim of an email address with the customer that the claim names.
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

// customerOfClaim returns the customer that the claim names. Its records have not been read yet.
func (v *emailClaimVerifier) customerOfClaim() recordWithEdges {
	return newRecordWithEdges(&model.EntityCustomer, map[string]string{"customerId": model.TextOf(v.claim, model.AttrCustomerID)})
}

// verify reports an email claim if its customer is missing or has another address. customerVerifier
// reports all other inconsistencies of claims.
func (v *emailClaimVerifier) verify(c *check) *repair.Diagnosis {
	diag := &repair.Diagnosis{Table: c.table}
	if v.claim == nil {
		return diag
	}
	if diag.WithoutUnreadable(&model.EntityEmailClaim, v.claim); diag.MustLeaveUnchanged(&model.EntityEmailClaim, model.KeyOf(v.claim), model.AttrCustomerID) {
		return diag
	}
	// If the customer's record is missing, a repair may restore it from an edge with this address.
	customer := v.customer.firstRecord()
	diag.TrustedKey, diag.Trusted = v.customer.primaryKey, v.customer.record()
	id := model.TextOf(v.claim, "customerId")
	switch {
	case hasEmail(customer, v.email), c.hasReported(model.KeyOf(v.claim)):
	case customer == nil && c.hasUnreadableOrders(commerce.CustomerID(id)):
		// An unreadable order names the customer, so a later repair may restore the customer.
	case customer != nil && !hasValidEmail(customer):
		// The customer's record has no valid address, so the claim may contain the right address.
	case customer == nil:
		diag.AddOrphan(repair.DriftOrphanClaim, v.claim, fmt.Sprintf("customer %q does not exist", id))
	default:
		diag.AddOrphan(repair.DriftOrphanClaim, v.claim, fmt.Sprintf("the email address of customer %s is %s", id, model.TextOf(customer, "email")))
	}
	return diag
}

// hasMainRecord reports whether the read found the record of the claim's customer.
func (v *emailClaimVerifier) hasMainRecord() bool { return v.customer.record() != nil }
