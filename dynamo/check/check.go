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
	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Checker verifies and repairs the records of a table.
type Checker struct{ table *table.Table }

// NewChecker returns the checker of a table.
func NewChecker(t *table.Table) Checker { return Checker{t} }

// Options configures CheckRecords.
type Options struct {
	// Segments is the number of table segments that are scanned in parallel; 0 means 1.
	Segments int
	// Parallel is the number of possibly inconsistent records verified in parallel; 0 means 1.
	Parallel int
	// Repair reports whether inconsistencies are repaired.
	Repair bool
	// IndexLag is the maximum time until a write to the table is visible in the index; 0 means one
	// second. It is usually a few milliseconds. The check waits this long before it counts records in
	// the index. NoIndexLag is for DynamoDB-compatible engines without this delay.
	IndexLag time.Duration
	// MaxCandidates is the maximum number of candidates in memory during the scan; 0 means 10,000. A
	// candidate is a record that may be inconsistent. At the maximum, the scan pauses to verify the
	// candidates. The same maximum applies to candidates that can be verified only after the scan.
	MaxCandidates int
	// OnDrift receives each inconsistency. OnDrift, OnUnverified and OnProgress may be nil.
	// CheckRecords never calls them concurrently, and waits until each call returns.
	OnDrift func(Drift)
	// OnUnverified receives each record that could not be verified.
	OnUnverified func(UnverifiedRecord)
	// OnProgress receives the progress.
	OnProgress func(Progress)
}

// NoIndexLag is the value of Options.IndexLag for an index that is always up to date.
const NoIndexLag time.Duration = -1

// defaultIndexLag is the IndexLag if none is set.
const defaultIndexLag = time.Second

// Drift is an inconsistency: a record that contradicts another record or the data model.
type Drift struct {
	// Kind is the Name of a repair.DriftKind.
	Kind string `json:"kind"`
	// PK and SK are the primary key of the inconsistent record. The record itself may be missing.
	PK string `json:"pk"`
	SK string `json:"sk"`
	// Detail states the stored values and the expected values.
	Detail string `json:"detail"`
	// Repaired reports whether the drift has been repaired.
	Repaired bool `json:"repaired"`
	// ByHand reports whether CheckRecords cannot repair the drift.
	ByHand bool `json:"byHand,omitempty"`
	// StandIn means that the repair replaces a lost record with a substitute that has the same ID.
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
	// Records is the number of records read. Found is the number of inconsistencies found.
	Records, Found int
	// ToVerify is the number of possibly inconsistent records that remain in the current batch. It is
	// 0 while the check only scans the table.
	ToVerify int
}

// Summary is the result of a check.
type Summary struct {
	// Records counts all records. External counts the records that match no entity of the data model.
	Records, External int
	// Orders, Customers, Products, Employees and Warehouses count the verified records of each type.
	Orders, Customers, Products, Employees, Warehouses int
	// Found and Repaired count the inconsistencies by kind.
	Found, Repaired map[string]int
	// ByHand counts the remaining inconsistencies that CheckRecords cannot repair.
	ByHand int
	// Unverified counts the records that could not be verified. For example, a record changed during
	// each attempt, or it depends on an unreadable record.
	Unverified int
	// Requests is the number of read requests. ReadUnits is the read capacity that DynamoDB reported
	// for these requests. It is 0 if DynamoDB reported no capacity.
	Requests  int
	ReadUnits float64
}

// UnrepairedCount returns the number of inconsistencies that have not been repaired.
func (s Summary) UnrepairedCount() int {
	n := 0
	for kind, found := range s.Found {
		n += found - s.Repaired[kind]
	}
	return n
}

// targetKind is the kind of a target.
type targetKind int

// The kinds of records, in the sequence in which the check verifies them: each kind after the kinds
// on which it depends. For example, the stock of products depends on orders, and an email claim
// depends on its customer.
const (
	targetOrder targetKind = iota
	targetCustomer
	targetEmailClaim
	targetEmployee
	targetProduct
	targetCategory
	targetWarehouse
	targetStatusCounts
	targetRepOrders
	targetKindCount
)

// target identifies what a verifier verifies.
type target struct {
	kind targetKind
	id   string
}

