package table

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// ErrOverBudget means that a read was not made because its ReadBudget is used up.
var ErrOverBudget = errors.New("more requests for reading than the budget allows")

// ReadBudget is how many requests that read are still to be made for somebody. It is safe for
// concurrent use.
type ReadBudget struct{ left atomic.Int64 }

type budgetKey struct{}

// NewReadBudget returns a budget of so many requests.
func NewReadBudget(requests int) *ReadBudget {
	b := &ReadBudget{}
	b.left.Store(int64(requests))
	return b
}

// Left is how many requests may still be made, below 0 where more were wanted than there were.
func (b *ReadBudget) Left() int { return int(b.left.Load()) }

// On returns a context whose reads are on the budget. Writes are not counted. A nil budget has no
// end.
func (b *ReadBudget) On(ctx context.Context) context.Context {
	if b == nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, b)
}

// spend takes one request for reading from the context's budget, if it has one.
//
// Errors: ErrOverBudget.
func spend(ctx context.Context) error {
	if b, ok := ctx.Value(budgetKey{}).(*ReadBudget); ok && b.left.Add(-1) < 0 {
		return ErrOverBudget
	}
	return nil
}

// budgeted holds a client to the budgets of its requests' contexts. Every request passes here, or
// has been paid for before it took the short way, however it came about: what a document can ask
// for at most is not known before, as it depends on the records.
func budgeted(db *dynamodb.Client) *dynamodb.Client {
	return checked(db, "ReadBudget", func(ctx context.Context, in any) error {
		switch in.(type) {
		case *dynamodb.QueryInput, *dynamodb.GetItemInput, *dynamodb.BatchGetItemInput:
			return spend(ctx)
		}
		return nil
	})
}

// checked returns a client whose requests fail with the error that check returns for their input.
func checked(db *dynamodb.Client, name string, check func(ctx context.Context, in any) error) *dynamodb.Client {
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
