package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// TransactWrite is one TransactWriteItems. The SDK repeats it, with the same bytes, until it passes
// or the context ends.
//
// Errors: the SDK's, and ClockError.
func (t *Table) TransactWrite(ctx context.Context, items []types.TransactWriteItem) error {
	db, along := t.Client, leaveAsIs
	if t.wire != nil {
		if err := t.ClockErr(); err != nil {
			return err
		}
		// Where there is no token, the SDK asks for one and returns the error.
		token, err := t.wire.options.IdempotencyTokenProvider.GetIdempotencyToken()
		if body, ok := transactWriteBody(token, items); ok && err == nil {
			a, fallback := t.wire.try(ctx, t.wire.operations.transactWriteItems, t.Name, body, 0)
			if a != nil {
				return nil
			}
			db, along = fallback.db, fallback.along
		}
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, t.writing, along)
	return err
}

// TransactGet is a TransactGetItems of one record. It is repeated as writes are.
//
// Errors: the SDK't.
func (t *Table) TransactGet(ctx context.Context, k model.Keys) (answer, error) {
	db, along := t.Client, leaveAsIs
	if t.wire != nil {
		if body, ok := transactGetBody(t.Name, k); ok {
			a, fallback := t.wire.try(ctx, t.wire.operations.transactGetItems, t.Name, body, 1)
			if a != nil {
				return *a, nil
			}
			db, along = fallback.db, fallback.along
		}
	}
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
		TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &t.Name, Key: k.Attributes()}}},
	}, t.writing, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{}
	for _, r := range out.Responses {
		if r.Item != nil {
			a.Records = append(a.Records, model.Reader{Record: r.Item})
		}
	}
	return a, nil
}

// MaxActions is how many actions one TransactWriteItems can have.
const MaxActions = 100
