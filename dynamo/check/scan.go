package check

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// segmentScan scans one segment of the table and verifies its records. The scan uses eventually
// consistent reads, so a correct record can look inconsistent. Therefore, the check reads such a
// record again before it reports an inconsistency.
type segmentScan struct {
	check *check

	// current is the verifier of the item collection that is being scanned. It is nil if the records
	// of this collection are not verified. partition is the partition key of the collection.
	current       verifier
	currentTarget target
	partition     string

	// completed contains the verifiers of the item collections that end on the current page of the
	// Scan.
	completed map[target]verifier
	// copies are the keys of the order copies on the current page. These copies are in customers'
	// partitions.
	copies []model.CustomerOrderKey
	// claimed are the records on the current page whose values claims must reserve.
	claimed []claimedRecord
}

// claimedRecord is a record, and one of the claims that its entity has.
type claimedRecord struct {
	claim  *model.Entity
	record model.Record
}

// addPage processes one page of scanned records. last reports whether this is the last page of the
// segment.
func (g *segmentScan) addPage(ctx context.Context, page []map[string]types.AttributeValue, last bool) error {
	c := g.check
	g.completed, g.copies, g.claimed = map[target]verifier{}, nil, nil
	records, foreign := len(page), 0
	for _, rec := range page {
		k := model.KeyOf(rec)
		e := model.EntityOf(k)
		if e == &model.EntityLayout {
			records--
		}
		if e == nil {
			foreign++
			if c.opts.Derivation == nil {
				c.reportKeyProblem(k)
			}
			continue
		}
		if e.Name == model.EntityStockBucket.Name {
			c.addStoredBucket(rec)
		}
		if e.Name == model.EntityOrderCounts.Name {
			c.addStoredStatusCounts(rec)
		}
		if e == &model.EntityDailySales {
			c.addStoredSales(rec)
		}
		for _, claim := range e.Claims() {
			if claim != &model.EntityEmailClaim && c.verifiesClaim(claim, false) { // customerVerifier verifies email claims
				g.claimed = append(g.claimed, claimedRecord{claim, rec})
			}
		}
		if k.PK != g.partition {
			g.finishCollection()
			g.beginCollection(e, k.PK)
		}
		if e.Name == model.EntityCategory.Name {
			c.recordCategoryCount(rec)
		}
		if g.current == nil {
			continue
		}
		g.current.addRecord(e, rec)
		if e.Name == model.EntityCustomerOrder.Name && !c.opts.Derivation.IsRecord() {
			g.copies = append(g.copies, model.CustomerOrderKey{
				Customer: commerce.CustomerID(model.FirstPlaceholderValue(e.PK, k.PK)), Order: commerce.OrderID(model.FirstPlaceholderValue(e.SK, k.SK)),
			})
		}
	}
	if last {
		g.finishCollection()
	}
	if err := g.readRelated(ctx); err != nil {
		return err
	}
	g.verifyCompletedCollections()
	c.mu.Lock()
	c.summary.Records += records
	c.summary.External += foreign
	c.reportProgressLocked()
	c.mu.Unlock()
	return c.verifyAtCandidateLimit(ctx)
}

// reportKeyProblem reports a record of no entity whose key resembles the key of one.
func (c *check) reportKeyProblem(k model.Keys) {
	if problem := model.KeyProblem(k); problem != "" {
		diag := &diagnosis{table: c.table}
		diag.addFinding(kindKeyCase, k, problem, remedyManual)
		c.report(diag, diag)
	}
}

func (g *segmentScan) finishCollection() {
	if g.current != nil {
		g.completed[g.currentTarget] = g.current
	}
	g.current, g.partition = nil, ""
}

// verifiesAlone reports whether the declaration of an entity is all that is needed to verify its item
// collection. Other collections have a verifier of their own.
func verifiesAlone(e *model.Entity) bool {
	base := e.BaseEntity()
	switch base.PK {
	case model.EntityOrder.PK, model.EntityCustomer.PK, model.EntityEmployee.PK, model.EntityProduct.PK, model.EntityIdempotency.PK:
		return false
	}
	return base.Kind == model.Base
}

