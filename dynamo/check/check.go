package check

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Checker verifies the records of a table, and repairs inconsistent records.
type Checker struct{ table *table.Table }

// NewChecker returns the checker of a table.
func NewChecker(t *table.Table) Checker { return Checker{t} }

// Options configures CheckRecords.
type Options struct {
	// Segments is the number of table segments, which the scan reads in parallel. 0 means 1.
	Segments int
	// Parallel is the maximum number of records that are verified at the same time. 0 means 1.
	Parallel int
	// Repair reports whether the check repairs inconsistencies instead of only reporting them.
	Repair bool
	// Restore reports whether a repair writes the missing record of a customer or employee from an
	// edge, which is a copy with other index keys. Otherwise, the customer or employee counts as
	// deleted, because the check cannot distinguish a deleted record from a lost one.
	Restore bool
	// IndexLag is the maximum time by which the global secondary index lags behind the table. The
	// check waits for this time before it reads the index. 0 means one second.
	IndexLag time.Duration
	// MaxCandidates limits the number of records that wait in memory for verification. At this limit,
	// the check verifies records during the scan. Some records can be verified only after the scan. If
	// MaxCandidates of them are waiting, the check reports further ones as unverified. 0 means 10,000.
	MaxCandidates int
	// Derivation restricts the check to one derivation, which may still be incomplete. A repair then
	// adds it where it is missing, in one pass. It is nil if the check includes all that is readable.
	Derivation *model.Derivation
	// SegmentsDone is the number of segments that an earlier check of an edge or claim has completed. Such a
	// check reads one segment after another, and calls OnSegment with the number of completed segments.
	SegmentsDone int
	OnSegment    func(done int) error
	// UnitsPerSecond limits the read and write units that the check consumes in a second. 0 means no
	// limit.
	UnitsPerSecond float64
	// OnInconsistency receives each inconsistency.
	//
	// CheckRecords calls OnInconsistency, OnUnverified and OnProgress one at a time, never
	// concurrently. Each of these functions may be nil.
	OnInconsistency func(Inconsistency)
	// OnUnverified receives each record that could not be verified.
	OnUnverified func(UnverifiedRecord)
	// OnProgress receives the progress of the current pass after each scanned page and after each
	// verified candidate.
	OnProgress func(Progress)
}

// NoIndexLag is the value of Options.IndexLag for an index that is always up to date.
const NoIndexLag time.Duration = -1

const defaultIndexLag = time.Second

// Inconsistency is a record that contradicts another record or the data model.
type Inconsistency struct {
	// Kind is the kind of inconsistency. Kinds lists the names of all kinds.
	Kind string `json:"kind"`
	// PK and SK are the primary key of the record, or the key that a missing record should have.
	PK string `json:"pk"`
	SK string `json:"sk"`
	// Detail states the stored values and the expected values.
	Detail string `json:"detail"`
	// Repaired reports whether the inconsistency has been repaired.
	Repaired bool `json:"repaired"`
	// ByHand reports whether an operator must repair the inconsistency, because CheckRecords cannot.
	ByHand bool `json:"byHand,omitempty"`
	// StandIn reports whether the record is lost, so the repair writes a substitute with its ID.
	StandIn bool `json:"standIn,omitempty"`
}

// UnverifiedRecord is a record that could not be verified.
type UnverifiedRecord struct {
	// PK and SK are the primary key of the record.
	PK string `json:"pk"`
	SK string `json:"sk"`
	// Reason explains why the record could not be verified.
	Reason string `json:"reason"`
}

// Progress is the progress of a check.
type Progress struct {
	// Records is the number of records that the scan has read. Found is the number of inconsistencies
	// that the check has found.
	Records, Found int
	// ToVerify is the number of candidates that are not verified yet. A candidate is a record that may
	// be inconsistent. The check verifies one kind of record after another, such as all orders first.
	// ToVerify includes only the current kind. While the check only scans, ToVerify is 0.
	ToVerify int
}

