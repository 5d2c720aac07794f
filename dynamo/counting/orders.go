package counting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// OrderCounter verifies the stored order counts by status. If a count differs from the scanned
// orders, it counts the orders again, in one or more passes. It is safe for concurrent use.
type OrderCounter struct {
	client *repair.Client
	// lag is the maximum delay after which the index contains a new order.
	lag time.Duration
	// since is a time shortly before the start of the scan. The scan may have missed orders that were
	// placed at this time or later.
	since time.Time

	mu sync.Mutex
	// final contains the counts of delivered and cancelled orders, by the number of the counts record.
	// It excludes orders that are new, or that a repair may change. Passes do not read the counted
	// orders again.
	final map[string]commerce.StatusCounts
	// open contains the orders that final does not count. Each pass reads these orders again. open
	// maps the number of a counts record to the orders that this record counts, and each order to its
	// status. An unknown status is 0.
	open map[string]map[commerce.OrderID]commerce.Status
	// statusReaders contains a function for each order whose own record has a wrong or unreadable
	// status. The function determines the order's actual status.
	statusReaders map[commerce.OrderID]StatusReader
	// changed contains the numbers of the counts records that count an inconsistent order. The scanned
	// status of the order may be wrong, or a repair has changed it.
	changed map[string]bool
	// countsRecords contains the counts records that the scan read, by their number. Each of them
	// counts a part of the orders (see model.OrderCountParts).
	countsRecords map[string]model.Record
	// discoveredUntil is the time when addNewOrders last queried the index for new orders.
	discoveredUntil time.Time

	// turn is a mutex for passes, so only one pass runs at a time. It is a channel, so a caller can
	// stop waiting when its context ends.
	turn chan struct{}
	// parts contains the numbers of the counts records that the next pass must verify.
	parts map[string]bool
	// passes contains the results of each pass, by the number of the counts record.
	passes []map[string]PartCounts
}

// StatusReader determines the actual status of an order whose own record has a wrong status. If the
// status is unknown, it returns 0.
type StatusReader func(context.Context) (commerce.Status, error)

// PartCounts contains the result of a pass for one counts record: the actual order counts, and the
// record as the pass read it.
type PartCounts struct {
	// Record is the counts record. ByStatus contains the actual counts of its orders. They are valid
	// as long as the counts record in the table does not change.
	Record   model.Record
	ByStatus commerce.StatusCounts
	// Uncertainty is the reason why ByStatus may be wrong. If ByStatus is correct, Uncertainty is
	// empty.
	Uncertainty string
}

// maxVisibilityDelay is the maximum time from the creation of an order's ID until reads find the
// order. It includes the difference between the clocks of servers.
const maxVisibilityDelay = time.Minute

// NewOrderCounter returns an OrderCounter for a scan that starts now. lag is the maximum delay
// after which the index contains a new order.
func NewOrderCounter(client *repair.Client, lag time.Duration) *OrderCounter {
	now := client.Table.Now()
	return &OrderCounter{
		client: client, lag: lag, since: now.Add(-maxVisibilityDelay), discoveredUntil: now,
		final: map[string]commerce.StatusCounts{}, open: map[string]map[commerce.OrderID]commerce.Status{},
		statusReaders: map[commerce.OrderID]StatusReader{}, changed: map[string]bool{}, countsRecords: map[string]model.Record{},
		turn: make(chan struct{}, 1), parts: map[string]bool{},
	}
}

// Add adds a scanned order. record is the order's own record, or nil if it does not exist. If clean
// is true, no repair will change the order's status.
func (o *OrderCounter) Add(id commerce.OrderID, record model.Record, clean bool) {
	status, _ := StatusOf(record)
	o.add(id, status, clean)
}

func (o *OrderCounter) add(id commerce.OrderID, status commerce.Status, clean bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	part := model.OrderCountPart(id)
	if clean && !o.isNew(id) && status != 0 && len(status.Transitions()) == 0 {
		counts := o.final[part]
		counts[status]++
		o.final[part] = counts
		return
	}
	if o.open[part] == nil {
		o.open[part] = map[commerce.OrderID]commerce.Status{}
	}
	o.open[part][id] = status
}

func (o *OrderCounter) isNew(id commerce.OrderID) bool {
	placed, ok := id.Time()
	return ok && !placed.Before(o.since)
}

