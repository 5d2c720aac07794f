package dynamo

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// checkReader reads for a check. It tries again for longer than a server could, and counts what the
// reading costs.
type checkReader struct {
	s *Store

	mu       sync.Mutex
	requests int
	units    float64
}

func (r *checkReader) count(capacity ...types.ConsumedCapacity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	for _, c := range capacity {
		r.units += aws.ToFloat64(c.CapacityUnits)
	}
}

// cost is how many requests were made and how many read units DynamoDB says that they took; 0 units
// where it says nothing.
func (r *checkReader) cost() (requests int, units float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests, r.units
}

// consistency tells which reads see everything that was written before; they cost twice as much.
type consistency bool

const (
	eventual   consistency = false
	consistent consistency = true
)

// get reads records by their keys. The answer has no entry for a key without a record.
//
// Errors: those of failed.
func (r *checkReader) get(ctx context.Context, how consistency, ks ...keys) (map[keys]record, error) {
	found := make(map[keys]record, len(ks))
	wanted := make([]map[string]types.AttributeValue, 0, len(ks))
	asked := make(map[keys]bool, len(ks))
	for _, k := range ks {
		if k.PK != "" && !asked[k] {
			asked[k] = true
			wanted = append(wanted, keys{PK: k.PK, SK: k.SK}.attributes())
		}
	}
	for from, attempt := 0, 0; from < len(wanted); {
		if err := backOff(ctx, attempt); err != nil {
			return nil, failed("BatchGetItem", describe(ks), err)
		}
		batch := wanted[from:min(from+batchSize, len(wanted))]
		out, err := r.s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{r.s.table: {Keys: batch, ConsistentRead: aws.Bool(bool(how))}},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}, r.s.bulk)
		if err != nil {
			return nil, failed("BatchGetItem", describe(ks), err)
		}
		r.count(out.ConsumedCapacity...)
		for _, item := range out.Responses[r.s.table] {
			found[keyOf(item)] = item
		}
		from += len(batch)
		left := out.UnprocessedKeys[r.s.table].Keys
		wanted = append(wanted, left...)
		if attempt++; len(left) == 0 {
			attempt = 0
		}
	}
	return found, nil
}

// query gives take every page of a list, from the table consistently, from the index as it is.
//
// Errors: those of failed, and take's.
func (r *checkReader) query(ctx context.Context, p *AccessPattern, partition, prefix string, what types.Select, take func(*dynamodb.QueryOutput) error) error {
	where := keyCondition(p, partition, prefix, bounds{})
	in := &dynamodb.QueryInput{
		TableName: &r.s.table, KeyConditionExpression: &where.text, ExpressionAttributeValues: where.values(), Select: what,
		ConsistentRead: aws.Bool(p.Index == ""), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if p.Index != "" {
		in.IndexName = &p.Index
	}
	for {
		out, err := r.s.db.Query(ctx, in, r.s.bulk)
		if err != nil {
			return failed("Query", partition, err)
		}
		if out.ConsumedCapacity != nil {
			r.count(*out.ConsumedCapacity)
		} else {
			r.count()
		}
		if err := take(out); err != nil {
			return err
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}

// collection gives add every record of an item collection.
func (r *checkReader) collection(ctx context.Context, p *AccessPattern, partition string, add func(*Entity, record)) error {
	return r.query(ctx, p, partition, "", types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
		for _, item := range out.Items {
			if e := entityOf(keyOf(item)); e != nil {
				add(e, item)
			}
		}
		return nil
	})
}

// copies counts the orders in a customer's partition, and the Queries that this takes.
func (r *checkReader) copies(ctx context.Context, id commerce.CustomerID) (n, pages int, err error) {
	partition, err := CustomerOrders.PK.Key(string(id))
	if err != nil {
		return 0, 0, err
	}
	err = r.query(ctx, &CustomerOrders.AccessPattern, partition, string(CustomerOrders.SK), types.SelectCount, func(out *dynamodb.QueryOutput) error {
		n += int(out.Count)
		pages++
		return nil
	})
	return n, pages, err
}