// beginCollection creates the verifier of an item collection. Categories and order counts get no
// verifier here, because they are verified only after the scan. Idempotency records are never
// verified.
func (g *segmentScan) beginCollection(e *model.Entity, partition string) {
	c := g.check
	g.partition = partition
	if d := c.opts.Derivation; d.IsRecord() {
		switch {
		case d.Entity.Kind == model.Claim:
			if e == d.Entity {
				k := model.Keys{PK: partition, SK: string(e.SK)}
				g.currentTarget, g.current = claimTarget(targetClaim, e, k), newClaimVerifier(e, k)
			}
		case e.PK == d.Entity.PK:
			g.currentTarget, g.current = target{targetEdge, partition}, newEdgeVerifier(d.Entity, partition)
		}
		return
	}
	id := model.FirstPlaceholderValue(e.PK, partition)
	switch e.PK {
	case model.EntityOrder.PK:
		g.currentTarget = target{targetOrder, id}
		g.current = &orderVerifier{id: commerce.OrderID(id), copies: map[commerce.CustomerID]model.Record{}, others: recordsWithEdges{}, edges: edgesOfOrder(commerce.OrderID(id))}
	case model.EntityCustomer.PK:
		g.currentTarget, g.current = target{targetCustomer, id}, newCustomerVerifier(g.check.table, id)
	case model.EntityEmployee.PK:
		g.currentTarget, g.current = target{targetEmployee, id}, newEmployeeVerifier(id)
	case model.EntityProduct.PK:
		v := newProductVerifier(id)
		v.fromScan = true
		g.currentTarget, g.current = target{targetProduct, id}, v
	default:
		if e.Kind == model.Claim && c.verifiesClaim(e, true) {
			k := model.Keys{PK: partition, SK: string(e.SK)}
			g.currentTarget, g.current = claimTarget(targetClaim, e, k), newClaimVerifier(e, k)
		}
		if verifiesAlone(e) {
			g.currentTarget, g.current = target{targetRecords, partition}, newRecordsVerifier(partition)
		}
	}
}

// readRelated reads related records in other partitions. For an order, it reads the copy in the
// customer's partition. For such a copy, it reads the order's own record. For a record with a claimed
// value, it reads the claim. For a claim, it reads the record.
func (g *segmentScan) readRelated(ctx context.Context) error {
	c := g.check
	var ks []model.Keys
	for _, v := range g.completed {
		switch v := v.(type) {
		case *orderVerifier:
			ks = append(ks, v.copyKey(c.table, v.namedCustomer()))
		case *customerVerifier:
			ks = append(ks, v.emailClaimKey(c.table))
		case *claimVerifier:
			if c.table.Layout.Derivations().Writes(v.entity.Name) {
				ks = append(ks, v.claimant.primaryKey)
			}
		}
	}
	for _, r := range g.claimed {
		ks = append(ks, r.claim.ClaimedKey(r.record))
	}
	for _, k := range g.copies {
		ks = append(ks, model.OrderByID.Key(c.table.KeyBuilder(), k.Order))
	}
	// Sort the keys, so that two checks of the same table send the same requests. The map iterations
	// above have a random order.
	slices.SortFunc(ks, func(a, b model.Keys) int { return cmp.Compare(a.PK+" "+a.SK, b.PK+" "+b.SK) })
	found, err := c.client.get(ctx, eventual, ks...)
	if err != nil {
		return err
	}
	for _, v := range g.completed {
		switch v := v.(type) {
		case *orderVerifier:
			if k := v.copyKey(c.table, v.namedCustomer()); found[k] != nil {
				v.copies[v.namedCustomer()] = found[k]
			}
		case *customerVerifier:
			v.claim = found[v.emailClaimKey(c.table)]
		case *claimVerifier:
			if rec := found[v.claimant.primaryKey]; rec != nil {
				v.claimant.put(rec)
			}
		}
	}
	for _, r := range g.claimed {
		v := newClaimedVerifier(r.claim, model.KeyOf(r.record))
		v.put(r.record)
		v.claim = found[r.claim.ClaimedKey(r.record)]
		if diag := c.ofDerivation(v.verify(c)); !diag.isClean() {
			c.addCandidate(claimTarget(targetClaimed, r.claim, v.primaryKey), candidate{findings: diag.findings})
		}
	}
	for _, k := range g.copies {
		order := found[model.OrderByID.Key(c.table.KeyBuilder(), k.Order)]
		if model.TextOf(order, "customerId") != string(k.Customer) {
			c.addCandidate(target{targetOrder, string(k.Order)}, candidate{extraCustomers: []commerce.CustomerID{k.Customer}})
		}
	}
	return nil
}