// Summary is the result of CheckRecords. After an error, it describes the work done before it.
type Summary struct {
	// Records is the number of records that the last pass has scanned, without the layout. External is
	// the number of these records that match no entity of the data model. Other software wrote them.
	Records, External int
	// Orders, Customers, Products, Employees and Warehouses count the verified records of each type.
	Orders, Customers, Products, Employees, Warehouses int
	// Found and Repaired map each kind's name to the number of inconsistencies found and repaired. An
	// unrepaired inconsistency counts only if the last pass has found it.
	Found, Repaired map[string]int
	// ByHand is the number of inconsistencies that CheckRecords cannot repair, so an operator must.
	ByHand int
	// Unverified is the number of records that could not be verified. For example, the record changed
	// between any two reads, or it depends on a record that cannot be read.
	Unverified int
	// Requests is the number of read requests. ReadUnits is the number of read capacity units that
	// DynamoDB reported for these requests. If DynamoDB reported none, ReadUnits is 0.
	Requests  int
	ReadUnits float64
	// WriteUnits is the number of write units that the repairs consumed. A check of one derivation
	// without Repair computes how many they would consume.
	WriteUnits float64
	// ScanUnits is the part of ReadUnits that a check without candidates would consume. AddedUnits are the
	// read units that such a check would also consume, because of the records that a repair adds. If a
	// repair removes records, they can be negative.
	ScanUnits, AddedUnits float64
}

// UnrepairedCount returns the number of inconsistencies that have not been repaired.
func (s Summary) UnrepairedCount() int {
	n := 0
	for kind, found := range s.Found {
		n += found - s.Repaired[kind]
	}
	return n
}

type targetKind int

// The kinds of records, in the order of their verification. Each kind comes after the kinds on
// which it depends.
const (
	targetOrder targetKind = iota
	targetCustomer
	targetClaimed
	targetClaim
	targetEmployee
	targetProduct
	targetCategory
	targetRecords
	targetStatusCounts
	targetRepOrders
	targetEdge
	targetKindCount
)

type target struct {
	kind targetKind
	id   string
}

// verifier verifies one record, called the main record, and the records that derive from it, such
// as copies. A verifier reads all these records itself, so verifiers can run in parallel.
type verifier interface {
	addRecord(e *model.Entity, rec model.Record)
	// read discards the added records, and reads the records from DynamoDB again.
	read(ctx context.Context, c *check) error
	// verify compares the records that were read, and returns the inconsistencies that it finds.
	verify(c *check) *diagnosis
	// updateCheckState stores values in c that the verification of other records needs. diag contains
	// all confirmed findings. last contains the findings that remain after repairs.
	updateCheckState(c *check, diag, last *diagnosis)
	// key returns the primary key of the main record. The check reports it if verification fails.
	key(t *table.Table) model.Keys
	// uncertainty returns why the result of verify may be wrong, such as a concurrent change, or "".
	uncertainty(diag *diagnosis) string
	// markRepaired is called after each successful repair.
	markRepaired()
	// hasMainRecord reports whether the main record was found. If the result is false during the scan,
	// the check postpones the verification until after the scan.
	hasMainRecord() bool
}

// baseVerifier contains default implementations of verifier's methods. By default, each read is
// reliable, the main record exists, and findings do not affect other records.
type baseVerifier struct{}

func (baseVerifier) uncertainty(*diagnosis) string { return "" }

func (baseVerifier) markRepaired() {}

func (baseVerifier) hasMainRecord() bool { return true }

func (baseVerifier) updateCheckState(*check, *diagnosis, *diagnosis) {}

// candidate contains the reasons to verify a record again, and values from other records that the
// verification needs.
type candidate struct {
	// findings are the inconsistencies that the scan found. The verification must confirm them.
	findings []finding
	// extraCustomers are further customers whose partitions may contain a copy of the order.
	extraCustomers []commerce.CustomerID
	// referenced reports whether another record refers to this customer or warehouse. If the customer
	// or warehouse is missing, the repair then writes a substitute.
	referenced bool
	// recountStock reports whether to recompute the stock from the inventory levels and the orders.
	recountStock bool
	// countOrders reports whether the orders that contain the product must be counted again.
	countOrders bool
	// newerCopies (from the customer's partition) and newerEvents (from orders' partitions) are
	// orders that may have a newer event than the customer's stored last event.
	newerCopies, newerEvents newerOrders
	// claimedAddress is an email address that an email claim reserves for the customer.
	claimedAddress string
}

const defaultMaxCandidates = 10_000

