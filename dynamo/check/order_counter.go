package check

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
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// orderCounter verifies the stored order counts by status. If a count differs from the scanned
// orders, it counts the orders again, in one or more passes. It is safe for concurrent use.
type orderCounter struct {
	client *client
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
	statusReaders map[commerce.OrderID]statusReader
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
	passes []map[string]partCounts
}

// statusReader determines the actual status of an order whose own record has a wrong status. If the
// status is unknown, it returns 0.
type statusReader func(context.Context) (commerce.Status, error)

// partCounts contains the result of a pass for one counts record: the actual order counts, and the
// record as the pass read it.
type partCounts struct {
	// record is the counts record. byStatus contains the actual counts of its orders. They are valid
	// as long as the counts record in the table does not change.
	record   model.Record
	byStatus commerce.StatusCounts
	// uncertainty is the reason why byStatus may be wrong. If byStatus is correct, Uncertainty is
	// empty.
	uncertainty string
}

// maxVisibilityDelay is the maximum time from the creation of an order's ID until reads find the
// order. It includes the difference between the clocks of servers.
const maxVisibilityDelay = time.Minute

// newOrderCounter returns an orderCounter for a scan that starts now. lag is the maximum delay
// after which the index contains a new order.
func newOrderCounter(client *client, lag time.Duration) *orderCounter {
	now := client.table.Now()
	return &orderCounter{
		client: client, lag: lag, since: now.Add(-maxVisibilityDelay), discoveredUntil: now,
		final: map[string]commerce.StatusCounts{}, open: map[string]map[commerce.OrderID]commerce.Status{},
		statusReaders: map[commerce.OrderID]statusReader{}, changed: map[string]bool{}, countsRecords: map[string]model.Record{},
		turn: make(chan struct{}, 1), parts: map[string]bool{},
	}
}

// addRecord adds a scanned order. record is the order's own record, or nil if it does not exist. If clean
// is true, no repair will change the order's status.
func (o *orderCounter) addRecord(id commerce.OrderID, record model.Record, clean bool) {
	status, _ := statusOf(record)
	o.add(id, status, clean)
}

func (o *orderCounter) add(id commerce.OrderID, status commerce.Status, clean bool) {
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

func (o *orderCounter) isNew(id commerce.OrderID) bool {
	placed, ok := id.Time()
	return ok && !placed.Before(o.since)
}

// markChanged is called if an order was inconsistent. Candidates then returns the counts record that
// counts the order, even if the counts agree with the scanned status.
func (o *orderCounter) markChanged(id commerce.OrderID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed[model.OrderCountPart(id)] = true
}

// setStatusReader sets the statusReader of an order whose own record has a wrong status.
func (o *orderCounter) setStatusReader(id commerce.OrderID, read statusReader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statusReaders[id] = read
}

// addCounts adds a counts record that the scan has read.
func (o *orderCounter) addCounts(counts model.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countsRecords[model.FirstPlaceholderValue(model.EntityOrderCounts.SK, model.KeyOf(counts).SK)] = counts
}

// ordersToRead returns the orders that must be read to verify a counts record. part is the record's
// number. ended contains the counts of the delivered and cancelled orders that need not be read.
func (o *orderCounter) ordersToRead(part string) (ids []commerce.OrderID, ended commerce.StatusCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.open[part])), o.final[part]
}

// candidates returns the numbers of the counts records to verify: they differ from the scanned
// orders, or markChanged was called with one of their orders. If the table has no complete order
// counts and countNow is false, it returns nothing.
func (o *orderCounter) candidates(countNow bool) []string {
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
		diag := &diagnosis{table: o.client.table}
		if verifyStatusCounts(diag, part, have, counts); !diag.isClean() || o.changed[part] {
			o.parts[part] = true
		}
	}
	return slices.Sorted(maps.Keys(o.parts))
}

// verifyStatusCounts adds the differences between a counts record and the actual counts to diag.
// part is the record's number. If the record does not exist, have is nil.
func verifyStatusCounts(diag *diagnosis, part string, have model.Record, counts commerce.StatusCounts) {
	want := model.OrderCountsRecord(diag.table.KeyBuilder(), commerce.OrderCounts{Part: part, Complete: true, ByStatus: counts})
	n, err := strconv.Atoi(part)
	switch {
	case err != nil || n < 0 || n >= model.OrderCountParts || part != strconv.Itoa(n):
		diag.addOrphan(driftStatusCounts, have, "this record stores order counts, but its key contains an invalid record number")
	case have == nil:
		diag.addMissing(driftStatusCounts, want, nil, "this record with order counts by status is missing")
	default:
		diag.compare(&model.EntityOrderCounts, have, want, driftStatusCounts)
	}
}

