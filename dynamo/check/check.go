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

// usualIndexLag is the IndexLag where nothing is said.
const usualIndexLag = time.Second

// Drift is a record that disagrees with others or with the model.
type Drift struct {
	// Class is the name of one of DriftClasses.
	Class string `json:"class"`
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
	for class, found := range s.Found {
		n += found - s.Repaired[class]
	}
	return n
}

// unitKind is what a unit is of.
type unitKind int

// The kinds, in the order in which suspicious units are verified: what orders need before
// customers, what customers claim before claims, the stock when all orders are right, and
// categories when all products are. Warehouses come behind all that refer to them, and the numbers
// of orders last.
const (
	unitOrder unitKind = iota
	unitCustomer
	unitClaim
	unitEmployee
	unitProduct
	unitCategory
	unitWarehouse
	unitCounts
	unitRep
	unitKinds
)

// unitKey names a unit.
type unitKey struct {
	kind unitKind
	id   string
}

// unit is a record with all that follows from it, which is verified and repaired as a whole. Other
// units do not need to be read for that.
type unit interface {
	// add takes a record of the unit's item collection.
	add(e *model.Entity, rec model.Record)
	// read reads the unit anew, consistently.
	read(ctx context.Context, c *check) error
	// judge tells what is wrong with what was read.
	judge(c *check) *repair.Verdict
	// settled tells the check what follows from the unit for others. v is what was wrong, and last
	// what still is.
	settled(c *check, v, last *repair.Verdict)
	// key is the key of the record that names the unit.
	key(t *table.Table) model.Keys
	// doubt returns why v, which was made of what was read last, is not certain; empty if nothing
	// speaks against it.
	doubt(v *repair.Verdict) string
	// repaired tells the unit that it has been repaired.
	repaired()
	// rooted reports whether the record was read from which the others of the unit follow. A unit
	// without it is not repaired before the scan has ended: a record that the scan has yet to read
	// may tell what it was.
	rooted() bool
}

// selfContained has the methods of units all of whose records are read at once: no reading is in
// doubt, and nothing follows from the result.
type selfContained struct{}

func (selfContained) doubt(*repair.Verdict) string { return "" }

func (selfContained) repaired() {}

func (selfContained) rooted() bool { return true }

func (selfContained) settled(*check, *repair.Verdict, *repair.Verdict) {}

// suspicion is why a unit is to be verified, and what its verification has to know.
type suspicion struct {
	// findings are what the scan found.
	findings []repair.Finding
	// customers may have copies of an order.
	customers []commerce.CustomerID
	// needed reports whether another record refers to a customer or warehouse.
	needed bool
	// recount requires that the stock of a product is counted from its levels and orders.
	recount bool
	// orders requires that the orders of a product are counted.
	orders bool
	// byCopy and byEvent are orders of a customer with which the customer's last event is to be
	// compared.
	byCopy, byEvent lateOrders
	// address is an e-mail address whose claim names a customer.
	address string
}

// maxSuspects is how many suspicious units are remembered where nothing is said.
const maxSuspects = 10_000

// check is one check of a table. Its memory is a page a segment, the suspects, and some hundred
// bytes for each product, for each misleading order, and for each order that is not delivered or
// cancelled.
type check struct {
	table  *table.Table
	client *repair.Client
	opts   Options

	// settling is held while suspects are verified before the table is read to its end.
	settling sync.Mutex

	mu       sync.Mutex
	summary  Summary
	suspects map[unitKey]suspicion
	// postponed are suspects that were found not to be rooted during the scan.
	postponed map[unitKey]suspicion
	scanned   bool
	// toSettle is how many suspects are being verified.
	toSettle int
	reported repair.Recently

	// held is what pending and confirmed orders hold of each product, as they were when they were
	// read.
	held map[commerce.SKU]int
	// misleading are orders that are left with inconsistencies because of which their own record
	// does not tell what they hold, or the index does not list them, with the customers who may
	// have copies.
	misleading map[commerce.OrderID]map[commerce.CustomerID]bool
	// uncertain are products of which an order that cannot be read may hold something, with that
	// order.
	uncertain map[commerce.SKU]commerce.OrderID
	// drifted are the customers of orders that are left with inconsistencies.
	drifted map[commerce.CustomerID]bool
	// unread are the customers whom orders name that cannot be read.
	unread map[commerce.CustomerID]bool
	// givenUp is an order of which nothing was read that tells what it holds; empty if there is
	// none.
	givenUp commerce.OrderID
	// stock is what the products' records said, to be compared with held when all orders have been
	// read.
	stock map[commerce.SKU]stockSeen
	// categories are the numbers of products in categories, and lists those of orders in the lists of
	// products and account reps.
	categories counting.Numbers
	lists      *counting.Lists
	// warehouses are those that were read, referred those that levels and employees refer to.
	warehouses map[commerce.WarehouseID]bool
	referred   map[commerce.WarehouseID]bool
	// orders counts the orders by status.
	orders *counting.Orders
	// ordersToCome is how many orders a customer's partition lacks that were not put there; it is
	// less than zero where it has too many.
	ordersToCome map[commerce.CustomerID]int
}

