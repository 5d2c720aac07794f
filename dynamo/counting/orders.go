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

// OrderCounter counts the orders of a table by status: first as a scan reads them, one after the other,
// then, for parts whose record says something else, in passes that serve all of these parts. It
// takes about a hundred bytes for each order that is not delivered or cancelled. It is safe for
// concurrent use.
//
// An order that has ended does not change, so the scan has counted it. A pass reads the others, and
// those that are new, between two readings of the part's record. If these are the same, no order of
// the part changed its status meanwhile, as every such change writes the record in its transaction.
// The index, which tells of new orders, lags behind. The pass asks it after the lag, and if it
// tells of one more order of the part, the next pass counts anew.
type OrderCounter struct {
	client *repair.Client
	// lag is how long the index may lag behind the table.
	lag time.Duration
	// since is a little before the scan began. Orders with an ID of this time or later are new: the
	// scan may have missed them.
	since time.Time

	mu sync.Mutex
	// final counts the orders of each part that are in a status that no order leaves. They need not
	// be read again.
	final map[string]commerce.StatusCounts
	// open are the other orders of each part, with the status that was read, 0 for none.
	open map[string]map[commerce.OrderID]commerce.Status
	// statusReaders are orders whose own record does not tell the status, with what does.
	statusReaders map[commerce.OrderID]StatusReader
	// countsRecords are the records of the counts, as the scan read them, by part.
	countsRecords map[string]model.Record
	// discoveredUntil is when the index was last asked for new orders.
	discoveredUntil time.Time

	// turn is held by the caller that makes a pass. It is a channel because the others may have to
	// stop waiting.
	turn chan struct{}
	// parts are the parts to count in passes.
	parts map[string]bool
	// passes are the results of the passes, by part.
	passes []map[string]PartCounts
}

// StatusReader reads the status of an order whose own record does not tell it; 0 if nothing does.
type StatusReader func(context.Context) (commerce.Status, error)

// PartCounts is what a pass counted in a part.
type PartCounts struct {
	// Record is the record that the part must still have for the numbers to be right.
	Record   model.Record
	ByStatus commerce.StatusCounts
	// Uncertainty is why the numbers are not certain, empty if they are.
	Uncertainty string
}

// scanMargin is how much older than the scan an order can be whose ID is new: it is made before the
// order is written, by a server whose clock may differ.
const scanMargin = time.Minute

// NewOrderCounter returns an Orders for a scan that begins now. lag is how long the index may lag behind
// the table.
func NewOrderCounter(client *repair.Client, lag time.Duration) *OrderCounter {
	now := client.Table.Now()
	return &OrderCounter{
		client: client, lag: lag, since: now.Add(-scanMargin), discoveredUntil: now,
		final: map[string]commerce.StatusCounts{}, open: map[string]map[commerce.OrderID]commerce.Status{},
		statusReaders: map[commerce.OrderID]StatusReader{}, countsRecords: map[string]model.Record{},
		turn: make(chan struct{}, 1), parts: map[string]bool{},
	}
}

// Add takes an order that the scan has read; record is nil if it is missing. clean reports whether
// nothing is wrong with the order, so that no repair changes its status.
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

// SetStatusReader takes an order whose own record does not tell the status, and how to read it.
func (o *OrderCounter) SetStatusReader(id commerce.OrderID, read StatusReader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statusReaders[id] = read
}

// AddCounts takes the record of the counts of a part, as the scan read it.
func (o *OrderCounter) AddCounts(counts model.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countsRecords[model.KeyValue(model.EntityOrderCounts.SK, model.KeyOf(counts).SK)] = counts
}

// ordersToRead returns the orders of a part that have to be read again, and how many need not.
func (o *OrderCounter) ordersToRead(part string) (ids []commerce.OrderID, ended commerce.StatusCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.open[part])), o.final[part]
}

// Candidates returns the parts whose record does not say what the scan counted. A table none of
// whose parts is complete does not count its orders: its parts are suspicious only if it has orders
// and they are to be counted now.
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
		if VerifyStatusCounts(diag, part, have, counts); !diag.Clean() {
			o.parts[part] = true
		}
	}
	return slices.Sorted(maps.Keys(o.parts))
}

// VerifyStatusCounts finds a record of counts that does not say how many orders there are.
func VerifyStatusCounts(diag *repair.Diagnosis, part string, have model.Record, counts commerce.StatusCounts) {
	want := model.OrderCountsRecord(diag.Table.KeyBuilder(), commerce.OrderCounts{Part: part, Complete: true, ByStatus: counts})
	n, err := strconv.Atoi(part)
	switch {
	case err != nil || n < 0 || n >= model.OrderCountParts || part != strconv.Itoa(n):
		diag.AddOrphan(repair.DriftOrderCounts, have, "there is no such part")
	case have == nil:
		diag.AddMissing(repair.DriftOrderCounts, want, nil, "the orders have not been counted")
	default:
		diag.Compare(&model.EntityOrderCounts, have, want, repair.DriftOrderCounts)
	}
}

