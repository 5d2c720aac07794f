package attempt

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// request is the state of one request of the AWS SDK. Its attempts do not run concurrently.
type request struct {
	// attempts is the number of attempts that have begun.
	attempts int
	// first is set if the first attempt was made outside the SDK. It becomes nil when the SDK begins
	// its own first attempt, which receives the outcome of this attempt.
	first *Attempt
}

type requestKey struct{}

// attemptCount returns the number of attempts that the request in ctx has begun.
func attemptCount(ctx context.Context) int {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.attempts
	}
	return 1
}

// WrapClient returns a copy of the client db. The Guard limits and counts all attempts that the
// copy makes.
func (g *Guard) WrapClient(db *dynamodb.Client) *dynamodb.Client {
	each := middleware.FinalizeMiddlewareFunc("Guard", g.handleAttempt)
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.Retryer = g.retryer(o.Retryer)
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("GuardRequest", addRequestState), middleware.Before); err != nil {
				return err
			}
			if _, retries := stack.Finalize.Get("Retry"); !retries {
				return stack.Finalize.Add(each, middleware.Before)
			}
			return stack.Finalize.Insert(each, "Retry", middleware.After)
		})
	})
}

// addRequestState adds the state of an SDK request to the context of the request.
func addRequestState(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	if ctx.Value(requestKey{}) == nil {
		ctx = context.WithValue(ctx, requestKey{}, &request{})
	}
	return next.HandleInitialize(ctx, in)
}

// handleAttempt makes one attempt of a request. It returns ErrBreakerOpen if the breaker refuses the
// attempt.
func (g *Guard) handleAttempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		r = &request{}
	}
	r.attempts++
	var a Attempt
	if r.first != nil {
		a, r.first = *r.first, nil
	} else if a, err = g.Begin(); err != nil {
		return out, metadata, err
	}
	ended := false
	defer func() {
		if !ended { // a panic
			a.abandon()
		}
	}()
	out, metadata, err = next.HandleFinalize(ctx, in)
	ended = true
	if err != nil {
		a.Fail(ctx, err)
	} else {
		a.Succeed()
	}
	return out, metadata, err
}

// SDKRetryOptions returns SDK options for a request whose first attempt, a, was made outside the SDK
// and failed. The HTTP client must return the outcome of that attempt as its first response. The
// Guard then records the outcome, as for attempts of the SDK.
func (a Attempt) SDKRetryOptions() func(*dynamodb.Options) {
	step := middleware.InitializeMiddlewareFunc("FirstAttempt", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		r := &request{first: &a}
		defer func() {
			if r.first != nil { // the SDK failed before its first attempt
				a.abandon()
			}
		}()
		return next.HandleInitialize(context.WithValue(ctx, requestKey{}, r), in)
	})
	return func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error { return stack.Initialize.Add(step, middleware.Before) })
	}
}

// isTransactionCancelled reports whether an error is the cancellation of a transaction.
func isTransactionCancelled(err error) bool {
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &cancelled)
}
