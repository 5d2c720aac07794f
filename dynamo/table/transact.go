package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// TransactWrite sends one TransactWriteItems. The SDK retries it with the same bytes. It returns a
// ClockError while the clocks differ, or the SDK's error.
func (t *Table) TransactWrite(ctx context.Context, items []types.TransactWriteItem) error {
	db, options := t.Client, leaveAsIs
	if t.wire != nil {
		if err := t.ClockErr(); err != nil {
			return err
		}
		// If there is no token, the request goes to the SDK, which fails with the same error.
		token, err := t.wire.options.IdempotencyTokenProvider.GetIdempotencyToken()
		if body, ok := transactWriteBody(token, items); ok && err == nil {
			a, fallback := t.wire.try(ctx, t.wire.operations.transactWriteItems, t.Name, body, 0)
			if a != nil {
				return nil
			}
			db, options = fallback.db, fallback.along
		}
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, t.writing, options)
	return err
}

// TransactGet reads one record with TransactGetItems. It is retried as often as a write. It returns
// the SDK's error.
func (t *Table) TransactGet(ctx context.Context, k model.Keys) (answer, error) {
	db, options := t.Client, leaveAsIs
	if t.wire != nil {
		if body, ok := transactGetBody(t.Name, k); ok {
			a, fallback := t.wire.try(ctx, t.wire.operations.transactGetItems, t.Name, body, 1)
			if a != nil {
				return *a, nil
			}
			db, options = fallback.db, fallback.along
		}
	}
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
		TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &t.Name, Key: k.Attributes()}}},
	}, t.writing, options)
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

// MaxActions is the maximum number of actions in one TransactWriteItems.
const MaxActions = 100
