package table

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// ErrReadBudgetExceeded means that a read was not sent to DynamoDB, because the ReadBudget in its
// context is exhausted.
var ErrReadBudgetExceeded = errors.New("the read budget is exceeded")

// ReadBudget limits the number of read requests that one GraphQL operation can send to DynamoDB. It
// is safe for concurrent use.
type ReadBudget struct{ remaining atomic.Int64 }

type budgetKey struct{}

// NewReadBudget returns a budget that allows the given number of requests.
func NewReadBudget(requests int) *ReadBudget {
	b := &ReadBudget{}
	b.remaining.Store(int64(requests))
	return b
}

// Remaining returns the number of requests that the budget still allows. A negative number means
// that the budget has refused requests.
func (b *ReadBudget) Remaining() int { return int(b.remaining.Load()) }

// NewContext returns a context in which each DynamoDB read is charged to the budget. Writes are not
// charged. If b is nil, reads are not limited.
func (b *ReadBudget) NewContext(ctx context.Context) context.Context {
	if b == nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, b)
}

// chargeRead charges one read to the budget of the context. If the budget is exhausted, it returns
// ErrReadBudgetExceeded. If the context has no budget, chargeRead does nothing.
func chargeRead(ctx context.Context) error {
	if b, ok := ctx.Value(budgetKey{}).(*ReadBudget); ok && b.remaining.Add(-1) < 0 {
		return ErrReadBudgetExceeded
	}
	return nil
}

// withReadBudget returns a client that charges each read to the ReadBudget in the read's context.
// The fast path sends reads without this client, so tryFastPath charges these reads.
func withReadBudget(db *dynamodb.Client) *dynamodb.Client {
	return withInputCheck(db, "ReadBudget", func(ctx context.Context, in any) error {
		switch in.(type) {
		case *dynamodb.QueryInput, *dynamodb.GetItemInput, *dynamodb.BatchGetItemInput:
			return chargeRead(ctx)
		}
		return nil
	})
}

// withInputCheck returns a client that passes the input of each request to check. If check returns
// an error, the client returns this error instead of sending the request.
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
