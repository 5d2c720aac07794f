package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// TransactWrite sends one TransactWriteItems. The AWS SDK retries it with the same bytes. The error
// is a ClockError while the clocks differ, or attempt.ErrOpen. Otherwise it is the error of the
// SDK.
func (t *Table) TransactWrite(ctx context.Context, items []types.TransactWriteItem) error {
	db, options := t.Client, noOptions
	if t.fastPath != nil {
		if err := t.ClockErr(); err != nil {
			return err
		}
		// If no token can be generated, the request is sent through the AWS SDK, which fails with the
		// same error.
		token, err := t.fastPath.options.IdempotencyTokenProvider.GetIdempotencyToken()
		if body, ok := transactWriteBody(token, items); ok && err == nil {
			a, fallback, err := t.fastPath.try(ctx, t.fastPath.targets.transactWriteItems, t.Name, body, 0)
			if a != nil {
				return err
			}
			db, options = fallback.client, fallback.options
		}
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, t.writeOptions, options)
	return err
}

// TransactGet reads one record with TransactGetItems. It is retried like a transaction that writes.
// It returns attempt.ErrOpen or the error of the AWS SDK.
func (t *Table) TransactGet(ctx context.Context, k model.Keys) (readResult, error) {
	db, options := t.Client, noOptions
	if t.fastPath != nil {
		if body, ok := transactGetBody(t.Name, k); ok {
			a, fallback, err := t.fastPath.try(ctx, t.fastPath.targets.transactGetItems, t.Name, body, 1)
			if a != nil {
				return *a, err
			}
			db, options = fallback.client, fallback.options
		}
	}
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
		TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &t.Name, Key: k.Attributes()}}},
	}, t.writeOptions, options)
	if err != nil {
		return readResult{}, err
	}
	a := readResult{}
	for _, r := range out.Responses {
		if r.Item != nil {
			a.Records = append(a.Records, model.Reader{Record: r.Item})
		}
	}
	return a, nil
}

// MaxTransactionActions is the maximum number of actions in one TransactWriteItems.
const MaxTransactionActions = 100