// check is the state of one pass of CheckRecords. It needs a few hundred bytes of memory for each
// product, and for each pending, confirmed or shipped order.
type check struct {
	table  *table.Table
	client *client
	opts   Options
	// repairs reports whether the check writes repairs. If it is restricted to a derivation, opts.Repair
	// is false, because no other records are completed.
	repairs bool

	// verifying is locked during verification in the scan. Others at the candidate limit wait for it.
	verifying sync.Mutex

	mu         sync.Mutex
	summary    Summary
	candidates map[target]candidate
	// postponed are the candidates to verify only after the scan (see verifier.hasMainRecord).
	postponed map[target]candidate
	scanDone  bool
	// toVerify is the number of candidates of the current kind that are not verified yet.
	toVerify int
	reported recentSet
	// reports contains the unrepaired inconsistencies and unverified records that this pass or an
	// earlier pass has reported. They are not reported again.
	reports *recentSet

	// numbers compares derived numbers with the scanned records. It includes orders only after they
	// are verified.
	numbers numbers
	// salesVerified reports whether the check includes the sales by day.
	salesVerified bool
	// orders contains what the scan has learnt about the orders, for recounts.
	orders *scannedOrders
	// scannedCounts are the scanned records with order counts by status. keepsStatusCounts reports
	// whether these counts are complete. uncounted are the records to verify that are not verified yet,
	// and statuses counts their orders.
	scannedCounts     map[derive.Target]bool
	keepsStatusCounts bool
	uncounted         sync.Map
	statuses          *recount
	// buckets contains the products whose stock is spread over several buckets.
	buckets map[commerce.SKU]bool
	// uncertainProducts maps a product to an unreadable order that may reserve stock of the product.
	uncertainProducts map[commerce.SKU]commerce.OrderID
	// inconsistentCustomers are the customers with an inconsistent order that was not repaired.
	inconsistentCustomers map[commerce.CustomerID]bool
	// unreadableCustomers are the customers whose ID is in an unreadable order.
	unreadableCustomers map[commerce.CustomerID]bool
	// abandonedOrder is an order that was not verified, because too many records wait for the end of
	// the scan. Its items are unknown, so it may reserve stock of any product. It is empty if none.
	abandonedOrder commerce.OrderID
	// The scan read seenWarehouses. Inventory levels or employees refer to referencedWarehouses.
	seenWarehouses       map[commerce.WarehouseID]bool
	referencedWarehouses map[commerce.WarehouseID]bool
	// missingCopies is each customer's right number of order copies minus the stored, after repairs.
	missingCopies map[commerce.CustomerID]int
}

// maxRepairPasses is the maximum number of times that CheckRecords repairs the whole table.
const maxRepairPasses = 3

// CheckRecords finds inconsistent records and, if opts.Repair is set, repairs them. Clients may
// change the table during the check.
//
// After a pass that has repaired a record, CheckRecords checks the whole table again. So a result
// without inconsistencies always comes from a pass that found none. After maxRepairPasses, the last
// pass repairs nothing.
//
// Errors: ErrUnavailable, ErrNoTable, ErrAccessDenied or the context's error. If opts.Repair is
// set, ClockError is also possible.
func (checks Checker) CheckRecords(ctx context.Context, opts Options) (Summary, error) {
	if err := checks.table.ClockErr(); err != nil && opts.Repair {
		return Summary{}, err
	}
	opts.Segments, opts.Parallel = max(1, opts.Segments), max(1, opts.Parallel)
	if opts.MaxCandidates == 0 {
		opts.MaxCandidates = defaultMaxCandidates
	}
	if opts.IndexLag == 0 {
		opts.IndexLag = defaultIndexLag
	}
	t := checks.table
	if d := opts.Derivation; d != nil {
		switch t.Layout.Derivations().Of(d.Name).State {
		case model.Absent: // find out what it would take to add it
			t = t.WithDerivation(d.Name, model.Written)
		case model.Dropped: // what remains of it is superfluous
			t = t.WithDerivation(d.Name, model.Absent)
		}
	}
	client, reports := newClient(t, opts.UnitsPerSecond), &recentSet{}
	var total Summary
	for pass := 1; ; pass++ {
		c := newCheck(t, client, opts, reports)
		err := c.run(ctx)
		repaired := len(c.summary.Repaired) > 0
		total = c.summary.afterPass(total)
		client.addCost(&total)
		if err != nil || !repaired || opts.Derivation != nil {
			return total, err
		}
		opts.Repair = pass < maxRepairPasses
	}
}

