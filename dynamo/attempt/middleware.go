package attempt

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// request is the state of one request that the AWS SDK sends. The attempts of a request run one
// after another.
type request struct {
	// attempts is the number of attempts that have begun.
	attempts int
	// first is an attempt that was begun without the SDK, or nil. The SDK's first attempt continues
	// this attempt: handleAttempt begins no other attempt, and sets first to nil.
	first *Attempt
}

type requestKey struct{}

// attemptCount returns the number of attempts begun so far for the request in ctx.
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

// addRequestState is SDK middleware that adds the state of a request to its context.
func addRequestState(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	if ctx.Value(requestKey{}) == nil {
		ctx = context.WithValue(ctx, requestKey{}, &request{})
	}
	return next.HandleInitialize(ctx, in)
}

// handleAttempt is SDK middleware that makes one attempt of a request. If the circuit breaker
// refuses the attempt, it returns ErrBreakerOpen.
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
		if !ended { // the request panicked
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

// SDKRetryOptions returns SDK options to continue a request in the SDK. The attempt a was made
// without the SDK, and failed. In the SDK's first attempt, the HTTP client should return the
// outcome of a, and not send the request again.
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

// isTransactionCancelled reports whether err means that DynamoDB cancelled a transaction.
func isTransactionCancelled(err error) bool {
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &cancelled)
}
