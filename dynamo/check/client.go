package check

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// client sends the DynamoDB requests of `ordergraph check`, and counts the requests and their read
// units. It retries a failed request for longer than the GraphQL server does, because no HTTP
// client waits for a response.
type client struct {
	table *table.Table

	// unitsPerSecond limits the read and write units that are consumed in a second, if it is not 0.
	unitsPerSecond float64

	mu         sync.Mutex
	requests   int
	units      float64
	writeUnits float64
	scanUnits  float64
	addedBytes int
	addedReads float64
	// paidUntil is the time until which the consumed units use up unitsPerSecond.
	paidUntil time.Time

	// lastEvents are locks for customers' last events. Every repair that appends an event replaces the
	// last event of the order's customer. Without the lock, parallel repairs of a customer's orders
	// would refuse each other. A hash of the customer's ID chooses the lock.
	lastEvents [model.MaxShards]chan struct{}
}

// lockLastEvent locks a customer's last event until unlock is called.
func (client *client) lockLastEvent(id commerce.CustomerID) (unlock func()) {
	lock := client.lastEvents[model.ShardOf(string(id), len(client.lastEvents))]
	lock <- struct{}{}
	return func() { <-lock }
}

// newClient returns a client for a check of the table t.
func newClient(t *table.Table, unitsPerSecond float64) *client {
	c := &client{table: t, unitsPerSecond: unitsPerSecond}
	for i := range c.lastEvents {
		c.lastEvents[i] = make(chan struct{}, 1)
	}
	return c
}

// count adds a read request with its consumed capacity. If units are limited, it waits until the
// capacity is paid for.
func (client *client) count(ctx context.Context, capacity ...types.ConsumedCapacity) error {
	units := 0.0
	for _, c := range capacity {
		units += aws.ToFloat64(c.CapacityUnits)
	}
	client.mu.Lock()
	client.requests++
	client.units += units
	client.mu.Unlock()
	return client.pace(ctx, units)
}

// capacities returns the capacity that a request consumed, if DynamoDB reported it.
func capacities(c *types.ConsumedCapacity) []types.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return []types.ConsumedCapacity{*c}
}

// addRepair adds the cost of a repair.
func (client *client) addRepair(c repairCost) {
	client.mu.Lock()
	defer client.mu.Unlock()
	client.writeUnits += c.writeUnits
	client.addedBytes += c.addedBytes
	client.addedReads += c.addedReads
}

// pace waits until the given units, and those before them, fit into client.unitsPerSecond.
func (client *client) pace(ctx context.Context, units float64) error {
	if client.unitsPerSecond <= 0 {
		return nil
	}
	client.mu.Lock()
	now := time.Now()
	if client.paidUntil.Before(now) {
		client.paidUntil = now
	}
	client.paidUntil = client.paidUntil.Add(time.Duration(units / client.unitsPerSecond * float64(time.Second)))
	wait := client.paidUntil.Sub(now)
	client.mu.Unlock()
	if err := table.Sleep(ctx, wait); err != nil {
		return fmt.Errorf("wait for the limit of units: %w", err)
	}
	return nil
}

// countScan adds the capacity of a scan, or of the related records that are read during a scan.
func (client *client) countScan(capacity ...types.ConsumedCapacity) {
	client.mu.Lock()
	defer client.mu.Unlock()
	for _, c := range capacity {
		client.scanUnits += aws.ToFloat64(c.CapacityUnits)
	}
}

// endScan is called after the scan of a check that is not restricted to an edge. The read units so far
// include the reads of related records.
func (client *client) endScan() {
	client.mu.Lock()
	defer client.mu.Unlock()
	client.scanUnits = client.units
}

// addCost sets the fields of a summary that describe requests.
func (client *client) addCost(s *Summary) {
	client.mu.Lock()
	defer client.mu.Unlock()
	s.Requests, s.ReadUnits, s.WriteUnits, s.ScanUnits, s.AddedUnits = client.requests, client.units, client.writeUnits, client.scanUnits, client.addedReads+addedReadUnits(client.addedBytes)
}

// consistency selects eventually or strongly consistent reads. Strongly consistent reads cost twice
// as much as eventually consistent reads.
type consistency bool