// MarkChanged is called if an order was inconsistent. Candidates then returns the counts record that
// counts the order, even if the counts agree with the scanned status.
func (o *OrderCounter) MarkChanged(id commerce.OrderID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed[model.OrderCountPart(id)] = true
}

// SetStatusReader sets the StatusReader of an order whose own record has a wrong status.
func (o *OrderCounter) SetStatusReader(id commerce.OrderID, read StatusReader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statusReaders[id] = read
}

// AddCounts adds a counts record that the scan has read.
func (o *OrderCounter) AddCounts(counts model.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countsRecords[model.FirstPlaceholderValue(model.EntityOrderCounts.SK, model.KeyOf(counts).SK)] = counts
}

// ordersToRead returns the orders that must be read to verify a counts record. part is the record's
// number. ended contains the counts of the delivered and cancelled orders that need not be read.
func (o *OrderCounter) ordersToRead(part string) (ids []commerce.OrderID, ended commerce.StatusCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.open[part])), o.final[part]
}

// Candidates returns the numbers of the counts records to verify: they differ from the scanned
// orders, or MarkChanged was called with one of their orders. If the table has no complete order
// counts and countNow is false, it returns nothing.
func (o *OrderCounter) Candidates(countNow bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	records := map[string]model.Record{}
	for i := range model.OrderCountParts {
		records[strconv.Itoa(i)] = nil
	}
	maps.Copy(records, o.countsRecords)
	keepsCounts := false
	for _, rec := range o.countsRecords {
		keepsCounts = keepsCounts || (&model.Reader{Record: rec}).Flag(model.AttrComplete)
	}
	if !keepsCounts && (!countNow || len(o.final)+len(o.open) == 0) {
		return nil
	}
	for part, have := range records {
		counts := o.final[part]
		for _, status := range o.open[part] {
			counts[status]++
		}
		diag := &repair.Diagnosis{Table: o.client.Table}
		if VerifyStatusCounts(diag, part, have, counts); !diag.IsClean() || o.changed[part] {
			o.parts[part] = true
		}
	}
	return slices.Sorted(maps.Keys(o.parts))
}

// VerifyStatusCounts adds the differences between a counts record and the actual counts to diag.
// part is the record's number. If the record does not exist, have is nil.
func VerifyStatusCounts(diag *repair.Diagnosis, part string, have model.Record, counts commerce.StatusCounts) {
	want := model.OrderCountsRecord(diag.Table.KeyBuilder(), commerce.OrderCounts{Part: part, Complete: true, ByStatus: counts})
	n, err := strconv.Atoi(part)
	switch {
	case err != nil || n < 0 || n >= model.OrderCountParts || part != strconv.Itoa(n):
		diag.AddOrphan(repair.DriftStatusCounts, have, "this record stores order counts, but its key contains an invalid record number")
	case have == nil:
		diag.AddMissing(repair.DriftStatusCounts, want, nil, "this record with order counts by status is missing")
	default:
		diag.Compare(&model.EntityOrderCounts, have, want, repair.DriftStatusCounts)
	}
}

// StatusCountsKey returns the key of a counts record, which stores order counts by status for a
// part of the orders. part is the record's number.
func StatusCountsKey(t *table.Table, part string) model.Keys {
	return model.KeyOf(model.OrderCountsRecord(t.KeyBuilder(), commerce.OrderCounts{Part: part}))
}

// ReadCountsRecord reads a counts record, which stores order counts by status for a part of the
// orders. part is the record's number.
//
// It returns the errors of repair.Client.GetConsistent.
func (o *OrderCounter) ReadCountsRecord(ctx context.Context, part string) (model.Record, error) {
	return o.client.GetConsistent(ctx, StatusCountsKey(o.client.Table, part))
}

// ReasonOrdersChanged means that counts may be wrong, because orders changed while they were
// counted. If the orders are counted again, the counts may become certain.
const ReasonOrdersChanged = "orders changed each time they were counted"

// Count returns the result of pass n for one counts record. The first pass has the number 0. If
// pass n has not run yet, Count runs it. All callers share the results of a pass.
//
// It returns the errors of repair.Client, or the context's error.
func (o *OrderCounter) Count(ctx context.Context, part string, n int) (PartCounts, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return PartCounts{}, fmt.Errorf("count orders: %w", ctx.Err())
	}
	for len(o.passes) <= n {
		if err := o.runPass(ctx); err != nil {
			return PartCounts{}, err
		}
	}
	return o.passes[n][part], nil
}