// verifier verifies and repairs one record and all records that derive from that record. Each
// verifier reads all records that it needs, so verifiers do not depend on each other.
type verifier interface {
	// addRecord adds a record of the item collection.
	addRecord(e *model.Entity, rec model.Record)
	// read discards the records and reads them again consistently.
	read(ctx context.Context, c *check) error
	// verify compares the records that were read.
	verify(c *check) *repair.Diagnosis
	// updateCheckState updates the state of the check for other records that the findings affect. diag
	// contains all confirmed findings. last contains the findings that remain after repairs.
	updateCheckState(c *check, diag, last *repair.Diagnosis)
	// key returns the key of the main record, for the report of a failed verification.
	key(t *table.Table) model.Keys
	// uncertainty returns the reason why the last read may be wrong, or an empty string.
	uncertainty(diag *repair.Diagnosis) string
	// markRepaired is called after a repair.
	markRepaired()
	// hasMainRecord reports whether read found the main record. Without the main record, the check
	// verifies the other records again after the scan, because the scan may find related records.
	hasMainRecord() bool
}

// baseVerifier provides default methods: a read is never uncertain, the main record exists, and
// findings do not affect other records.
type baseVerifier struct{}

func (baseVerifier) uncertainty(*repair.Diagnosis) string { return "" }

func (baseVerifier) markRepaired() {}

func (baseVerifier) hasMainRecord() bool { return true }

func (baseVerifier) updateCheckState(*check, *repair.Diagnosis, *repair.Diagnosis) {}

// candidate contains the reasons to verify a record again, and evidence from other records.
type candidate struct {
	// findings are the findings of the scan.
	findings []repair.Finding
	// extraCustomers are customers whose partitions may contain a copy of the order.
	extraCustomers []commerce.CustomerID
	// referenced reports whether another record refers to the customer or warehouse to verify.
	referenced bool
	// recountStock reports whether the stock must be recounted from inventory levels and orders.
	recountStock bool
	// countOrders reports whether the orders that contain the product must be counted.
	countOrders bool
	// newerCopies and newerEvents are orders that may have an event newer than the customer's stored
	// last event.
	newerCopies, newerEvents newerOrders
	// claimedAddress is an email address that an email claim reserves for the customer.
	claimedAddress string
}

// defaultMaxCandidates is the default of Options.MaxCandidates.
const defaultMaxCandidates = 10_000

// check is the state of one run of CheckRecords. It needs memory for one page per segment, the
// records to verify, and some hundred bytes per product, open order and order in misleading.
type check struct {
	table  *table.Table
	client *repair.Client
	opts   Options

	// verifying is held by the goroutine that verifies records while the scan pauses.
	verifying sync.Mutex

	mu         sync.Mutex
	summary    Summary
	candidates map[target]candidate
	// postponed are the records that are verified again after the scan; see verifier.hasMainRecord.
	postponed map[target]candidate
	scanDone  bool
	// toVerify is the number of possibly inconsistent records left in the current batch.
	toVerify int
	reported repair.RecentSet

	// heldStock maps a product to the quantity that orders reserve. It includes the pending and
	// confirmed orders that have been verified so far.
	heldStock map[commerce.SKU]int
	// misleading are orders that make a recount of stock wrong, because an inconsistency was not
	// repaired: wrong items, a wrong status or wrong index keys in the order's own record. The values
	// are customers who may have a copy of the order.
	misleading map[commerce.OrderID]map[commerce.CustomerID]bool
	// uncertainProducts maps a product to an unreadable order that may reserve stock of the product.
	uncertainProducts map[commerce.SKU]commerce.OrderID
	// driftedCustomers are the customers with an inconsistent order that was not repaired.
	driftedCustomers map[commerce.CustomerID]bool
	// unreadableCustomers are the customers of unreadable orders.
	unreadableCustomers map[commerce.CustomerID]bool
	// abandonedOrder is an order that was not verified and may reserve stock of any product. It is
	// empty if there is no such order.
	abandonedOrder commerce.OrderID
	// recordedStock is the stock in the products' records. It is compared with heldStock after the
	// scan.
	recordedStock map[commerce.SKU]productStock
	// categories compares the stored product counts of categories with the scanned products.
	// orderLists compares the order counts of products and account reps with the scanned orders.
	categories counting.Counters
	orderLists *counting.OrderListCounts
	// seenWarehouses are the warehouses that the scan read. referencedWarehouses are the warehouses
	// that inventory levels or employees refer to.
	seenWarehouses       map[commerce.WarehouseID]bool
	referencedWarehouses map[commerce.WarehouseID]bool
	// orderCounter counts the orders by status.
	orderCounter *counting.OrderCounter
	// missingCopies maps a customer to the number of order copies that remain missing after repairs.
	// Each order copy that should not exist reduces this number by 1.
	missingCopies map[commerce.CustomerID]int
}

