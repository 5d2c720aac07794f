package table

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// ErrReadBudgetExceeded means that a read request was not sent because its ReadBudget is exhausted.
var ErrReadBudgetExceeded = errors.New("the read budget is exceeded")

// ReadBudget limits the number of DynamoDB read requests of one GraphQL operation. It is safe for
// concurrent use.
type ReadBudget struct{ remaining atomic.Int64 }

type budgetKey struct{}

// NewReadBudget returns a budget that allows the given number of requests.
func NewReadBudget(requests int) *ReadBudget {
	b := &ReadBudget{}
	b.remaining.Store(int64(requests))
	return b
}

// Remaining returns the number of requests that the budget still allows. The number is negative if
// requests were refused.
func (b *ReadBudget) Remaining() int { return int(b.remaining.Load()) }

// NewContext returns a context in which each DynamoDB read is charged to the budget. Writes are not
// charged. If b is nil, reads are not limited.
func (b *ReadBudget) NewContext(ctx context.Context) context.Context {
	if b == nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, b)
}

// chargeRead charges one read to the budget of the context. It returns ErrReadBudgetExceeded if the
// budget is exhausted. A context without a budget has no limit.
func chargeRead(ctx context.Context) error {
	if b, ok := ctx.Value(budgetKey{}).(*ReadBudget); ok && b.remaining.Add(-1) < 0 {
		return ErrReadBudgetExceeded
	}
	return nil
}

// withReadBudget returns a client that charges each read to the ReadBudget in the read's context.
// The fast path does not use this client and charges its reads itself. The number of reads of an
// operation depends on the stored records, so only a budget can limit it.
func withReadBudget(db *dynamodb.Client) *dynamodb.Client {
	return withInputCheck(db, "ReadBudget", func(ctx context.Context, in any) error {
		switch in.(type) {
		case *dynamodb.QueryInput, *dynamodb.GetItemInput, *dynamodb.BatchGetItemInput:
			return chargeRead(ctx)
		}
		return nil
	})
}

// withInputCheck returns a client that passes the input of each request to check. If check returns an
// error, the client returns the error and does not send the request.
func withInputCheck(db *dynamodb.Client, name string, check func(ctx context.Context, in any) error) *dynamodb.Client {
	step := middleware.InitializeMiddlewareFunc(name, func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if err := check(ctx, in.Parameters); err != nil {
			return middleware.InitializeOutput{}, middleware.Metadata{}, err
		}
		return next.HandleInitialize(ctx, in)
	})
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error { return stack.Initialize.Add(step, middleware.Before) })
	})
}
