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

// Checks are the checks of the records of a table.
type Checks struct{ table *table.Table }

// NewChecks returns the checks of a table.
func NewChecks(t *table.Table) Checks { return Checks{t} }

// Options say how CheckRecords works.
type Options struct {
	// Segments is in how many parts the table is read at once, 1 where it is 0.
	Segments int
	// Parallel is how many suspicious units are verified at once, 1 where it is 0.
	Parallel int
	// Repair puts right what is found.
	Repair bool
	// IndexLag is how long the index may lag behind the table, a second where it is 0; it usually
	// is some milliseconds. Sums over it wait that long. NoIndexLag is for engines whose index does
	// not lag.
	IndexLag time.Duration
	// Suspects is how many suspicious units are remembered while the table is read, 10,000 where it
	// is 0. When there are more they are verified first, so that a table that is wrong from end to
	// end does not fill the memory. As many again are remembered of those that cannot be verified
	// before the table is read to its end.
	Suspects int
	// Found, where it is set, is told each drift, Unsettled each record of which the check could
	// not tell, and Progress how far the check is. They are called one at a time, and the check
	// waits for them.
	Found     func(Drift)
	Unsettled func(Unsettled)
	Progress  func(CheckProgress)
}

// NoIndexLag is the IndexLag of an index that does not lag.
const NoIndexLag time.Duration = -1

// defaultIndexLag is the IndexLag where nothing is said.
const defaultIndexLag = time.Second

// Drift is a record that disagrees with others or with the model.
type Drift struct {
	// Class is the name of one of DriftClasses.
	Class string `json:"kind"`
	// PK and SK are the record's key, also of one that is missing.
	PK string `json:"pk"`
	SK string `json:"sk"`
	// Detail says what is, and what should be.
	Detail string `json:"detail"`
	// Repaired reports whether it has been put right.
	Repaired bool `json:"repaired"`
	// ByHand reports whether no repair is made for it.
	ByHand bool `json:"byHand,omitempty"`
	// StandIn reports whether the missing record is replaced with one that says nothing but its id.
	StandIn bool `json:"standIn,omitempty"`
}

// Unsettled is a record of which a check could not tell whether it, and what follows from it,
// agrees with others.
type Unsettled struct {
	// PK and SK are the record's key.
	PK string `json:"pk"`
	SK string `json:"sk"`
	// Reason tells why.
	Reason string `json:"reason"`
}

// CheckProgress is how far a check is.
type CheckProgress struct {
	// Records is how many records were read, Found how many drifts were found.
	Records, Found int
	// Settling is how many suspicious units have to be verified, 0 while the table is still being
	// read.
	Settling int
}

// Summary is what came of a check.
type Summary struct {
	// Records is how many records the table has, Foreign how many of them are of kinds that the
	// model does not know.
	Records, Foreign int
	// Orders, Customers, Products, Employees and Warehouses are how many of each were verified.
	Orders, Customers, Products, Employees, Warehouses int
	// Found is how many drifts there are of each class, Repaired how many of them have been put
	// right.
	Found, Repaired map[string]int
	// ByHand is how many of those that are left no repair is made for.
	ByHand int
	// Unsettled is how many units changed so often, or depend on a record that cannot be read, that
	// nothing can be said about them.
	Unsettled int
	// Requests is how many reads were made, ReadUnits what DynamoDB says that they took; 0 where it
	// says nothing.
	Requests  int
	ReadUnits float64
}

// Left is how many drifts have not been put right.
func (s Summary) Left() int {
	n := 0
	for kind, found := range s.Found {
		n += found - s.Repaired[kind]
	}
	return n
}

// targetKind is what a unit is of.
type targetKind int

// The kinds, in the order in which suspicious units are verified: what orders need before
// customers, what customers claim before claims, the stock when all orders are right, and
// categories when all products are. Warehouses come behind all that refer to them, and the numbers
// of orders last.
const (
	targetOrder targetKind = iota
	targetCustomer
	targetClaim
	targetEmployee
	targetProduct
	targetCategory
	targetWarehouse
	targetStatusCounts
	targetRepOrders
	targetKinds
)

// target names a unit.
type target struct {
	kind targetKind
	id   string
}

