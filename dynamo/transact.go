package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// transactWrite is one TransactWriteItems. The SDK repeats it, with the same bytes, until it passes
// or the context ends.
//
// Errors: the SDK's, and ClockError.
func (s *Store) transactWrite(ctx context.Context, items []types.TransactWriteItem) error {
	db, along := s.db, leaveAsIs
	if s.wire != nil {
		if err := s.watch.err(); err != nil {
			return err
		}
		// Where there is no token, the SDK asks for one and returns the error.
		token, err := s.wire.options.IdempotencyTokenProvider.GetIdempotencyToken()
		if body, ok := transactWriteBody(token, items); ok && err == nil {
			a, fallback := s.wire.try(ctx, s.wire.operations.transactWriteItems, s.table, body, 0)
			if a != nil {
				return nil
			}
			db, along = fallback.db, fallback.along
		}
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, s.writing, along)
	return err
}

// transactGet is a TransactGetItems of one record. It is repeated as writes are.
//
// Errors: the SDK's.
func (s *Store) transactGet(ctx context.Context, k keys) (answer, error) {
	db, along := s.db, leaveAsIs
	if s.wire != nil {
		if body, ok := transactGetBody(s.table, k); ok {
			a, fallback := s.wire.try(ctx, s.wire.operations.transactGetItems, s.table, body, 1)
			if a != nil {
				return *a, nil
			}
			db, along = fallback.db, fallback.along
		}
	}
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
		TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &s.table, Key: k.attributes()}}},
	}, s.writing, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{}
	for _, r := range out.Responses {
		if r.Item != nil {
			a.records = append(a.records, reader{record: r.Item})
		}
	}
	return a, nil
}