// productStock is the stock in a product's record.
type productStock struct{ inventory, available int }

// CheckRecords scans the table and verifies that its records are consistent. repair.DriftKinds
// lists the kinds of inconsistencies. If opts.Repair is set, CheckRecords repairs them. Clients may
// use the table during the check. CheckRecords reports an inconsistency only if two reads agree,
// and repairs a record only if it is unchanged.
//
// It returns ClockError if opts.Repair is set and the local clock differs from DynamoDB's. It also
// returns ErrUnavailable, ErrNoTable, ErrAccessDenied or the context's error. The summary includes
// the work done before the error.
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
	c := &check{
		table: checks.table, client: &repair.Client{Table: checks.table}, opts: opts,
		summary:    Summary{Found: map[string]int{}, Repaired: map[string]int{}},
		candidates: map[target]candidate{}, postponed: map[target]candidate{},
		heldStock: map[commerce.SKU]int{}, misleading: map[commerce.OrderID]map[commerce.CustomerID]bool{},
		uncertainProducts: map[commerce.SKU]commerce.OrderID{}, unreadableCustomers: map[commerce.CustomerID]bool{}, driftedCustomers: map[commerce.CustomerID]bool{}, recordedStock: map[commerce.SKU]productStock{},
		seenWarehouses: map[commerce.WarehouseID]bool{}, referencedWarehouses: map[commerce.WarehouseID]bool{},
		missingCopies: map[commerce.CustomerID]int{},
	}
	c.orderCounter, c.orderLists = counting.NewOrderCounter(c.client, opts.IndexLag), counting.NewOrderListCounts(c.table, opts.Repair)
	err := c.run(ctx)
	c.summary.Requests, c.summary.ReadUnits = c.client.Cost()
	return c.summary, err
}

func (c *check) run(ctx context.Context) error {
	err := table.Parallel(ctx, c.opts.Segments, c.opts.Segments, func(ctx context.Context, i int) error {
		g := &segmentScan{check: c}
		return c.client.Scan(ctx, i, c.opts.Segments, func(page []map[string]types.AttributeValue, last bool) error {
			return g.addPage(ctx, page, last)
		})
	})
	if err != nil {
		return err
	}
	c.scanDone = true
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
		case targetWarehouse:
			c.addWarehouseCandidates()
		case targetStatusCounts:
			c.addStatusCountCandidates()
		case targetRepOrders:
			c.addRepOrderCandidates()
		}
		if err := c.verifyCandidates(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// addCandidate selects a record to verify again. If it is already selected, the reasons are merged.
func (c *check) addCandidate(k target, s candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addCandidateLocked(k, s)
}

func (c *check) addCandidateLocked(k target, s candidate) { c.candidates[k] = c.candidates[k].merge(s) }

// merge combines two reasons to verify the same record.
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
		s.claimedAddress = other.claimedAddress // the smallest, so that every check chooses the same
	}
	s.newerCopies, s.newerEvents = s.newerCopies.laterOf(other.newerCopies), s.newerEvents.laterOf(other.newerEvents)
	return s
}

// addStockCandidates selects the products whose stored stock or order count differs from the
// scanned orders.
func (c *check) addStockCandidates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.orderLists.Products.Candidates(false) {
		if sku := commerce.SKU(model.FirstPlaceholderValue(model.EntityProduct.PK, k.PK)); c.uncertainProducts[sku] == "" && c.abandonedOrder == "" {
			c.addCandidateLocked(target{targetProduct, string(sku)}, candidate{countOrders: true})
		}
	}
	for sku, seen := range c.recordedStock {
		if seen.available != seen.inventory-c.heldStock[sku] {
			c.addCandidateLocked(target{targetProduct, string(sku)}, candidate{recountStock: true})
		}
	}
}