// verifier is a record with all that follows from it, which is verified and repaired as a whole. Other
// units do not need to be read for that.
type verifier interface {
	// add takes a record of the unit's item collection.
	add(e *model.Entity, rec model.Record)
	// read reads the unit anew, consistently.
	read(ctx context.Context, c *check) error
	// verify tells what is wrong with what was read.
	verify(c *check) *repair.Diagnosis
	// propagate tells the check what follows from the unit for others. v is what was wrong, and last
	// what still is.
	propagate(c *check, diag, last *repair.Diagnosis)
	// key is the key of the record that names the unit.
	key(t *table.Table) model.Keys
	// uncertainty returns why v, which was made of what was read last, is not certain; empty if nothing
	// speaks against it.
	uncertainty(diag *repair.Diagnosis) string
	// markRepaired tells the unit that it has been repaired.
	markRepaired()
	// hasRoot reports whether the record was read from which the others of the unit follow. A unit
	// without it is not repaired before the scan has ended: a record that the scan has yet to read
	// may tell what it was.
	hasRoot() bool
}

// baseVerifier has the methods of units all of whose records are read at once: no reading is in
// doubt, and nothing follows from the result.
type baseVerifier struct{}

func (baseVerifier) uncertainty(*repair.Diagnosis) string { return "" }

func (baseVerifier) markRepaired() {}

func (baseVerifier) hasRoot() bool { return true }

func (baseVerifier) propagate(*check, *repair.Diagnosis, *repair.Diagnosis) {}

// candidate is why a unit is to be verified, and what its verification has to know.
type candidate struct {
	// findings are what the scan found.
	findings []repair.Finding
	// extraCustomers may have copies of an order.
	extraCustomers []commerce.CustomerID
	// referenced reports whether another record refers to a customer or warehouse.
	referenced bool
	// recountStock requires that the stock of a product is counted from its levels and orders.
	recountStock bool
	// countOrders requires that the orders of a product are counted.
	countOrders bool
	// newerCopies and newerEvents are orders of a customer with which the customer's last event is to be
	// compared.
	newerCopies, newerEvents newerOrders
	// claimedAddress is an e-mail address whose claim names a customer.
	claimedAddress string
}

// defaultMaxCandidates is how many suspicious units are remembered where nothing is said.
const defaultMaxCandidates = 10_000

// check is one check of a table. Its memory is a page a segment, the suspects, and some hundred
// bytes for each product, for each misleading order, and for each order that is not delivered or
// cancelled.
type check struct {
	table  *table.Table
	client *repair.Client
	opts   Options

	// verifying is held while suspects are verified before the table is read to its end.
	verifying sync.Mutex

	mu         sync.Mutex
	summary    Summary
	candidates map[target]candidate
	// postponed are suspects that were found not to be rooted during the scan.
	postponed map[target]candidate
	scanDone  bool
	// toVerify is how many suspects are being verified.
	toVerify int
	reported repair.RecentSet

	// heldStock is what pending and confirmed orders hold of each product, as they were when they were
	// read.
	heldStock map[commerce.SKU]int
	// misleading are orders that are left with inconsistencies because of which their own record
	// does not tell what they hold, or the index does not list them, with the customers who may
	// have copies.
	misleading map[commerce.OrderID]map[commerce.CustomerID]bool
	// uncertainProducts are products of which an order that cannot be read may hold something, with that
	// order.
	uncertainProducts map[commerce.SKU]commerce.OrderID
	// driftedCustomers are the customers of orders that are left with inconsistencies.
	driftedCustomers map[commerce.CustomerID]bool
	// unreadableCustomers are the customers whom orders name that cannot be read.
	unreadableCustomers map[commerce.CustomerID]bool
	// abandonedOrder is an order of which nothing was read that tells what it holds; empty if there is
	// none.
	abandonedOrder commerce.OrderID
	// recordedStock is what the products' records said, to be compared with held when all orders have been
	// read.
	recordedStock map[commerce.SKU]productStock
	// categories are the numbers of products in categories, and lists those of orders in the lists of
	// products and account reps.
	categories counting.Counters
	orderLists *counting.ListCounts
	// seenWarehouses are those that were read, referred those that levels and employees refer to.
	seenWarehouses       map[commerce.WarehouseID]bool
	referencedWarehouses map[commerce.WarehouseID]bool
	// orderCounter counts the orders by status.
	orderCounter *counting.OrderCounter
	// missingCopies is how many orders a customer's partition lacks that were not put there; it is
	// less than zero where it has too many.
	missingCopies map[commerce.CustomerID]int
}

// productStock is what a product's records said when they were read.
type productStock struct{ inventory, available int }