// The values of consistency.
const (
	eventual   consistency = false
	consistent consistency = true
)

// get reads records by their keys. If a record does not exist, the result has no entry for its key.
//
// Errors are wrapped by table.WrapError.
func (client *client) get(ctx context.Context, mode consistency, ks ...model.Keys) (map[model.Keys]model.Record, error) {
	found := make(map[model.Keys]model.Record, len(ks))
	pending := make([]map[string]types.AttributeValue, 0, len(ks))
	seen := make(map[model.Keys]bool, len(ks))
	for _, k := range ks {
		if k.PK != "" && !seen[k] {
			seen[k] = true
			pending = append(pending, model.Keys{PK: k.PK, SK: k.SK}.Attributes())
		}
	}
	for from, attempt := 0, 0; from < len(pending); {
		if err := table.BackOff(ctx, attempt); err != nil {
			return nil, table.WrapError("BatchGetItem", table.DescribeKeys(ks), err)
		}
		batch := pending[from:min(from+table.MaxBatchKeys, len(pending))]
		out, err := client.table.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{client.table.Name: {Keys: batch, ConsistentRead: aws.Bool(bool(mode))}},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}, client.table.BulkOptions)
		if err != nil {
			return nil, table.WrapError("BatchGetItem", table.DescribeKeys(ks), err)
		}
		if err := client.count(ctx, out.ConsumedCapacity...); err != nil {
			return nil, err
		}
		if mode == eventual {
			client.countScan(out.ConsumedCapacity...)
		}
		for _, item := range out.Responses[client.table.Name] {
			found[model.KeyOf(item)] = item
		}
		from += len(batch)
		left := out.UnprocessedKeys[client.table.Name].Keys
		pending = append(pending, left...)
		if attempt++; len(left) == 0 {
			attempt = 0
		}
	}
	return found, nil
}

// getConsistent reads one record with strong consistency. If the record does not exist, it returns
// nil.
//
// Errors are wrapped by table.WrapError.
func (client *client) getConsistent(ctx context.Context, k model.Keys) (model.Record, error) {
	found, err := client.get(ctx, consistent, k)
	return found[k], err
}

// query reads all records of a list, and calls yield with each page. Only reads of the index are
// eventually consistent.
//
// Errors: the error of yield, or an error from table.WrapError.
func (client *client) query(ctx context.Context, p *model.AccessPattern, partition, prefix string, yield func(*dynamodb.QueryOutput) error) error {
	return client.queryRange(ctx, p, partition, prefix, model.Range{}, types.SelectAllAttributes, yield)
}