// addWarehouseCandidates selects warehouses that records refer to, but that the scan did not find.
func (c *check) addWarehouseCandidates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.referencedWarehouses {
		if !c.seenWarehouses[id] {
			c.addCandidateLocked(target{targetWarehouse, string(id)}, candidate{referenced: true})
		}
	}
}

// addReferencedWarehouse remembers a warehouse to which an inventory level or an employee refers.
func (c *check) addReferencedWarehouse(id commerce.WarehouseID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.referencedWarehouses[id] = true
}

// If there are opts.MaxCandidates candidates, verifyAtCandidateLimit pauses the scan and verifies them.
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
	return nil
}

func (c *check) isCandidateLimitReached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.candidates) >= c.opts.MaxCandidates
}

// verifyCandidates verifies all candidates of a kind.
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
		r := newStockRecount(batch, taken)
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

// newVerifier returns a verifier that has not read any records. r recounts the stock of products.
func (c *check) newVerifier(k target, s candidate, r *stockRecount) verifier {
	switch k.kind {
	case targetOrder:
		extra := map[commerce.CustomerID]bool{}
		for _, id := range s.extraCustomers {
			extra[id] = true
		}
		// If the scan has no findings about the order, only a customer's copy of the order may be wrong.
		// The scan may then have added the order to heldStock.
		return &orderVerifier{id: commerce.OrderID(k.id), extraCustomers: extra, mayBeCounted: s.findings == nil}
	case targetCustomer:
		v := newCustomerVerifier(c.table, k.id)
		v.referenced, v.claimedAddress, v.newerCopies, v.newerEvents = s.referenced, s.claimedAddress, s.newerCopies, s.newerEvents
		return v
	case targetEmailClaim:
		return &emailClaimVerifier{email: k.id}
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
	case targetWarehouse:
		v := newWarehouseVerifier(k.id)
		v.referenced = s.referenced
		return v
	case targetRepOrders:
		return &repOrderCountVerifier{RepOrderCounter: c.orderCounter.ForRep(commerce.EmployeeID(k.id))}
	default:
		return &statusCountsVerifier{part: k.id, counter: c.orderCounter}
	}
}

// maxAttempts limits the reads of a record to confirm findings, without reads after repairs.
const maxAttempts = 4

// verifyAndRepair verifies a record, repairs it if opts.Repair is set, and reports the findings.
func (c *check) verifyAndRepair(ctx context.Context, k target, s candidate, r *stockRecount) error {
	v := c.newVerifier(k, s, r)
	attempts := readAttempts{remaining: maxAttempts, previous: s.findings}
	// found contains all confirmed findings. last is the latest diagnosis.
	var found, last *repair.Diagnosis
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
		found, last = found.Merge(diag), diag
		if diag.IsClean() || !c.opts.Repair || len(diag.Fixes) == 0 {
			break
		}
		if last, found.RefusalReason, err = c.repairAndReread(ctx, v, diag); err != nil {
			return err
		}
		if found.RefusalReason == "" && !hasNewFindings(diag, last) {
			break
		}
		// The records changed before the repair, or the repair revealed another inconsistency.
		attempts.previous = last.Findings
	}
	if found == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reportUnverifiedLocked(v.key(c.table), attempts.uncertainty)
		if order, ok := v.(*orderVerifier); ok && order.orderRecord == nil {
			c.markUncertainStockLocked(order) // a recount finds the orders in the index
		}
		return nil
	}
	c.report(found, last)
	v.updateCheckState(c, found, last)
	return nil
}

// postpone delays the verification of a record until the scan has ended.
func (c *check) postpone(v verifier, k target, s candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.postponed[k]; ok {
		s = known.merge(s)
	} else if len(c.postponed) >= c.opts.MaxCandidates {
		c.reportUnverifiedLocked(v.key(c.table), "too many records can be verified only after the scan; repair the other records, then run check again")
		if k.kind == targetOrder {
			c.abandonedOrder = commerce.OrderID(k.id)
		}
		return
	}
	c.postponed[k] = s
}

