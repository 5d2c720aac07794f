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

// customerUnit is a customer's record and edges, the claim of the e-mail address, the last order
// event, and how many orders stand in the customer's partition.
type customerUnit struct {
	selfContained
	id commerce.CustomerID
	edged
	claim     model.Record
	lastEvent model.Record
	// before is the last event as it was read before the orders were counted.
	before model.Record
	// owner is the record of the customer whom the claim names, where that is another.
	owner  model.Record
	copies int
	// updated are the orders whose copies were updated last. byCopy and byEvent are orders with
	// which the last event is compared, and later is the last event that they have.
	updated, byCopy, byEvent lateOrders
	later                    *commerce.Event
	// copiedBytes is the size of the copies, as far as they were gathered.
	copiedBytes int
	// uncountable reports that the server cannot count the orders when a client asks for their
	// number.
	uncountable bool
	// sums are what the orders cost by month, and spending the records that say so. unsummed
	// reports that an order cannot be read.
	table    *table.Table
	sums     commerce.Spendings
	spending map[model.Keys]model.Record
	unsummed bool
	// needed reports whether an order refers to the customer.
	needed bool
	// address is an e-mail address whose claim names the customer; empty where none is known. A
	// customer of whom nothing else is left gets it.
	address string
}

func newCustomerUnit(t *table.Table, id string) *customerUnit {
	return &customerUnit{
		id: commerce.CustomerID(id), table: t, edged: newEdged(&model.EntityCustomer, map[string]string{"customerId": id}),
		sums: commerce.Spendings{}, spending: map[model.Keys]model.Record{},
	}
}

func (u *customerUnit) add(e *model.Entity, rec model.Record) {
	switch e.Root().Name {
	case model.EntityCustomer.Name:
		u.keep(rec)
	case model.EntityLastEvent.Name:
		u.lastEvent = rec
	case model.EntitySpending.Name:
		u.spending[model.KeyOf(rec)] = rec
	case model.EntityCustomerOrder.Name:
		u.copies++
		u.sum(rec)
		u.updated = u.updated.later(lateOrders{[]commerce.OrderID{commerce.OrderID(model.KeyValue(e.SK, model.TextOf(rec, model.AttrSK)))}, updatedAt(rec)})
		u.copiedBytes += model.SizeOf(rec)
		// It takes a Query for each megabyte or somewhat less. The next reading counts them.
		u.uncountable = u.copiedBytes > (table.MaxCountedPages-1)*table.PageBytes
	}
}

func (u *customerUnit) key(*table.Table) model.Keys { return u.primary }

func (u *customerUnit) read(ctx context.Context, c *check) error {
	u.claim, u.lastEvent, u.owner, u.copies = nil, nil, nil, 0
	u.sums, u.unsummed = commerce.Spendings{}, false
	b := c.table.KeyBuilder()
	lastEventKey := model.LastEvent.Key(b, u.id)
	if b.Err != nil {
		return b.Err
	}
	found, err := c.client.Get(ctx, repair.Consistent, append(u.keys(), lastEventKey)...)
	if err != nil {
		return err
	}
	u.records, u.lastEvent = found, found[lastEventKey]
	u.before = u.lastEvent
	pages := 0
	if u.copies, pages, err = c.client.Copies(ctx, u.id, u.sum); err != nil {
		return err
	}
	if err := u.readSpending(ctx, c); err != nil {
		return err
	}
	if err := u.readLater(ctx, c); err != nil {
		return err
	}
	u.uncountable = pages > table.MaxCountedPages
	if err := u.readClaim(ctx, c); err != nil {
		return err
	}
	if owner := commerce.CustomerID(model.TextOf(u.claim, "customerId")); owner != "" && owner != u.id {
		b := c.table.KeyBuilder()
		if k := model.CustomerByID.Key(b, owner); b.Err == nil {
			if found, err = c.client.Get(ctx, repair.Consistent, k); err != nil {
				return err
			}
			u.owner = found[k]
		}
	}
	return nil
}

// readClaim reads the claim of the customer's e-mail address. A claim that no longer names the
// customer does not tell the address.
func (u *customerUnit) readClaim(ctx context.Context, c *check) error {
	for {
		k := u.claimKey(c.table)
		found, err := c.client.Get(ctx, repair.Consistent, k)
		if err != nil {
			return err
		}
		u.claim = found[k]
		if u.address == "" || model.TextOf(u.claim, model.AttrCustomerID) == string(u.id) {
			return nil
		}
		u.address = ""
	}
}

// standIn is a customer of whom nothing but the ID is known, and perhaps the address.
func (u *customerUnit) standIn(t *table.Table) *commerce.Customer {
	at, email := t.Now(), u.address
	if email == "" {
		email = string(u.id) + repair.StandInEmailDomain
	}
	return &commerce.Customer{ID: u.id, Name: string(u.id), Email: email, CreatedAt: at, UpdatedAt: at, Version: 1}
}