// StatusCountsKey returns the key of the record of the counts of a part.
func StatusCountsKey(t *table.Table, part string) model.Keys {
	return model.KeyOf(model.OrderCountsRecord(t.KeyBuilder(), commerce.OrderCounts{Part: part}))
}

// Record reads the record of the counts of a part.
//
// Errors: those of repair.Client.Get.
func (o *OrderCounter) Record(ctx context.Context, part string) (model.Record, error) {
	return o.client.Record(ctx, StatusCountsKey(o.client.Table, part))
}

// ReasonChanged is the Doubt of a part that another pass can count.
const ReasonChanged = "orders changed each time that they were counted"

// Count returns what the n-th pass counted in a suspicious part, from 0. It makes the pass unless
// another caller already has.
//
// Errors: those of repair.Client, and the context's.
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

// Done says that a part need not be counted any more.
func (o *OrderCounter) Done(part string) {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	delete(o.parts, part)
}

func (o *OrderCounter) runPass(ctx context.Context) error {
	found, known := map[string]PartCounts{}, map[string]int{}
	for _, part := range slices.Sorted(maps.Keys(o.parts)) {
		before, err := o.Record(ctx, part)
		if err != nil {
			return err
		}
		ids, counts := o.ordersToRead(part)
		unreadable, err := o.countByStatus(ctx, ids, &counts)
		if err != nil {
			return err
		}
		after, err := o.Record(ctx, part)
		if err != nil {
			return err
		}
		counted := PartCounts{Record: after, ByStatus: counts}
		switch {
		case unreadable != "":
			counted.Uncertainty = fmt.Sprintf("%s cannot be read", model.OrderByID.Key(o.client.Table.KeyBuilder(), unreadable).PK)
		case !model.SameRecord(before, after):
			counted.Uncertainty = ReasonChanged
		}
		found[part], known[part] = counted, len(ids)
	}
	if err := o.addNewOrders(ctx); err != nil {
		return err
	}
	for part, counted := range found {
		if ids, _ := o.ordersToRead(part); len(ids) != known[part] && counted.Uncertainty == "" {
			counted.Uncertainty = ReasonChanged
			found[part] = counted
		}
	}
	o.passes = append(o.passes, found)
	return nil
}

// countByStatus adds orders to counts by their statuses. It returns the ID of an order whose status cannot
// be read, or an empty ID.
func (o *OrderCounter) countByStatus(ctx context.Context, ids []commerce.OrderID, counts *commerce.StatusCounts) (unreadable commerce.OrderID, err error) {
	for some := range slices.Chunk(ids, table.BatchSize) {
		b := o.client.Table.KeyBuilder()
		ks := make([]model.Keys, len(some))
		for i, id := range some {
			ks[i] = model.OrderByID.Key(b, id)
		}
		found, err := o.client.Get(ctx, repair.Consistent, ks...)
		if err != nil {
			return "", err
		}
		for i, id := range some {
			status, exists := StatusOf(found[ks[i]])
			if read := o.statusReaders[id]; read != nil {
				read, err := read(ctx)
				if err != nil {
					return "", err
				}
				if read != 0 {
					status, exists = read, true
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

// StatusOf returns the status that an order's own record tells, 0 if it cannot be read. exists is
// false if there is no record.
func StatusOf(order model.Record) (status commerce.Status, exists bool) {
	status, _ = commerce.ParseStatus(model.TextOf(order, "status"))
	return status, order != nil
}

// addNewOrders waits until the index has caught up, and adds the orders that have been placed since it
// was last asked.
func (o *OrderCounter) addNewOrders(ctx context.Context) error {
	if err := table.Wait(ctx, o.lag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	t := o.client.Table
	now := t.Now()
	from, _ := commerce.FirstULID(o.discoveredUntil.Add(-scanMargin))
	to, _ := commerce.FirstULID(now.Add(table.MaxClockSkew))
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersPlaced.PK.Key(status.String())
		if err != nil {
			return err
		}
		for shard := range t.Shards {
			partition := base + model.ShardSuffix(shard, t.Shards)
			err := o.client.QueryRange(ctx, &model.OrdersPlaced.AccessPattern, partition, string(model.OrdersPlaced.SK), model.Range{From: from, To: to}, types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
				for _, rec := range out.Items {
					if id := commerce.OrderID(model.KeyValue(model.EntityOrder.PK, model.KeyOf(rec).PK)); o.isNew(id) {
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