// readAttempts limits the reads of a target.
type readAttempts struct {
	remaining int
	// previous are the findings of the previous read.
	previous []repair.Finding
	// uncertainty is why the last read was not sufficient.
	uncertainty string
}

// readUntilConfirmed reads records until one read has no findings or two consecutive reads have the same
// findings. A read consists of several requests, so a concurrent mutation can look like an
// inconsistency. ok is false after too many attempts.
func (c *check) readUntilConfirmed(ctx context.Context, v verifier, a *readAttempts) (diag *repair.Diagnosis, ok bool, err error) {
	for a.remaining > 0 {
		a.remaining--
		if err := v.read(ctx, c); err != nil {
			return nil, false, err
		}
		diag := v.verify(c)
		if doubt := v.uncertainty(diag); doubt != "" {
			a.previous, a.uncertainty = diag.Findings, doubt
			continue
		}
		if diag.IsClean() || model.EqualSets(a.previous, diag.Findings, repair.FindingKey) {
			return diag, true, nil
		}
		a.previous, a.uncertainty = diag.Findings, "the record changed between reads"
	}
	return nil, false, nil
}

// repairAndReread repairs the findings, reads the records again, and verifies them. If the repair
// is refused, repairAndReread returns diag and the reason.
func (c *check) repairAndReread(ctx context.Context, v verifier, diag *repair.Diagnosis) (after *repair.Diagnosis, refused string, err error) {
	err = c.client.Repair(ctx, diag)
	if refused := (*repair.RefusedError)(nil); errors.As(err, &refused) {
		return diag, refused.Reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	v.markRepaired()
	if err := v.read(ctx, c); err != nil {
		return nil, "", err
	}
	return v.verify(c), "", nil
}

// reportUnverifiedLocked reports a target that could not be verified.
func (c *check) reportUnverifiedLocked(k model.Keys, reason string) {
	c.summary.Unverified++
	if c.opts.OnUnverified != nil {
		c.opts.OnUnverified(UnverifiedRecord{PK: k.PK, SK: k.SK, Reason: reason})
	}
}

// hasNewFindings reports whether after contains a finding that before does not contain.
func hasNewFindings(before, after *repair.Diagnosis) bool {
	for _, f := range after.Findings {
		if !before.HasFinding(f.Kind, f.Key) {
			return true
		}
	}
	return false
}

// report reports the confirmed findings in found. Findings that are missing in last were repaired.
func (c *check) report(found, last *repair.Diagnosis) {
	if found == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range found.Findings {
		if !c.reported.Add(f.Kind + " " + f.Key.Text()) {
			continue
		}
		c.reported.Add(f.Key.Text())
		d := Drift{
			Kind: f.Kind, PK: f.Key.PK, SK: f.Key.SK, Detail: f.Detail, Repaired: !last.HasFinding(f.Kind, f.Key),
			ByHand: f.Remedy == repair.RemedyManual, StandIn: f.Remedy == repair.RemedyStandIn,
		}
		c.summary.Found[f.Kind]++
		switch {
		case d.Repaired:
			c.summary.Repaired[f.Kind]++
		case d.ByHand:
			c.summary.ByHand++
		case found.RefusalReason != "":
			d.Detail += "; the repair was refused: " + found.RefusalReason
		}
		if c.opts.OnDrift != nil {
			c.opts.OnDrift(d)
		}
	}
}

// hasReported reports whether an inconsistency of the record was reported recently.
func (c *check) hasReported(k model.Keys) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reported.Has(k.Text())
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

// uncertainOrder returns an order that could not be verified and may reserve stock of the product.
// It returns an empty ID if there is no such order.
func (c *check) uncertainOrder(sku commerce.SKU) commerce.OrderID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.uncertainProducts[sku], c.abandonedOrder)
}

// hasUnreadableOrders reports whether an unreadable order names the customer.
func (c *check) hasUnreadableOrders(id commerce.CustomerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreadableCustomers[id]
}

// markUncertainStockLocked marks the products whose stock an unreadable order may reserve.
func (c *check) markUncertainStockLocked(v *orderVerifier) {
	for _, sku := range v.skus() {
		c.uncertainProducts[sku] = v.id
	}
}

// missingCopiesOf returns the value of missingCopies for a customer.
func (c *check) missingCopiesOf(id commerce.CustomerID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missingCopies[id]
}