// CheckRecords reads the whole table and verifies that records that say the same thing agree: see
// DriftClasses. With opts.Repair it puts right what can be. It may run while the table is in use:
// what is found was found in two readings, and a repair is made only as long as the records are as
// they were read.
//
// Errors: ClockError where it is to repair and the clocks differ; ErrUnavailable, ErrNoTable,
// ErrAccessDenied, the context's. The summary is that of what was done until then.
func (checks Checks) CheckRecords(ctx context.Context, opts Options) (Summary, error) {
	if err := checks.table.ClockErr(); err != nil && opts.Repair {
		return Summary{}, err
	}
	opts.Segments, opts.Parallel = max(1, opts.Segments), max(1, opts.Parallel)
	if opts.Suspects == 0 {
		opts.Suspects = defaultMaxCandidates
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
	c.orderCounter, c.orderLists = counting.NewOrderCounter(c.client, opts.IndexLag), counting.NewListCounts(c.table, opts.Repair)
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
	for kind := range targetKinds {
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

// addCandidate remembers a unit to be verified.
func (c *check) addCandidate(k target, s candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addCandidateLocked(k, s)
}

func (c *check) addCandidateLocked(k target, s candidate) { c.candidates[k] = c.candidates[k].merge(s) }

// merge returns what both suspicions of a unit say.
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
		s.claimedAddress = other.claimedAddress // the same one in every check
	}
	s.newerCopies, s.newerEvents = s.newerCopies.latest(other.newerCopies), s.newerEvents.latest(other.newerEvents)
	return s
}

// addStockCandidates suspects the products whose available stock is not what the orders left, as they
// were read one after the other, or whose number of orders differs.
func (c *check) addStockCandidates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.orderLists.Products.Candidates(false) {
		if sku := commerce.SKU(model.KeyValue(model.EntityProduct.PK, k.PK)); c.uncertainProducts[sku] == "" && c.abandonedOrder == "" {
			c.addCandidateLocked(target{targetProduct, string(sku)}, candidate{countOrders: true})
		}
	}
	for sku, seen := range c.recordedStock {
		if seen.available != seen.inventory-c.heldStock[sku] {
			c.addCandidateLocked(target{targetProduct, string(sku)}, candidate{recountStock: true})
		}
	}
}

// addWarehouseCandidates suspects those that others refer to and that were not seen.
func (c *check) addWarehouseCandidates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.referencedWarehouses {
		if !c.seenWarehouses[id] {
			c.addCandidateLocked(target{targetWarehouse, string(id)}, candidate{referenced: true})
		}
	}
}

// addReferencedWarehouse remembers that a record refers to a warehouse.
func (c *check) addReferencedWarehouse(id commerce.WarehouseID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.referencedWarehouses[id] = true
}

// verifyIfFull verifies the suspects when there are too many to remember.
func (c *check) verifyIfFull(ctx context.Context) error {
	if !c.isFull() {
		return nil
	}
	c.verifying.Lock()
	defer c.verifying.Unlock()
	if !c.isFull() {
		return nil
	}
	for kind := range targetProduct {
		if err := c.verifyCandidates(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) isFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.candidates) >= c.opts.Suspects
}