// statusCountsKey returns the key of a counts record, which stores order counts by status for a
// part of the orders. part is the record's number.
func statusCountsKey(t *table.Table, part string) model.Keys {
	return model.KeyOf(model.OrderCountsRecord(t.KeyBuilder(), commerce.OrderCounts{Part: part}))
}

// readCountsRecord reads a counts record, which stores order counts by status for a part of the
// orders. part is the record's number.
//
// It returns the errors of repair.Client.GetConsistent.
func (o *orderCounter) readCountsRecord(ctx context.Context, part string) (model.Record, error) {
	return o.client.getConsistent(ctx, statusCountsKey(o.client.table, part))
}

// reasonOrdersChanged means that counts may be wrong, because orders changed while they were
// counted. If the orders are counted again, the counts may become certain.
const reasonOrdersChanged = "orders changed each time they were counted"

// count returns the result of pass n for one counts record. The first pass has the number 0. If
// pass n has not run yet, Count runs it. All callers share the results of a pass.
//
// It returns the errors of repair.Client, or the context's error.
func (o *orderCounter) count(ctx context.Context, part string, n int) (partCounts, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return partCounts{}, fmt.Errorf("count orders: %w", ctx.Err())
	}
	for len(o.passes) <= n {
		if err := o.runPass(ctx); err != nil {
			return partCounts{}, err
		}
	}
	return o.passes[n][part], nil
}

// excludePart excludes a counts record from later passes. part is the record's number.
func (o *orderCounter) excludePart(part string) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	delete(o.parts, part)
}

func (o *orderCounter) runPass(ctx context.Context) error {
	found, known := map[string]partCounts{}, map[string]int{}
	for _, part := range slices.Sorted(maps.Keys(o.parts)) {
		// Every transaction that changes an order's status also changes its counts record. So if the
		// counts record stays the same, no status has changed meanwhile.
		before, err := o.readCountsRecord(ctx, part)
		if err != nil {
			return err
		}
		ids, counts := o.ordersToRead(part)
		unreadable, err := o.countByStatus(ctx, ids, &counts)
		if err != nil {
			return err
		}
		after, err := o.readCountsRecord(ctx, part)
		if err != nil {
			return err
		}
		counted := partCounts{record: after, byStatus: counts}
		switch {
		case unreadable != "":
			counted.uncertainty = fmt.Sprintf("the status of %s cannot be read", model.OrderByID.Key(o.client.table.KeyBuilder(), unreadable).PK)
		case !model.EqualRecords(before, after):
			counted.uncertainty = reasonOrdersChanged
		}
		found[part], known[part] = counted, len(ids)
	}
	// If the index contains orders that were not counted, another pass is necessary.
	if err := o.addNewOrders(ctx); err != nil {
		return err
	}
	for part, counted := range found {
		if ids, _ := o.ordersToRead(part); len(ids) != known[part] && counted.uncertainty == "" {
			counted.uncertainty = reasonOrdersChanged
			found[part] = counted
		}
	}
	o.passes = append(o.passes, found)
	return nil
}

// countByStatus reads the given orders and adds them to counts. If the status of an order cannot be
// read, countByStatus stops and returns this order's ID as unreadable.
func (o *orderCounter) countByStatus(ctx context.Context, ids []commerce.OrderID, counts *commerce.StatusCounts) (unreadable commerce.OrderID, err error) {
	for batch := range slices.Chunk(ids, table.MaxBatchKeys) {
		b := o.client.table.KeyBuilder()
		ks := make([]model.Keys, len(batch))
		for i, id := range batch {
			ks[i] = model.OrderByID.Key(b, id)
		}
		found, err := o.client.get(ctx, consistent, ks...)
		if err != nil {
			return "", err
		}
		for i, id := range batch {
			status, exists := statusOf(found[ks[i]])
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

// statusOf returns the status in an order's own record. If the status cannot be read, it returns 0.
// If the record does not exist, exists is false.
func statusOf(order model.Record) (status commerce.Status, exists bool) {
	status, _ = commerce.ParseStatus(model.TextOf(order, "status"))
	return status, order != nil
}

// addNewOrders waits until the index is up to date. Then it adds the orders that were placed since
// its last call.
func (o *orderCounter) addNewOrders(ctx context.Context) error {
	if err := table.Sleep(ctx, o.lag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	t := o.client.table
	now := t.Now()
	from, _ := commerce.MinULIDAt(o.discoveredUntil.Add(-maxVisibilityDelay))
	to, _ := commerce.MinULIDAt(now.Add(model.MaxClockSkew))
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersPlaced.PK.Build(status.String())
		if err != nil {
			return err
		}
		for shard := range t.Shards {
			partition := base + model.ShardSuffix(shard, t.Shards)
			err := o.client.queryRange(ctx, &model.OrdersPlaced.AccessPattern, partition, string(model.OrdersPlaced.SK), model.Range{From: from, To: to}, types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
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