// stockSeen is what a product's records said when they were read.
type stockSeen struct{ inventory, available int }

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
		opts.Suspects = maxSuspects
	}
	if opts.IndexLag == 0 {
		opts.IndexLag = usualIndexLag
	}
	c := &check{
		table: checks.table, client: &repair.Client{Table: checks.table}, opts: opts,
		summary:  Summary{Found: map[string]int{}, Repaired: map[string]int{}},
		suspects: map[unitKey]suspicion{}, postponed: map[unitKey]suspicion{},
		held: map[commerce.SKU]int{}, misleading: map[commerce.OrderID]map[commerce.CustomerID]bool{},
		uncertain: map[commerce.SKU]commerce.OrderID{}, unread: map[commerce.CustomerID]bool{}, drifted: map[commerce.CustomerID]bool{}, stock: map[commerce.SKU]stockSeen{},
		warehouses: map[commerce.WarehouseID]bool{}, referred: map[commerce.WarehouseID]bool{},
		ordersToCome: map[commerce.CustomerID]int{},
	}
	c.orders, c.lists = counting.NewOrders(c.client, opts.IndexLag), counting.NewLists(c.table, opts.Repair)
	err := c.run(ctx)
	c.summary.Requests, c.summary.ReadUnits = c.client.Cost()
	return c.summary, err
}

