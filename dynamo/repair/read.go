package repair

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Client reads for a check. It tries again for longer than a server could, and counts what the
// reading costs.
type Client struct {
	Table *table.Table

	mu       sync.Mutex
	requests int
	units    float64
}

func (client *Client) count(capacity ...types.ConsumedCapacity) {
	client.mu.Lock()
	defer client.mu.Unlock()
	client.requests++
	for _, c := range capacity {
		client.units += aws.ToFloat64(c.CapacityUnits)
	}
}

// Cost is how many requests were made and how many read units DynamoDB says that they took; 0 units
// where it says nothing.
func (client *Client) Cost() (requests int, units float64) {
	client.mu.Lock()
	defer client.mu.Unlock()
	return client.requests, client.units
}

// consistency tells which reads see everything that was written before; they cost twice as much.
type consistency bool

// The consistencies of reads.
const (
	Eventual   consistency = false
	Consistent consistency = true
)

// Get reads records by their keys. The answer has no entry for a key without a record.
//
// Errors: those of failed.
func (client *Client) Get(ctx context.Context, how consistency, ks ...model.Keys) (map[model.Keys]model.Record, error) {
	found := make(map[model.Keys]model.Record, len(ks))
	wanted := make([]map[string]types.AttributeValue, 0, len(ks))
	asked := make(map[model.Keys]bool, len(ks))
	for _, k := range ks {
		if k.PK != "" && !asked[k] {
			asked[k] = true
			wanted = append(wanted, model.Keys{PK: k.PK, SK: k.SK}.Attributes())
		}
	}
	for from, attempt := 0, 0; from < len(wanted); {
		if err := table.BackOff(ctx, attempt); err != nil {
			return nil, table.Failed("BatchGetItem", table.Describe(ks), err)
		}
		batch := wanted[from:min(from+table.BatchSize, len(wanted))]
		out, err := client.Table.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{client.Table.Name: {Keys: batch, ConsistentRead: aws.Bool(bool(how))}},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}, client.Table.Bulk)
		if err != nil {
			return nil, table.Failed("BatchGetItem", table.Describe(ks), err)
		}
		client.count(out.ConsumedCapacity...)
		for _, item := range out.Responses[client.Table.Name] {
			found[model.KeyOf(item)] = item
		}
		from += len(batch)
		left := out.UnprocessedKeys[client.Table.Name].Keys
		wanted = append(wanted, left...)
		if attempt++; len(left) == 0 {
			attempt = 0
		}
	}
	return found, nil
}

// Record reads a record consistently. It returns nil if the record does not exist.
//
// Errors: those of failed.
func (client *Client) Record(ctx context.Context, k model.Keys) (model.Record, error) {
	found, err := client.Get(ctx, Consistent, k)
	return found[k], err
}

// Query gives take every page of a list, from the table consistently, from the index as it is.
//
// Errors: those of failed, and take's.
func (client *Client) Query(ctx context.Context, p *model.AccessPattern, partition, prefix string, what types.Select, take func(*dynamodb.QueryOutput) error) error {
	return client.QueryRange(ctx, p, partition, prefix, model.Range{}, what, take)
}

// QueryRange is Query for a part of the list.
//
// Errors: those of failed, and take's.
func (client *Client) QueryRange(ctx context.Context, p *model.AccessPattern, partition, prefix string, b model.Range, what types.Select, take func(*dynamodb.QueryOutput) error) error {
	where := model.KeyRangeOf(p, partition, prefix, b)
	in := &dynamodb.QueryInput{
		TableName: &client.Table.Name, KeyConditionExpression: &where.Text, ExpressionAttributeValues: where.Values(), Select: what,
		ConsistentRead: aws.Bool(p.Index == ""), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if p.Index != "" {
		in.IndexName = &p.Index
	}
	for {
		out, err := client.Table.Client.Query(ctx, in, client.Table.Bulk)
		if err != nil {
			return table.Failed("Query", partition, err)
		}
		if out.ConsumedCapacity != nil {
			client.count(*out.ConsumedCapacity)
		} else {
			client.count()
		}
		if err := take(out); err != nil {
			return err
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}

// Collection gives add every record of an item collection.
func (client *Client) Collection(ctx context.Context, p *model.AccessPattern, partition string, add func(*model.Entity, model.Record)) error {
	return client.Query(ctx, p, partition, "", types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		for _, item := range out.Items {
			if e := model.EntityOf(model.KeyOf(item)); e != nil {
				add(e, item)
			}
		}
		return nil
	})
}

// CustomerOrders gives take the orders in a customer's partition, and counts them and the Queries that this
// takes.
func (client *Client) CustomerOrders(ctx context.Context, id commerce.CustomerID, take func(model.Record)) (n, pages int, err error) {
	partition, err := model.CustomerOrders.PK.Key(string(id))
	if err != nil {
		return 0, 0, err
	}
	err = client.Query(ctx, &model.CustomerOrders.AccessPattern, partition, string(model.CustomerOrders.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		for _, rec := range out.Items {
			take(rec)
		}
		n += len(out.Items)
		pages++
		return nil
	})
	return n, pages, err
}

// scanPageSize is how many records one Scan reads at most: a page's records take some ten times their
// size in memory, and a full megabyte of them saves little.
const scanPageSize = 1000

// Scan gives take every page of one of so many segments of the table, with its last page marked.
// Segments divide the table by partition key, so the records of an item collection come one behind
// the other, by sort key.
//
// Errors: those of failed, and take's.
func (client *Client) Scan(ctx context.Context, segment, segments int, take func(page []map[string]types.AttributeValue, last bool) error) error {
	in := &dynamodb.ScanInput{
		TableName: &client.Table.Name, Limit: aws.Int32(scanPageSize), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments))
	}
	for {
		out, err := client.Table.Client.Scan(ctx, in, client.Table.Bulk)
		if err != nil {
			return table.Failed("Scan", fmt.Sprintf("segment %d of %d", segment+1, segments), err)
		}
		if out.ConsumedCapacity != nil {
			client.count(*out.ConsumedCapacity)
		} else {
			client.count()
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		last := len(in.ExclusiveStartKey) == 0
		if err := take(out.Items, last); err != nil || last {
			return err
		}
	}
}

// LastOrderEvent returns the last event with a position of a customer's order, and whether there is
// one.
//
// Errors: those of failed.
func (client *Client) LastOrderEvent(ctx context.Context, order commerce.OrderID, customer commerce.CustomerID) (last commerce.Event, found bool, err error) {
	b := client.Table.KeyBuilder()
	partition := model.OrderByID.Key(b, order).PK
	if b.Err != nil {
		return last, false, nil // there can be no such order
	}
	owner := ""
	err = client.Collection(ctx, model.OrderCollection, partition, func(e *model.Entity, rec model.Record) {
		switch e.Name {
		case model.EntityOrder.Name:
			owner = model.TextOf(rec, model.AttrCustomerID)
		case model.EntityOrderEvent.Name:
			// They come in the order of their IDs.
			if event, err := model.ReadEvent(rec); err == nil && model.IsOwnEvent(rec) && client.Table.Position(event.ID) != "" {
				last, found = *event, true
			}
		}
	})
	return last, found && owner == string(customer), err
}
