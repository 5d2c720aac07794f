package table

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// ErrBudgetExceeded means that a read was not sent because its ReadBudget is used up.
var ErrBudgetExceeded = errors.New("the read budget is exceeded")

// ReadBudget limits the number of read requests, for example of one operation. It is safe for
// concurrent use.
type ReadBudget struct{ remaining atomic.Int64 }

type budgetKey struct{}

// NewReadBudget returns a budget that allows the given number of requests.
func NewReadBudget(requests int) *ReadBudget {
	b := &ReadBudget{}
	b.remaining.Store(int64(requests))
	return b
}

// Remaining returns the number of requests that the budget still allows. It is negative if requests
// were refused.
func (b *ReadBudget) Remaining() int { return int(b.remaining.Load()) }

// NewContext returns a context whose reads are charged to the budget. Writes are not counted. A nil
// budget is unlimited.
func (b *ReadBudget) NewContext(ctx context.Context) context.Context {
	if b == nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, b)
}

// chargeRead charges one read to the context's budget, if it has one. It returns ErrBudgetExceeded
// if the budget is used up.
func chargeRead(ctx context.Context) error {
	if b, ok := ctx.Value(budgetKey{}).(*ReadBudget); ok && b.remaining.Add(-1) < 0 {
		return ErrBudgetExceeded
	}
	return nil
}

// withReadBudget returns a client that charges reads to the budget of their context. The fast path
// charges its reads itself. The budget is needed because the number of reads of an operation
// depends on the records, so it is not known in advance.
func withReadBudget(db *dynamodb.Client) *dynamodb.Client {
	return withCheck(db, "ReadBudget", func(ctx context.Context, in any) error {
		switch in.(type) {
		case *dynamodb.QueryInput, *dynamodb.GetItemInput, *dynamodb.BatchGetItemInput:
			return chargeRead(ctx)
		}
		return nil
	})
}

// withCheck returns a client that calls check with the input of each request. The request fails if
// check returns an error.
func withCheck(db *dynamodb.Client, name string, check func(ctx context.Context, in any) error) *dynamodb.Client {
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