func (c *check) run(ctx context.Context) error {
	err := table.Parallel(ctx, c.opts.Segments, c.opts.Segments, func(ctx context.Context, i int) error {
		g := &gathering{check: c}
		return c.client.Scan(ctx, i, c.opts.Segments, func(page []map[string]types.AttributeValue, last bool) error {
			return g.take(ctx, page, last)
		})
	})
	if err != nil {
		return err
	}
	c.scanned = true
	for k, s := range c.postponed {
		c.suspect(k, s)
	}
	clear(c.postponed)
	for kind := range unitKinds {
		switch kind {
		case unitProduct:
			c.suspectStock()
		case unitCategory:
			c.suspectCategories()
		case unitWarehouse:
			c.suspectWarehouses()
		case unitCounts:
			c.suspectCounts()
		case unitRep:
			c.suspectReps()
		}
		if err := c.settleAll(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// suspect remembers a unit to be verified.
func (c *check) suspect(k unitKey, s suspicion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspectLocked(k, s)
}

func (c *check) suspectLocked(k unitKey, s suspicion) { c.suspects[k] = c.suspects[k].and(s) }

// and returns what both suspicions of a unit say.
func (s suspicion) and(other suspicion) suspicion {
	if s.findings == nil {
		s.findings = other.findings
	}
	for _, id := range other.customers {
		if !slices.Contains(s.customers, id) {
			s.customers = append(slices.Clip(s.customers), id)
		}
	}
	s.needed = s.needed || other.needed
	s.recount, s.orders = s.recount || other.recount, s.orders || other.orders
	if s.address == "" || other.address != "" && other.address < s.address {
		s.address = other.address // the same one in every check
	}
	s.byCopy, s.byEvent = s.byCopy.later(other.byCopy), s.byEvent.later(other.byEvent)
	return s
}

// suspectStock suspects the products whose available stock is not what the orders left, as they
// were read one after the other, or whose number of orders differs.
func (c *check) suspectStock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.lists.Products.Candidates(false) {
		if sku := commerce.SKU(model.KeyValue(model.EntityProduct.PK, k.PK)); c.uncertain[sku] == "" && c.givenUp == "" {
			c.suspectLocked(unitKey{unitProduct, string(sku)}, suspicion{orders: true})
		}
	}
	for sku, seen := range c.stock {
		if seen.available != seen.inventory-c.held[sku] {
			c.suspectLocked(unitKey{unitProduct, string(sku)}, suspicion{recount: true})
		}
	}
}

// suspectWarehouses suspects those that others refer to and that were not seen.
func (c *check) suspectWarehouses() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.referred {
		if !c.warehouses[id] {
			c.suspectLocked(unitKey{unitWarehouse, string(id)}, suspicion{needed: true})
		}
	}
}

// refer remembers that a record refers to a warehouse.
func (c *check) refer(id commerce.WarehouseID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.referred[id] = true
}

// relieve verifies the suspects when there are too many to remember.
func (c *check) relieve(ctx context.Context) error {
	if !c.crowded() {
		return nil
	}
	c.settling.Lock()
	defer c.settling.Unlock()
	if !c.crowded() {
		return nil
	}
	for kind := range unitProduct {
		if err := c.settleAll(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.suspects) >= c.opts.Suspects
}

// settleAll verifies the suspicious units of a kind.
func (c *check) settleAll(ctx context.Context, kind unitKind) error {
	c.mu.Lock()
	taken := map[unitKey]suspicion{}
	for k, s := range c.suspects {
		if k.kind == kind {
			taken[k] = s
			delete(c.suspects, k)
		}
	}
	c.toSettle = len(taken)
	c.mu.Unlock()
	if len(taken) == 0 {
		return nil
	}
	ks := slices.SortedFunc(maps.Keys(taken), func(a, b unitKey) int { return strings.Compare(a.id, b.id) })
	for some := range slices.Chunk(ks, table.BatchSize) {
		r := newRecount(some, taken)
		err := table.Parallel(ctx, len(some), c.opts.Parallel, func(ctx context.Context, i int) error {
			if err := c.settle(ctx, some[i], taken[some[i]], r); err != nil {
				return err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.toSettle--
			c.progressLocked()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// newUnit returns a unit of which nothing has been read. r recounts the stock of products.
func (c *check) newUnit(k unitKey, s suspicion, r *recount) unit {
	switch k.kind {
	case unitOrder:
		hints := map[commerce.CustomerID]bool{}
		for _, id := range s.customers {
			hints[id] = true
		}
		// Without findings it may have been found to be right, and only its copy not.
		return &orderUnit{id: commerce.OrderID(k.id), hints: hints, again: s.findings == nil}
	case unitCustomer:
		u := newCustomerUnit(c.table, k.id)
		u.needed, u.address, u.byCopy, u.byEvent = s.needed, s.address, s.byCopy, s.byEvent
		return u
	case unitClaim:
		return &claimUnit{email: k.id}
	case unitEmployee:
		return newEmployeeUnit(k.id)
	case unitProduct:
		u := newProductUnit(k.id)
		if u.orders = s.orders; s.recount || s.orders {
			u.recount = r
		}
		return u
	case unitCategory:
		return &categoryUnit{name: k.id}
	case unitWarehouse:
		u := newWarehouseUnit(k.id)
		u.needed = s.needed
		return u
	case unitRep:
		return &repUnit{RepOrders: c.orders.Rep(commerce.EmployeeID(k.id))}
	default:
		return &countsUnit{part: k.id, orders: c.orders}
	}
}

// settleAttempts is how often a unit is read to find out what is wrong with it, and repaired.
const settleAttempts = 4

// settle verifies a unit, reports what is wrong with it, and repairs it where that is asked for. r
// recounts the stock of products.
func (c *check) settle(ctx context.Context, k unitKey, s suspicion, r *recount) error {
	u := c.newUnit(k, s, r)
	attempts := attempts{left: settleAttempts, before: s.findings}
	// found is what was certain at any time, and last the last reading.
	var found, last *repair.Verdict
	for {
		v, ok, err := c.confirmed(ctx, u, &attempts)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if !c.scanned && !u.rooted() {
			c.postpone(u, k, s)
			c.report(found, last)
			return nil
		}
		found, last = found.And(v), v
		if v.Clean() || !c.opts.Repair || len(v.Fixes) == 0 {
			break
		}
		if last, found.Refused, err = c.mended(ctx, u, v); err != nil {
			return err
		}
		if found.Refused == "" && !newFindings(v, last) {
			break
		}
		// Somebody was quicker, or the repair showed what could not be seen before it.
		attempts.before = last.Findings
	}
	if found == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unsettledLocked(u.key(c.table), attempts.doubt)
		if order, ok := u.(*orderUnit); ok && order.main == nil {
			c.uncertainLocked(order) // a recount finds those in the index
		}
		return nil
	}
	c.report(found, last)
	u.settled(c, found, last)
	return nil
}

// postpone leaves a unit to be verified when the scan has ended.
func (c *check) postpone(u unit, k unitKey, s suspicion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.postponed[k]; ok {
		s = known.and(s)
	} else if len(c.postponed) >= c.opts.Suspects {
		c.unsettledLocked(u.key(c.table), "there are too many records like it; check again after the others are repaired")
		if k.kind == unitOrder {
			c.givenUp = commerce.OrderID(k.id)
		}
		return
	}
	c.postponed[k] = s
}

// attempts are those to verify a unit.
type attempts struct {
	// left is how many more there may be.
	left int
	// before is what the reading before found.
	before []repair.Finding
	// doubt is why the last reading was not enough.
	doubt string
}

// confirmed reads a unit until two readings in a row find the same, as a mutation is atomic and
// several reads are not. One that finds nothing is enough. It tells false where there was no such
// reading.
func (c *check) confirmed(ctx context.Context, u unit, a *attempts) (v *repair.Verdict, ok bool, err error) {
	for a.left > 0 {
		a.left--
		if err := u.read(ctx, c); err != nil {
			return nil, false, err
		}
		v := u.judge(c)
		if doubt := u.doubt(v); doubt != "" {
			a.before, a.doubt = v.Findings, doubt
			continue
		}
		if v.Clean() || model.SameSet(a.before, v.Findings, repair.AsFound) {
			return v, true, nil
		}
		a.before, a.doubt = v.Findings, "it was another one each time that it was read"
	}
	return nil, false, nil
}

// mended repairs what is wrong with a unit, and reads it again. Where the repair was refused it
// tells why, and what is wrong is what was.
func (c *check) mended(ctx context.Context, u unit, v *repair.Verdict) (after *repair.Verdict, refused string, err error) {
	err = c.client.Repair(ctx, v)
	if refused := (*repair.RefusedError)(nil); errors.As(err, &refused) {
		return v, refused.Reason, nil
	}
	if err != nil {
		return nil, "", err
	}
	u.repaired()
	if err := u.read(ctx, c); err != nil {
		return nil, "", err
	}
	return u.judge(c), "", nil
}

// unsettledLocked tells of a unit of which nothing can be told.
func (c *check) unsettledLocked(k model.Keys, why string) {
	c.summary.Unsettled++
	if c.opts.Unsettled != nil {
		c.opts.Unsettled(Unsettled{PK: k.PK, SK: k.SK, Reason: why})
	}
}

// newFindings reports whether after has what before has not.
func newFindings(before, after *repair.Verdict) bool {
	for _, f := range after.Findings {
		if !before.HasAt(f.Class, f.Key) {
			return true
		}
	}
	return false
}

// report tells of drifts that are certain. Those that the last reading does not have were put
// right.
func (c *check) report(found, last *repair.Verdict) {
	if found == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range found.Findings {
		if !c.reported.Add(f.Class + " " + f.Key.Text()) {
			continue
		}
		c.reported.Add(f.Key.Text())
		d := Drift{
			Class: f.Class, PK: f.Key.PK, SK: f.Key.SK, Detail: f.Detail, Repaired: !last.HasAt(f.Class, f.Key),
			ByHand: f.By == repair.ByHand, StandIn: f.By == repair.ByStandIn,
		}
		c.summary.Found[f.Class]++
		switch {
		case d.Repaired:
			c.summary.Repaired[f.Class]++
		case d.ByHand:
			c.summary.ByHand++
		case found.Refused != "":
			d.Detail += "; the repair was refused: " + found.Refused
		}
		if c.opts.Found != nil {
			c.opts.Found(d)
		}
	}
}

// foundAlready reports whether something was found about a record, as far as is remembered.
func (c *check) foundAlready(k model.Keys) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reported.Has(k.Text())
}

func (c *check) progressLocked() {
	if c.opts.Progress == nil {
		return
	}
	found := 0
	for _, n := range c.summary.Found {
		found += n
	}
	c.opts.Progress(CheckProgress{Records: c.summary.Records, Found: found, Settling: c.toSettle})
}

// uncertainOrder returns an order that may hold some of a product, and cannot be read; empty where
// there is none.
func (c *check) uncertainOrder(sku commerce.SKU) commerce.OrderID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.uncertain[sku], c.givenUp)
}

// isUnread reports whether an order names the customer that cannot be read.
func (c *check) isUnread(id commerce.CustomerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread[id]
}

// uncertainLocked notes the products of an order that cannot be read.
func (c *check) uncertainLocked(u *orderUnit) {
	for _, sku := range u.skus() {
		c.uncertain[sku] = u.id
	}
}

// toCome is how many orders a customer's partition lacks, as far as that was found and not put
// right.
func (c *check) toCome(id commerce.CustomerID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ordersToCome[id]
}