// queryRange is like Query, but reads only records with a sort key in the range b. It skips records
// that match no entity of the model. With types.SelectCount, it reads only keys, because DynamoDB would
// also count those records. Both cost the same.
//
// Errors: the error that yield returns, or an error from table.WrapError.
func (client *client) queryRange(ctx context.Context, p *model.AccessPattern, partition, prefix string, b model.Range, selection types.Select, yield func(*dynamodb.QueryOutput) error) error {
	where := model.NewKeyCondition(p, partition, prefix, b)
	in := &dynamodb.QueryInput{
		TableName: &client.table.Name, KeyConditionExpression: &where.Text, ExpressionAttributeValues: where.Values(), Select: selection,
		ConsistentRead: aws.Bool(p.Index == ""), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if p.Index != "" {
		in.IndexName = &p.Index
	}
	if selection == types.SelectCount {
		in.Select, in.ProjectionExpression = types.SelectSpecificAttributes, aws.String(model.AttrPK+", "+model.AttrSK)
	}
	for {
		out, err := client.table.Client.Query(ctx, in, client.table.BulkOptions)
		if err != nil {
			return table.WrapError("Query", partition, err)
		}
		if err := client.count(ctx, capacities(out.ConsumedCapacity)...); err != nil {
			return err
		}
		// Scans skip records of other software, so lists must not contain them (see AccessPattern.Matches).
		out.Items = slices.DeleteFunc(out.Items, func(rec map[string]types.AttributeValue) bool { return model.EntityOf(model.KeyOf(rec)) == nil })
		out.Count = int32(len(out.Items))
		if err := yield(out); err != nil {
			return err
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}

// readItemCollection reads an item collection with strong consistency, and calls add with each
// record. It skips records that match no entity of the model.
//
// Errors are wrapped by table.WrapError.
func (client *client) readItemCollection(ctx context.Context, p *model.AccessPattern, partition string, add func(*model.Entity, model.Record)) error {
	return client.query(ctx, p, partition, "", func(out *dynamodb.QueryOutput) error {
		for _, item := range out.Items {
			if e := model.EntityOf(model.KeyOf(item)); e != nil {
				add(e, item)
			}
		}
		return nil
	})
}

// customerOrders reads the copies of orders in a customer's partition, and calls yield with each
// copy. n is the number of copies, and pages is the number of Query requests.
func (client *client) customerOrders(ctx context.Context, id commerce.CustomerID, yield func(model.Record)) (n, pages int, err error) {
	partition, err := model.CustomerOrders.PK.Build(string(id))
	if err != nil {
		return 0, 0, err
	}
	err = client.query(ctx, &model.CustomerOrders.AccessPattern, partition, string(model.CustomerOrders.SK), func(out *dynamodb.QueryOutput) error {
		for _, rec := range out.Items {
			yield(rec)
		}
		n += len(out.Items)
		pages++
		return nil
	})
	return n, pages, err
}

// scanPageSize is the maximum number of records that one Scan request returns. The limit saves
// memory, because a record in memory takes about ten times its size in DynamoDB.
const scanPageSize = 1000

// scan reads one segment of the table, and calls yield with each page. Records with the same
// partition key follow one another, sorted by sort key.
//
// Errors: the error of yield, or an error from table.WrapError.
func (client *client) scan(ctx context.Context, segment, segments int, yield func(page []map[string]types.AttributeValue, last bool) error) error {
	in := &dynamodb.ScanInput{
		TableName: &client.table.Name, Limit: aws.Int32(scanPageSize), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments))
	}
	for {
		out, err := client.table.Client.Scan(ctx, in, client.table.BulkOptions)
		if err != nil {
			return table.WrapError("Scan", fmt.Sprintf("segment %d of %d", segment+1, segments), err)
		}
		if err := client.count(ctx, capacities(out.ConsumedCapacity)...); err != nil {
			return err
		}
		client.countScan(capacities(out.ConsumedCapacity)...)
		in.ExclusiveStartKey = out.LastEvaluatedKey
		last := len(in.ExclusiveStartKey) == 0
		if err := yield(out.Items, last); err != nil || last {
			return err
		}
	}
}

// lastOrderEvent returns the last event that Ordergraph wrote for an order. If there is none, or if
// the order does not belong to the customer, found is false.
//
// Errors are wrapped by table.WrapError.
func (client *client) lastOrderEvent(ctx context.Context, order commerce.OrderID, customer commerce.CustomerID) (last commerce.Event, found bool, err error) {
	b := client.table.KeyBuilder()
	partition := model.OrderByID.Key(b, order).PK
	if b.Err != nil {
		return last, false, nil // the ID is not valid in a key, so no order has it
	}
	owner := ""
	err = client.readItemCollection(ctx, model.OrderCollection, partition, func(e *model.Entity, rec model.Record) {
		switch e.Name {
		case model.EntityOrder.Name:
			owner = model.TextOf(rec, model.AttrCustomerID)
		case model.EntityOrderEvent.Name:
			// The events are sorted by ID, so later events replace earlier ones.
			if event, err := model.DecodeTimelineEvent(rec); err == nil && model.IsOrdergraphEvent(rec) && client.table.EventPosition(event.ID) != "" {
				last, found = *event, true
			}
		}
	})
	return last, found && owner == string(customer), err
}

// addedReadUnits returns the read units of a scan for bytes that a repair adds. If the repair removes
// records, the number of bytes is negative.
func addedReadUnits(bytes int) float64 {
	if bytes < 0 {
		return 0.5 - model.ReadUnits(-bytes)
	}
	return model.ReadUnits(bytes)
}
