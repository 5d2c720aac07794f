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

// OrderCounter counts the orders of a table by status. It first counts the scanned orders. Then it
// recounts the parts whose record differs, in passes that serve all of these parts. It takes about
// a hundred bytes for each open order. It is safe for concurrent use.
//
// A delivered or cancelled order does not change, so the scan has counted it. A pass reads the
// other orders and the new orders, between two reads of the part's record. If both reads agree, no
// order of the part changed its status meanwhile, because each such change writes the record in its
// transaction. The index lists new orders with a lag. The pass queries it after the lag. If the
// index has another order of the part, the next pass counts the part again.
type OrderCounter struct {
	client *repair.Client
	// lag is the longest time by which the index lags behind the table.
	lag time.Duration
	// since is a little before the scan began. Orders with an ID of this time or later are new: the
	// scan may have missed them.
	since time.Time

	mu sync.Mutex
	// final counts the orders of each part whose status cannot change any more.
	final map[string]commerce.StatusCounts
	// open are the other orders of each part, with the status that was read, or 0.
	open map[string]map[commerce.OrderID]commerce.Status
	// statusReaders are for orders whose own record has a wrong or unreadable status.
	statusReaders map[commerce.OrderID]StatusReader
	// countsRecords are the scanned records of the counts, by part.
	countsRecords map[string]model.Record
	// discoveredUntil is the time of the last query for new orders.
	discoveredUntil time.Time

	// turn is held by the caller that makes a pass. It is a channel so that a waiting caller can stop
	// when its context ends.
	turn chan struct{}
	// parts are the parts to count in passes.
	parts map[string]bool
	// passes are the results of the passes, by part.
	passes []map[string]PartCounts
}

// StatusReader reads the status of an order whose own record has a wrong status. It returns 0 if
// the status is unknown.
type StatusReader func(context.Context) (commerce.Status, error)

// PartCounts is the result of a pass for one part.
type PartCounts struct {
	// Record is the part's record. The counts are valid while the record is the same.
	Record   model.Record
	ByStatus commerce.StatusCounts
	// Uncertainty is why the counts are not certain; empty if they are.
	Uncertainty string
}

// scanMargin is the longest time from the creation of an order's ID to the visible record. It
// includes the difference between the clocks of servers.
const scanMargin = time.Minute

// NewOrderCounter returns an OrderCounter for a scan that begins now. lag is the longest time by
// which the index lags behind the table.
func NewOrderCounter(client *repair.Client, lag time.Duration) *OrderCounter {
	now := client.Table.Now()
	return &OrderCounter{
		client: client, lag: lag, since: now.Add(-scanMargin), discoveredUntil: now,
		final: map[string]commerce.StatusCounts{}, open: map[string]map[commerce.OrderID]commerce.Status{},
		statusReaders: map[commerce.OrderID]StatusReader{}, countsRecords: map[string]model.Record{},
		turn: make(chan struct{}, 1), parts: map[string]bool{},
	}
}

// Add adds a scanned order. record is nil if it is missing. clean reports whether the order has no
// drift, so that no repair changes its status.
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

// SetStatusReader sets the StatusReader of an order whose own record has a wrong status.
func (o *OrderCounter) SetStatusReader(id commerce.OrderID, read StatusReader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statusReaders[id] = read
}

// AddCounts adds the scanned record of a part's counts.
func (o *OrderCounter) AddCounts(counts model.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countsRecords[model.KeyValue(model.EntityOrderCounts.SK, model.KeyOf(counts).SK)] = counts
}

// ordersToRead returns the orders of a part that must be read again, and the counts of the others.
func (o *OrderCounter) ordersToRead(part string) (ids []commerce.OrderID, ended commerce.StatusCounts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.open[part])), o.final[part]
}

// Candidates returns the parts whose record differs from the scanned orders. If no part has
// complete counts, the parts are candidates only with countNow and if the table has orders.
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

// VerifyStatusCounts reports a record whose counts are wrong.
func VerifyStatusCounts(diag *repair.Diagnosis, part string, have model.Record, counts commerce.StatusCounts) {
	want := model.OrderCountsRecord(diag.Table.KeyBuilder(), commerce.OrderCounts{Part: part, Complete: true, ByStatus: counts})
	n, err := strconv.Atoi(part)
	switch {
	case err != nil || n < 0 || n >= model.OrderCountParts || part != strconv.Itoa(n):
		diag.AddOrphan(repair.DriftOrderCounts, have, "the part does not exist")
	case have == nil:
		diag.AddMissing(repair.DriftOrderCounts, want, nil, "the orders have not been counted")
	default:
		diag.Compare(&model.EntityOrderCounts, have, want, repair.DriftOrderCounts)
	}
}

// StatusCountsKey returns the key of the record that has a part's counts.
func StatusCountsKey(t *table.Table, part string) model.Keys {
	return model.KeyOf(model.OrderCountsRecord(t.KeyBuilder(), commerce.OrderCounts{Part: part}))
}

// Record reads the record that has a part's counts.
//
// It returns errors as repair.Client.Get does.
func (o *OrderCounter) Record(ctx context.Context, part string) (model.Record, error) {
	return o.client.Record(ctx, StatusCountsKey(o.client.Table, part))
}

// ReasonChanged is the Uncertainty of a part that another pass may count.
const ReasonChanged = "orders changed during each count"

// Count returns the result of the n-th pass, from 0, for a candidate. It makes the pass unless
// another caller already has.
//
// It returns errors as repair.Client does, or the context's error.
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

// Done removes a part from the following passes.
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
		case !model.EqualRecords(before, after):
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

// countByStatus adds orders to counts by their statuses. It returns the ID of an order whose status
// cannot be read, or an empty ID.
func (o *OrderCounter) countByStatus(ctx context.Context, ids []commerce.OrderID, counts *commerce.StatusCounts) (unreadable commerce.OrderID, err error) {
	for batch := range slices.Chunk(ids, table.BatchSize) {
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

// StatusOf returns the status in an order's own record, or 0 if it cannot be read. exists is false
// if there is no record.
func StatusOf(order model.Record) (status commerce.Status, exists bool) {
	status, _ = commerce.ParseStatus(model.TextOf(order, "status"))
	return status, order != nil
}

// addNewOrders waits until the index has caught up, and adds the orders placed since its last call.
func (o *OrderCounter) addNewOrders(ctx context.Context) error {
	if err := table.Sleep(ctx, o.lag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	t := o.client.Table
	now := t.Now()
	from, _ := commerce.MinULID(o.discoveredUntil.Add(-scanMargin))
	to, _ := commerce.MinULID(now.Add(table.MaxClockSkew))
	for _, status := range commerce.Statuses() {
		base, err := model.OrdersPlaced.PK.Build(status.String())
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
