package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// writeBatchSize is how many records one BatchWriteItem can have.
const writeBatchSize = 25

// Load writes a book, replacing records of the same keys and leaving all others as they are. It is no transaction: where it
// fails, a part may have been written, and loading the same book again mends that. It returns how many
// records it wrote.
//
// Errors: commerce.InvalidError for a value that can be in no key, before anything is written; ErrUnavailable,
// ErrNoTable, ErrAccessDenied.
func (s *Store) Load(ctx context.Context, book commerce.Book) (int, error) {
	b := &keyBuilder{shards: s.shards}
	var records []record
	for _, e := range book.Employees {
		records = append(records, employeeRecords(b, e)...)
	}
	for _, w := range book.Warehouses {
		records = append(records, warehouseRecord(b, w))
	}
	for _, p := range book.Products {
		records = append(records, productRecord(b, p))
	}
	for _, l := range book.Levels {
		records = append(records, inventoryLevelRecord(b, l))
	}
	for _, c := range book.Customers {
		records = append(records, customerRecords(b, c)...)
	}
	for _, o := range book.Orders {
		records = append(records, orderRecords(b, o.Order, o.Lines, o.Events)...)
	}
	if b.err != nil {
		return 0, b.err
	}
	return len(records), s.putAll(ctx, records)
}

// putAll writes records, many at once.
func (s *Store) putAll(ctx context.Context, records []record) error {
	batches := (len(records) + writeBatchSize - 1) / writeBatchSize
	if batches == 0 {
		return nil
	}
	return Parallel(ctx, batches, maxParallel, func(ctx context.Context, i int) error {
		return s.putBatch(ctx, records[i*writeBatchSize:min((i+1)*writeBatchSize, len(records))])
	})
}

// putBatch is one BatchWriteItem, repeated for the records that DynamoDB leaves unprocessed.
func (s *Store) putBatch(ctx context.Context, records []record) error {
	left := make([]types.WriteRequest, len(records))
	for i, r := range records {
		left[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: r}}
	}
	for attempt := 0; len(left) > 0; attempt++ {
		subject := fmt.Sprintf("of %d records", len(left))
		if err := backOff(ctx, attempt); err != nil {
			return failed("BatchWriteItem", subject, err)
		}
		out, err := s.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.table: left}})
		if err != nil {
			return failed("BatchWriteItem", subject, err)
		}
		left = out.UnprocessedItems[s.table]
	}
	return nil
}