// claimKey is the key of the claim that the customer should have; empty where the address is none.
func (u *customerUnit) claimKey(t *table.Table) model.Keys {
	truth, _ := believed(&repair.Verdict{Table: t}, &u.edged, t.DecodeCustomer)
	if truth == nil {
		truth = u.standIn(t)
	}
	email, err := commerce.ParseEmail(truth.Email)
	if err != nil {
		return model.Keys{}
	}
	return model.EmailClaim.Key(t.KeyBuilder(), email)
}

func (u *customerUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	b := c.table.KeyBuilder()
	v.Basis, v.Believed = u.primary, u.main()
	truth, from := believed(v, &u.edged, c.table.DecodeCustomer)
	v.Source = model.KeyOf(from)
	exists := truth != nil || u.main() != nil || u.needed || u.copies > 0
	u.judgeLastEvent(v, exists)
	for _, rec := range u.spending {
		if !exists {
			v.Orphan(repair.DriftSpending, rec, "the customer does not exist")
		}
	}
	detail := "only edges are left"
	switch {
	case truth == nil && (!u.isLost() || !u.needed && u.copies == 0):
		judgeUnread(v, &u.edged, c.table.DecodeCustomer)
		return v
	case truth == nil:
		truth = u.standIn(c.table)
		detail = "the customer has orders, and nothing tells who it is"
		if u.address != "" {
			detail = "the customer has orders, and nothing is left but the claim of an e-mail address"
			v.Relied = append(v.Relied, repair.Relied{Key: model.KeyOf(u.claim), Have: u.claim})
		}
	case u.main() == nil:
		v.Believed = nil
	default:
		v.Basis, v.Believed = model.KeyOf(from), from
	}
	customer := *truth
	if customer.AccountRepID == "" {
		customer.AccountRepID = commerce.EmployeeID(model.IndexValueOf(&model.EntityCustomerRep, u.edge(&model.EntityCustomerRep)))
	}
	if u.main() != nil { // an edge does not tell
		customer.SpendingComplete = (&model.Reader{Record: u.main()}).Flag(model.AttrSpendingComplete)
	}
	// Mutations only raise orderCount, and remove no order. So a count is right if the record that
	// was read before it is still the same when it is repaired: orderCount cannot have changed and
	// changed back.
	if u.main() == nil || !u.uncounted() || u.uncountable {
		n := max(0, u.copies+c.toCome(u.id))
		customer.OrderCount = &n
		if u.uncounted() {
			// Placing an order does not touch such a customer's record, but it writes the last
			// event.
			v.Relied = append(v.Relied, repair.Relied{Key: model.LastEvent.Key(b, u.id), Have: u.before})
		}
	} else {
		customer.OrderCount = nil
	}
	u.judgeSpending(c, v, &customer)
	wanted := model.CustomerRecords(b, customer)
	if b.Err != nil {
		v.Unreadable(model.CustomerByID.Key(&model.KeyBuilder{Shards: b.Shards}, u.id), b.Err)
		return v
	}
	main, claim := wanted[0], wanted[1]
	switch {
	case u.main() != nil:
		v.Compare(&model.EntityCustomer, u.main(), main, repair.DriftEdgeDiffers)
	case from == nil:
		v.Unknown(repair.DriftCustomerMissing, main, detail)
	default:
		v.Absent(repair.DriftCustomerMissing, main, from, detail)
	}
	u.judgeClaim(v, claim)
	u.judgeEdges(v, wanted)
	return v
}

// judgeLastEvent finds a last event that is not whole, of nobody, or not the last one.
func (u *customerUnit) judgeLastEvent(v *repair.Verdict, exists bool) {
	if u.lastEvent == nil {
		return
	}
	event, err := model.DecodeEvent(model.Reader{Record: v.Legible(&model.EntityLastEvent, u.lastEvent)})
	switch {
	case !exists:
		v.Orphan(repair.DriftLastEvent, u.lastEvent, "the customer does not exist")
	case err != nil:
		v.Orphan(repair.DriftLastEvent, u.lastEvent, strings.TrimPrefix(repair.ReasonOf(err), model.ErrCorrupt.Error()+": "))
	case u.isOutdated(v.Table) && v.Unread[model.KeyOf(u.lastEvent)] == nil:
		v.Find(repair.DriftLastEvent, model.KeyOf(u.lastEvent), fmt.Sprintf("it is event %s, and order %s has event %s", event.ID, u.later.OrderID, u.later.ID), repair.ByRepair)
		v.Fixes = append(v.Fixes, repair.Replacement(u.lastEvent, model.LastEventRecord(v.Table.KeyBuilder(), u.id, *u.later)))
	default:
		v.Compare(&model.EntityLastEvent, u.lastEvent, model.LastEventRecord(v.Table.KeyBuilder(), u.id, *event), repair.DriftLastEvent)
	}
}