// verifyCandidates verifies the suspicious units of a kind.
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
	ks := slices.SortedFunc(maps.Keys(taken), func(a, b target) int { return strings.Compare(a.id, b.id) })
	for some := range slices.Chunk(ks, table.BatchSize) {
		r := newStockRecount(some, taken)
		err := table.Parallel(ctx, len(some), c.opts.Parallel, func(ctx context.Context, i int) error {
			if err := c.verifyAndRepair(ctx, some[i], taken[some[i]], r); err != nil {
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

// newVerifier returns a unit of which nothing has been read. r recounts the stock of products.
func (c *check) newVerifier(k target, s candidate, r *stockRecount) verifier {
	switch k.kind {
	case targetOrder:
		hints := map[commerce.CustomerID]bool{}
		for _, id := range s.extraCustomers {
			hints[id] = true
		}
		// Without findings it may have been found to be right, and only its copy not.
		return &orderVerifier{id: commerce.OrderID(k.id), extraCustomers: hints, mayBeCounted: s.findings == nil}
	case targetCustomer:
		v := newCustomerVerifier(c.table, k.id)
		v.referenced, v.claimedAddress, v.newerCopies, v.newerEvents = s.referenced, s.claimedAddress, s.newerCopies, s.newerEvents
		return v
	case targetClaim:
		return &claimVerifier{email: k.id}
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
		return &repOrdersVerifier{RepOrderCounter: c.orderCounter.ForRep(commerce.EmployeeID(k.id))}
	default:
		return &statusCountsVerifier{part: k.id, counter: c.orderCounter}
	}
}

// maxAttempts is how often a unit is read to find out what is wrong with it, and repaired.
const maxAttempts = 4

// verifyAndRepair verifies a unit, reports what is wrong with it, and repairs it where that is asked for. r
// recounts the stock of products.
func (c *check) verifyAndRepair(ctx context.Context, k target, s candidate, r *stockRecount) error {
	v := c.newVerifier(k, s, r)
	attempts := attempts{remaining: maxAttempts, previous: s.findings}
	// found is what was certain at any time, and last the last reading.
	var found, last *repair.Diagnosis
	for {
		diag, ok, err := c.readConfirmed(ctx, v, &attempts)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if !c.scanDone && !v.hasRoot() {
			c.postpone(v, k, s)
			c.report(found, last)
			return nil
		}
		found, last = found.Merge(diag), diag
		if diag.Clean() || !c.opts.Repair || len(diag.Fixes) == 0 {
			break
		}
		if last, found.RefusalReason, err = c.repairAndReread(ctx, v, diag); err != nil {
			return err
		}
		if found.RefusalReason == "" && !hasNewFindings(diag, last) {
			break
		}
		// Somebody was quicker, or the repair showed what could not be seen before it.
		attempts.previous = last.Findings
	}
	if found == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reportUnverifiedLocked(v.key(c.table), attempts.uncertainty)
		if order, ok := v.(*orderVerifier); ok && order.orderRecord == nil {
			c.markUncertainLocked(order) // a recount finds those in the index
		}
		return nil
	}
	c.report(found, last)
	v.propagate(c, found, last)
	return nil
}

// postpone leaves a unit to be verified when the scan has ended.
func (c *check) postpone(v verifier, k target, s candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.postponed[k]; ok {
		s = known.merge(s)
	} else if len(c.postponed) >= c.opts.Suspects {
		c.reportUnverifiedLocked(v.key(c.table), "there are too many records like it; check again after the others are repaired")
		if k.kind == targetOrder {
			c.abandonedOrder = commerce.OrderID(k.id)
		}
		return
	}
	c.postponed[k] = s
}

// attempts are those to verify a unit.
type attempts struct {
	// remaining is how many more there may be.
	remaining int
	// previous is what the reading before found.
	previous []repair.Finding
	// uncertainty is why the last reading was not enough.
	uncertainty string
}

// readConfirmed reads a unit until two readings in a row find the same, as a mutation is atomic and
// several reads are not. One that finds nothing is enough. It tells false where there was no such
// reading.
func (c *check) readConfirmed(ctx context.Context, v verifier, a *attempts) (diag *repair.Diagnosis, ok bool, err error) {
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
		if diag.Clean() || model.SameSet(a.previous, diag.Findings, repair.FindingKey) {
			return diag, true, nil
		}
		a.previous, a.uncertainty = diag.Findings, "it was another one each time that it was read"
	}
	return nil, false, nil
}

// repairAndReread repairs what is wrong with a unit, and reads it again. Where the repair was refused it
// tells why, and what is wrong is what was.
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

// reportUnverifiedLocked tells of a unit of which nothing can be told.
func (c *check) reportUnverifiedLocked(k model.Keys, why string) {
	c.summary.Unsettled++
	if c.opts.Unsettled != nil {
		c.opts.Unsettled(Unsettled{PK: k.PK, SK: k.SK, Reason: why})
	}
}

// hasNewFindings reports whether after has what before has not.
func hasNewFindings(before, after *repair.Diagnosis) bool {
	for _, f := range after.Findings {
		if !before.HasFinding(f.Kind, f.Key) {
			return true
		}
	}
	return false
}

// report tells of drifts that are certain. Those that the last reading does not have were put
// right.
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
			Class: f.Kind, PK: f.Key.PK, SK: f.Key.SK, Detail: f.Detail, Repaired: !last.HasFinding(f.Kind, f.Key),
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
		if c.opts.Found != nil {
			c.opts.Found(d)
		}
	}
}

// hasReported reports whether something was found about a record, as far as is remembered.
func (c *check) hasReported(k model.Keys) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reported.Has(k.Text())
}

func (c *check) reportProgressLocked() {
	if c.opts.Progress == nil {
		return
	}
	found := 0
	for _, n := range c.summary.Found {
		found += n
	}
	c.opts.Progress(CheckProgress{Records: c.summary.Records, Found: found, Settling: c.toVerify})
}

// uncertainOrder returns an order that may hold some of a product, and cannot be read; empty where
// there is none.
func (c *check) uncertainOrder(sku commerce.SKU) commerce.OrderID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.uncertainProducts[sku], c.abandonedOrder)
}

// isUnreadableCustomer reports whether an order names the customer that cannot be read.
func (c *check) isUnreadableCustomer(id commerce.CustomerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unreadableCustomers[id]
}

// markUncertainLocked notes the products of an order that cannot be read.
func (c *check) markUncertainLocked(v *orderVerifier) {
	for _, sku := range v.skus() {
		c.uncertainProducts[sku] = v.id
	}
}

// missingCopiesOf is how many orders a customer's partition lacks, as far as that was found and not put
// right.
func (c *check) missingCopiesOf(id commerce.CustomerID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missingCopies[id]
}