// ExcludePart excludes a counts record from later passes. part is the record's number.
func (o *OrderCounter) ExcludePart(part string) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	delete(o.parts, part)
}

func (o *OrderCounter) runPass(ctx context.Context) error {
	found, known := map[string]PartCounts{}, map[string]int{}
	for _, part := range slices.Sorted(maps.Keys(o.parts)) {
		// Every transaction that changes an order's status also changes its counts record. So if the
		// counts record stays the same, no status has changed meanwhile.
		before, err := o.ReadCountsRecord(ctx, part)
		if err != nil {
			return err
		}
		ids, counts := o.ordersToRead(part)
		unreadable, err := o.countByStatus(ctx, ids, &counts)
		if err != nil {
			return err
		}
		after, err := o.ReadCountsRecord(ctx, part)
		if err != nil {
			return err
		}
		counted := PartCounts{Record: after, ByStatus: counts}
		switch {
		case unreadable != "":
			counted.Uncertainty = fmt.Sprintf("the status of %s cannot be read", model.OrderByID.Key(o.client.Table.KeyBuilder(), unreadable).PK)
		case !model.EqualRecords(before, after):
			counted.Uncertainty = ReasonOrdersChanged
		}
		found[part], known[part] = counted, len(ids)
	}
	// If the index contains orders that were not counted, another pass is necessary.
	if err := o.addNewOrders(ctx); err != nil {
		return err
	}
	for part, counted := range found {
		if ids, _ := o.ordersToRead(part); len(ids) != known[part] && counted.Uncertainty == "" {
			counted.Uncertainty = ReasonOrdersChanged
			found[part] = counted
		}
	}
	o.passes = append(o.passes, found)
	return nil
}

// countByStatus reads the given orders and adds them to counts. If the status of an order cannot be
// read, countByStatus stops and returns this order's ID as unreadable.
func (o *OrderCounter) countByStatus(ctx context.Context, ids []commerce.OrderID, counts *commerce.StatusCounts) (unreadable commerce.OrderID, err error) {
	for batch := range slices.Chunk(ids, table.MaxBatchKeys) {
		b := o.client.Table.KeyBuilder()
		ks := make([]model.Keys, len(batch))
		for i, id := range batch {
			ks[i] = model.OrderByID.Key(b, id)
		}
		found, err := o.client.Get(ctx, repair.Consistent, ks...)
		if err != nil {
			return "", err
		}
		for i, id := range batch {
			status, exists := StatusOf(found[ks[i]])
			if read := o.statusReaders[id]; read != nil {
				actual, err := read(ctx)
				if err != nil {
					return "", err
				}
				if actual != 0 {
					status, exists = actual, true
				}
			}
			switch {
			case exists && status == 0:
				return id, nil
			case exists:
				counts[status]++
			}
		}
	}
	return "", nil
}

// StatusOf returns the status in an order's own record. If the status cannot be read, it returns 0.
// If the record does not exist, exists is false.
func StatusOf(order model.Record) (status commerce.Status, exists bool) {
	status, _ = commerce.ParseStatus(model.TextOf(order, "status"))
	return status, order != nil
}

// addNewOrders waits until the index is up to date. Then it adds the orders that were placed since
// its last call.
func (o *OrderCounter) addNewOrders(ctx context.Context) error {
	if err := table.Sleep(ctx, o.lag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	t := o.client.Table
	now := t.Now()
	from, _ := commerce.MinULIDAt(o.discoveredUntil.Add(-maxVisibilityDelay))
	to, _ := commerce.MinULIDAt(now.Add(table.MaxClockSkew))
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersPlaced.PK.Build(status.String())
		if err != nil {
			return err
		}
		for shard := range t.Shards {
			partition := base + model.ShardSuffix(shard, t.Shards)
			err := o.client.QueryRange(ctx, &model.OrdersPlaced.AccessPattern, partition, string(model.OrdersPlaced.SK), model.Range{From: from, To: to}, types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
				for _, rec := range out.Items {
					if id := commerce.OrderID(model.FirstPlaceholderValue(model.EntityOrder.PK, model.KeyOf(rec).PK)); o.isNew(id) {
						o.add(id, status, false)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	o.discoveredUntil = now
	return nil
}