// afterPass returns the summary of several passes. s describes the last pass, and earlier describes
// the passes before it. Their unrepaired inconsistencies do not count, because the last pass has
// found them again, unless they are gone.
func (s Summary) afterPass(earlier Summary) Summary {
	for kind, n := range earlier.Repaired {
		s.Found[kind] += n
		s.Repaired[kind] += n
	}
	return s
}

// newCheck returns the state of one pass. reports contains the unrepaired inconsistencies and
// unverified records that earlier passes have reported.
func newCheck(t *table.Table, client *client, opts Options, reports *recentSet) *check {
	c := &check{
		table: t, client: client, opts: opts, reports: reports, repairs: opts.Repair,
		summary:    Summary{Found: map[string]int{}, Repaired: map[string]int{}},
		candidates: map[target]candidate{}, postponed: map[target]candidate{},
		buckets:           map[commerce.SKU]bool{},
		uncertainProducts: map[commerce.SKU]commerce.OrderID{}, unreadableCustomers: map[commerce.CustomerID]bool{}, inconsistentCustomers: map[commerce.CustomerID]bool{},
		seenWarehouses: map[commerce.WarehouseID]bool{}, referencedWarehouses: map[commerce.WarehouseID]bool{},
		missingCopies: map[commerce.CustomerID]int{}, scannedCounts: map[derive.Target]bool{},
	}
	c.opts.Repair = opts.Repair && opts.Derivation == nil
	sales := t.Layout.Derivations().Of(model.EntityDailySales.Name)
	if c.salesVerified = sales.State == model.Readable; opts.Derivation != nil {
		c.salesVerified = opts.Derivation.Entity == &model.EntityDailySales
	}
	if !c.salesVerified || !t.Layout.Derivations().Writes(model.EntityDailySales.Name) {
		c.numbers.omitted = &model.EntityDailySales
	}
	c.orders, c.statuses = newScannedOrders(c), c.recountStatuses()
	return c
}

// layout returns the layout of the table.
func (c *check) layout() model.Layout { return c.table.Layout.Get() }