// verifyCompletedCollections verifies the completed item collections. It selects inconsistent
// records to be verified again.
func (g *segmentScan) verifyCompletedCollections() {
	c := g.check
	for k, v := range maps.All(g.completed) {
		diag := v.verify(c)
		c.noteScanned(v)
		if order, ok := v.(*orderVerifier); ok {
			if order.decoded != nil && diag.isClean() {
				c.orders.add(order.id, order.decodedWithItems())
			} else {
				c.orders.add(order.id, nil)
			}
		}
		if diag.isClean() {
			v.updateCheckState(c, diag, diag)
			continue
		}
		c.addCandidate(k, candidate{findings: diag.findings, recountStock: diag.hasKind(kindStockTotal)})
	}
}

// noteScanned counts a verified item collection in the summary. It also stores values from the
// collection, such as a product's stock. After the scan, the check compares these values with the
// records of other collections.
func (c *check) noteScanned(v verifier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch v := v.(type) {
	case *orderVerifier:
		c.summary.Orders++
		if late, ok := v.findNewerEvents(); ok {
			c.addCandidateLocked(target{targetCustomer, string(v.decoded.CustomerID)}, candidate{newerEvents: late})
		}
	case *customerVerifier:
		c.summary.Customers++
		if late, ok := v.findNewerCopies(c.table); ok {
			c.addCandidateLocked(target{targetCustomer, string(v.id)}, candidate{newerCopies: late})
		}
		if v.needsReservation(c) && !v.reservationCounted() {
			c.addCandidateLocked(target{targetCustomer, string(v.id)}, candidate{})
		}
	case *claimVerifier:
		if id := model.TextOf(v.claim, model.AttrCustomerID); v.entity == &model.EntityEmailClaim && v.claimant.record() == nil && id != "" {
			c.addCandidateLocked(target{targetCustomer, id}, candidate{claimedAddress: model.FirstPlaceholderValue(v.entity.PK, v.claimKey.PK)})
		}
	case *employeeVerifier:
		c.summary.Employees++
		c.addStoredRepCounts(v)
	case *recordsVerifier:
		if v.main.entity == &model.EntityWarehouse {
			c.summary.Warehouses++
			c.seenWarehouses[warehouseOf(v.partition)] = v.main.record() != nil
		}
		c.addStoredNumbers(v)
	case *productVerifier:
		c.summary.Products++
		c.countInCategory(v)
		if v.decoded != nil {
			c.addStoredOrderCount(v.decoded)
			if v.decoded.StockBuckets > 1 {
				c.buckets[v.sku] = true
				c.addCandidateLocked(target{targetProduct, string(v.sku)}, candidate{})
			}
		}
		if v.levelSum != nil && v.record() != nil {
			at := model.Reader{Record: v.record()}
			if available := at.Number(model.AttrAvailable); at.Err() == nil {
				c.numbers.addStored(productStock(v.sku), available, true)
			}
			for _, level := range v.decodedLevels {
				c.numbers.add(c.layout(), level)
			}
		}
	}
}