func (u *customerUnit) judgeClaim(v *repair.Verdict, want model.Record) {
	have := u.claim
	if v.Legible(&model.EntityEmailClaim, have); have != nil && v.Left(&model.EntityEmailClaim, model.KeyOf(have), model.AttrCustomerID) {
		return
	}
	email := model.KeyValue(model.EntityEmailClaim.PK, model.TextOf(want, model.AttrPK))
	switch owner := model.TextOf(have, "customerId"); {
	case have == nil && u.first() == nil:
		// It comes with the stand-in.
		v.Create(want, nil)
	case have == nil:
		v.Absent(repair.DriftEmailClaim, want, nil, fmt.Sprintf("the address is not claimed for customer %s", u.id))
	case owner != string(u.id) && hasEmail(u.owner, email):
		v.Find(repair.DriftEmailShared, model.CustomerByID.Key(v.Table.KeyBuilder(), u.id), fmt.Sprintf("%s is also the address of customer %s, who is found by it", email, owner), repair.ByHand)
	default:
		if other := commerce.CustomerID(owner); other != u.id {
			b := v.Table.KeyBuilder()
			if k := model.CustomerByID.Key(b, other); b.Err == nil {
				v.Relied = append(v.Relied, repair.Relied{Key: k, Have: u.owner})
			}
		}
		v.Compare(&model.EntityEmailClaim, have, want, repair.DriftEmailClaim)
	}
}

// uncounted reports whether the customer's record keeps no number of orders.
func (u *customerUnit) uncounted() bool {
	return u.main() != nil && u.main()[model.AttrOrderCount] == nil
}

// doubt requires of a customer whose orders are counted for the first time that none was placed
// meanwhile.
func (u *customerUnit) doubt(*repair.Verdict) string {
	if u.uncountable && u.uncounted() && !model.SameRecord(u.before, u.lastEvent) {
		return "orders were placed each time that they were counted"
	}
	return ""
}

// rooted reports whether the customer's record was read.
func (u *customerUnit) rooted() bool { return u.main() != nil }

// hasValidEmail reports whether a customer's record has an address that can be claimed.
func hasValidEmail(customer model.Record) bool {
	_, err := commerce.ParseEmail(model.TextOf(customer, "email"))
	return err == nil
}

// hasEmail reports whether a customer's record has that address, which is in the form of
// commerce.ParseEmail.
func hasEmail(customer model.Record, email string) bool {
	parsed, err := commerce.ParseEmail(model.TextOf(customer, "email"))
	return err == nil && parsed == email
}

// settled tells the check that the claim belongs to a customer who is missing, also if that is not
// repaired.
func (u *customerUnit) settled(c *check, v, _ *repair.Verdict) {
	if u.claim != nil && v.Has(repair.DriftCustomerMissing) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported.Add(model.KeyOf(u.claim).Text())
	}
}

// claimUnit is the claim of an e-mail address, and the records of the customer whom it names.
type claimUnit struct {
	selfContained
	email    string
	claim    model.Record
	customer edged
}

func (u *claimUnit) key(t *table.Table) model.Keys {
	return model.EmailClaim.Key(t.KeyBuilder(), u.email)
}

func (u *claimUnit) add(_ *model.Entity, rec model.Record) { u.claim = rec }

func (u *claimUnit) read(ctx context.Context, c *check) error {
	u.claim, u.customer = nil, edged{}
	b := c.table.KeyBuilder()
	k := model.EmailClaim.Key(b, u.email)
	if b.Err != nil {
		return b.Err
	}
	found, err := c.client.Get(ctx, repair.Consistent, k)
	if err != nil {
		return err
	}
	u.claim = found[k]
	u.customer = u.named()
	u.customer.records, err = c.client.Get(ctx, repair.Consistent, u.customer.keys()...)
	return err
}

// named is the customer whom the claim names, of whom nothing has been read.
func (u *claimUnit) named() edged {
	return newEdged(&model.EntityCustomer, map[string]string{"customerId": model.TextOf(u.claim, model.AttrCustomerID)})
}

// judge finds a claim that nobody has a right to. What else is wrong with a claim, its customer's
// unit finds.
func (u *claimUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table}
	if u.claim == nil {
		return v
	}
	if v.Legible(&model.EntityEmailClaim, u.claim); v.Left(&model.EntityEmailClaim, model.KeyOf(u.claim), model.AttrCustomerID) {
		return v
	}
	// A customer who is missing may yet be restored, with the address of the edge.
	of := u.customer.first()
	v.Basis, v.Believed = u.customer.primary, u.customer.main()
	id := model.TextOf(u.claim, "customerId")
	switch {
	case hasEmail(of, u.email), c.foundAlready(model.KeyOf(u.claim)):
	case of == nil && c.isUnread(commerce.CustomerID(id)):
		// Once the order can be read, the customer may be restored with this address.
	case of != nil && !hasValidEmail(of):
		// The customer's record lacks a valid address, and this may be it.
	case of == nil:
		v.Orphan(repair.DriftOrphanClaim, u.claim, fmt.Sprintf("customer %q does not exist", id))
	default:
		v.Orphan(repair.DriftOrphanClaim, u.claim, fmt.Sprintf("the address of customer %s is %s", id, model.TextOf(of, "email")))
	}
	return v
}

// rooted reports whether the record of the claim's customer was read.
func (u *claimUnit) rooted() bool { return u.customer.main() != nil }