func (c *check) run(ctx context.Context) error {
	if c.opts.Derivation.IsRecord() {
		return c.runSegments(ctx)
	}
	err := table.Parallel(ctx, c.opts.Segments, c.opts.Segments, func(ctx context.Context, i int) error {
		g := &segmentScan{check: c}
		return c.client.scan(ctx, i, c.opts.Segments, func(page []map[string]types.AttributeValue, last bool) error {
			return g.addPage(ctx, page, last)
		})
	})
	if err != nil {
		return err
	}
	c.scanDone = true
	c.client.endScan()
	for k, s := range c.postponed {
		c.addCandidate(k, s)
	}
	clear(c.postponed)
	for kind := range targetKindCount {
		switch kind {
		case targetProduct:
			c.addStockCandidates()
		case targetCategory:
			c.addCategoryCandidates()
		case targetRecords:
			c.addWarehouseCandidates()
			c.addRecordCandidates()
		case targetStatusCounts:
			c.addStatusCountCandidates()
			c.addSalesCandidates()
		case targetRepOrders:
			c.addRepOrderCandidates()
		}
		if err := c.verifyCandidates(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// runSegments checks an edge or claim, one segment of the table after another.
func (c *check) runSegments(ctx context.Context) error {
	c.scanDone = true // no record has to be restored first
	for i := c.opts.SegmentsDone; i < c.opts.Segments; i++ {
		g := &segmentScan{check: c}
		err := c.client.scan(ctx, i, c.opts.Segments, func(page []map[string]types.AttributeValue, last bool) error {
			return g.addPage(ctx, page, last)
		})
		for _, kind := range []targetKind{targetEdge, targetClaimed, targetClaim} {
			if err == nil {
				err = c.verifyCandidates(ctx, kind)
			}
		}
		if err == nil && c.opts.OnSegment != nil {
			err = c.opts.OnSegment(i + 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCandidate adds a record to verify again. It combines the reasons of an existing candidate.
func (c *check) addCandidate(k target, s candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addCandidateLocked(k, s)
}

func (c *check) addCandidateLocked(k target, s candidate) { c.candidates[k] = c.candidates[k].merge(s) }

func (s candidate) merge(other candidate) candidate {
	if s.findings == nil {
		s.findings = other.findings
	}
	for _, id := range other.extraCustomers {
		if !slices.Contains(s.extraCustomers, id) {
			s.extraCustomers = append(slices.Clip(s.extraCustomers), id)
		}
	}
	s.referenced = s.referenced || other.referenced
	s.recountStock, s.countOrders = s.recountStock || other.recountStock, s.countOrders || other.countOrders
	if s.claimedAddress == "" || other.claimedAddress != "" && other.claimedAddress < s.claimedAddress {
		s.claimedAddress = other.claimedAddress // the first in sort order, so that every check chooses the same address
	}
	s.newerCopies, s.newerEvents = s.newerCopies.laterOf(other.newerCopies), s.newerEvents.laterOf(other.newerEvents)
	return s
}

// addStockCandidates selects the products whose stock or order count contradicts the scan.
func (c *check) addStockCandidates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sku := range c.numbers.candidates(&model.EntityProduct, model.AttrOrderCount, false) {
		if c.uncertainProducts[commerce.SKU(sku)] == "" && c.abandonedOrder == "" {
			c.addCandidateLocked(target{targetProduct, sku}, candidate{countOrders: true})
		}
	}
	for _, sku := range c.numbers.candidates(&model.EntityProduct, model.AttrAvailable, false) {
		c.addCandidateLocked(target{targetProduct, sku}, candidate{recountStock: true})
	}
}

// addWarehouseCandidates selects warehouses that other records name but the scan did not find.
func (c *check) addWarehouseCandidates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.referencedWarehouses {
		if partition, err := model.EntityWarehouse.PK.Build(string(id)); err == nil && !c.seenWarehouses[id] {
			c.addCandidateLocked(target{targetRecords, partition}, candidate{referenced: true})
		}
	}
}

func (c *check) addReferencedWarehouse(id commerce.WarehouseID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.referencedWarehouses[id] = true
}

// verifyAtCandidateLimit verifies candidates during the scan if there are opts.MaxCandidates. It
// skips targetProduct and later kinds, which the check can verify only after the scan.
func (c *check) verifyAtCandidateLimit(ctx context.Context) error {
	if !c.isCandidateLimitReached() {
		return nil
	}
	c.verifying.Lock()
	defer c.verifying.Unlock()
	if !c.isCandidateLimitReached() {
		return nil
	}
	for kind := range targetProduct {
		if err := c.verifyCandidates(ctx, kind); err != nil {
			return err
		}
	}
	return c.verifyCandidates(ctx, targetEdge)
}

func (c *check) isCandidateLimitReached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.candidates) >= c.opts.MaxCandidates
}

func (c *check) verifyCandidates(ctx context.Context, kind targetKind) error {
	c.mu.Lock()
	taken := map[target]candidate{}
	for k, s := range c.candidates {
		if k.kind == kind {
			taken[k] = s
			delete(c.candidates, k)
		}
	}
	c.toVerify = len(taken)
	c.mu.Unlock()
	if len(taken) == 0 {
		return nil
	}
	targets := slices.SortedFunc(maps.Keys(taken), func(a, b target) int { return strings.Compare(a.id, b.id) })
	for batch := range slices.Chunk(targets, table.MaxBatchKeys) {
		r := c.recountTargets(batch, taken)
		err := table.Parallel(ctx, len(batch), c.opts.Parallel, func(ctx context.Context, i int) error {
			if err := c.verifyAndRepair(ctx, batch[i], taken[batch[i]], r); err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.toVerify--
			c.reportProgressLocked()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// newVerifier returns a verifier that has not read any records yet. r recounts products' stock.
func (c *check) newVerifier(k target, s candidate, r *recount) verifier {
	switch k.kind {
	case targetOrder:
		extra := map[commerce.CustomerID]bool{}
		for _, id := range s.extraCustomers {
			extra[id] = true
		}
		// If s has no findings, check.numbers may already include the order. Do not add it again.
		return &orderVerifier{id: commerce.OrderID(k.id), extraCustomers: extra, mayBeCounted: s.findings == nil}
	case targetCustomer:
		v := newCustomerVerifier(c.table, k.id)
		v.referenced, v.claimedAddress, v.newerCopies, v.newerEvents = s.referenced, s.claimedAddress, s.newerCopies, s.newerEvents
		return v
	case targetClaim:
		return newClaimVerifier(k.claim())
	case targetClaimed:
		return newClaimedVerifier(k.claim())
	case targetEmployee:
		return newEmployeeVerifier(k.id)
	case targetProduct:
		v := newProductVerifier(k.id)
		if v.countOrders = s.countOrders; s.recountStock || s.countOrders {
			v.recount = r
		}
		return v
	case targetCategory:
		return &categoryVerifier{name: k.id}
	case targetRecords:
		v := newRecordsVerifier(k.id)
		if v.referenced = s.referenced; s.recountStock {
			v.recount = r
		}
		return v
	case targetEdge:
		return newEdgeVerifier(c.opts.Derivation.Entity, k.id)
	case targetRepOrders:
		return &repOrdersVerifier{id: commerce.EmployeeID(k.id)}
	default:
		pk, sk, _ := strings.Cut(k.id, " ")
		return &statusCountsVerifier{Target: statusCountsTargetAt(model.Keys{PK: pk, SK: sk}), recount: c.statuses}
	}
}

// maxAttempts limits the reads that confirm a record's findings. Reads after a repair do not count.
const maxAttempts = 4

// verifyAndRepair verifies a record, repairs it if opts.Repair is set, and reports the findings.
func (c *check) verifyAndRepair(ctx context.Context, k target, s candidate, r *recount) error {
	v := c.newVerifier(k, s, r)
	attempts := readAttempts{remaining: maxAttempts, previous: s.findings}
	// found contains all confirmed findings. last is the latest diagnosis.
	var found, last *diagnosis
	for {
		diag, ok, err := c.readUntilConfirmed(ctx, v, &attempts)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if !c.scanDone && !v.hasMainRecord() {
			c.postpone(v, k, s)
			c.report(found, last)
			return nil
		}
		diag = c.ofDerivation(diag)
		found, last = found.merge(diag), diag
		if !c.repairs && c.opts.Derivation != nil {
			c.client.addRepair(costOf(diag))
		}
		if !c.repairs || len(diag.fixes) == 0 {
			break
		}
		if diag.isClean() {
			// These fixes add sums that are not stored yet. If the record changes, a later repair adds
			// them.
			if err := c.client.repair(ctx, diag); err != nil && !isRefused(err) {
				return err
			}
			break
		}
		if last, found.refusalReason, err = c.repairAndReread(ctx, v, diag); err != nil {
			return err
		}
		if found.refusalReason == "" && !hasNewFindings(diag, last) {
			break
		}
		// Try again: the records changed before the repair, or it revealed another inconsistency.
		attempts.previous = last.findings
	}
	if found == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reportUnverifiedLocked(v.key(c.table), attempts.uncertainty)
		if order, ok := v.(*orderVerifier); ok && order.orderRecord == nil {
			c.markUncertainStockLocked(order) // a recount misses an order without a record, because it lists orders through the index
		}
		return nil
	}
	c.report(found, last)
	v.updateCheckState(c, found, last)
	return nil
}

func (c *check) postpone(v verifier, k target, s candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.postponed[k]; ok {
		s = known.merge(s)
	} else if len(c.postponed) >= c.opts.MaxCandidates {
		c.reportUnverifiedLocked(v.key(c.table), "too many records can be verified only after the scan; repair the other records, then run the check again")
		if k.kind == targetOrder {
			c.abandonedOrder = commerce.OrderID(k.id)
		}
		return
	}
	c.postponed[k] = s
}

// readAttempts limits how often a record is read to confirm its findings.
type readAttempts struct {
	remaining int
	// previous are the findings of the previous read.
	previous []finding
	// uncertainty is the reason why the last read did not confirm the findings.
	uncertainty string
}

// readUntilConfirmed reads until one read is clean or two in a row agree. Otherwise, ok is false.
func (c *check) readUntilConfirmed(ctx context.Context, v verifier, a *readAttempts) (diag *diagnosis, ok bool, err error) {
	for a.remaining > 0 {
		a.remaining--
		if err := v.read(ctx, c); err != nil {
			return nil, false, err
		}
		diag := v.verify(c)
		if doubt := v.uncertainty(diag); doubt != "" {
			a.previous, a.uncertainty = diag.findings, doubt
			continue
		}
		// One read with findings is not enough, because a mutation during it can look like one.
		if diag.isClean() || model.EqualSets(a.previous, diag.findings, findingKey) {
			return diag, true, nil
		}
		a.previous, a.uncertainty = diag.findings, "the record changed between reads"
	}
	return nil, false, nil
}

// repairAndReread repairs the findings in diag, reads the records again, and verifies them. If the
// repair is refused (see repair.RefusedError), repairAndReread returns diag and the reason instead.
func (c *check) repairAndReread(ctx context.Context, v verifier, diag *diagnosis) (after *diagnosis, refused string, err error) {
	err = c.client.repair(ctx, diag)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return diag, refused.reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	v.markRepaired()
	if c.opts.Derivation != nil {
		return &diagnosis{table: c.table}, "", nil // another check of the derivation verifies what was written
	}
	if err := v.read(ctx, c); err != nil {
		return nil, "", err
	}
	return v.verify(c), "", nil
}

func isRefused(err error) bool {
	_, refused := errors.AsType[*refusedError](err)
	return refused
}

// reportUnverifiedLocked reports a record that could not be verified. The caller must hold c.mu.
func (c *check) reportUnverifiedLocked(k model.Keys, reason string) {
	if d := c.opts.Derivation; d != nil && !d.IsRecord() && !d.IsStoredIn(k) {
		return // the records that contribute to a number are counted again with the number
	}
	c.summary.Unverified++
	if c.reports.add("unverified "+k.Text()) && c.opts.OnUnverified != nil {
		c.opts.OnUnverified(UnverifiedRecord{PK: k.PK, SK: k.SK, Reason: reason})
	}
}

func hasNewFindings(before, after *diagnosis) bool {
	for _, f := range after.findings {
		if !before.hasFinding(f.kind, f.key) {
			return true
		}
	}
	return false
}

// report reports the confirmed findings in found. A finding that is not in last has been repaired.
func (c *check) report(found, last *diagnosis) {
	if found == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range found.findings {
		if !c.reported.add(f.kind + " " + f.key.Text()) {
			continue
		}
		c.reported.add(f.key.Text())
		d := Inconsistency{
			Kind: f.kind, PK: f.key.PK, SK: f.key.SK, Detail: f.detail, Repaired: !last.hasFinding(f.kind, f.key),
			ByHand: f.remedy == remedyManual, StandIn: f.remedy == remedyStandIn,
		}
		c.summary.Found[f.kind]++
		switch {
		case d.Repaired:
			c.summary.Repaired[f.kind]++
		case d.ByHand:
			c.summary.ByHand++
		case found.refusalReason != "":
			d.Detail += "; the repair was refused: " + found.refusalReason
		}
		if (d.Repaired || c.reports.add(f.kind+" "+f.key.Text())) && c.opts.OnInconsistency != nil {
			c.opts.OnInconsistency(d)
		}
	}
}

// hasReported reports whether k was reported recently. Old reports are forgotten to save memory.
func (c *check) hasReported(k model.Keys) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reported.has(k.Text())
}

func (c *check) reportProgressLocked() {
	if c.opts.OnProgress == nil {
		return
	}
	found := 0
	for _, n := range c.summary.Found {
		found += n
	}
	c.opts.OnProgress(Progress{Records: c.summary.Records, Found: found, ToVerify: c.toVerify})
}

// uncertainOrder returns an unverified order that may reserve stock of the product, or an empty ID.
func (c *check) uncertainOrder(sku commerce.SKU) commerce.OrderID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.uncertainProducts[sku], c.abandonedOrder)
}

func (c *check) hasUnreadableOrders(id commerce.CustomerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreadableCustomers[id]
}

// markUncertainStockLocked stores that the order v cannot be verified, and that it may reserve
// stock of the products that it names. The caller must hold c.mu.
func (c *check) markUncertainStockLocked(v *orderVerifier) {
	for _, sku := range v.skus() {
		c.uncertainProducts[sku] = v.id
	}
}

func (c *check) missingCopiesOf(id commerce.CustomerID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missingCopies[id]
}
