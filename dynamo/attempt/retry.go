package attempt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// The size and the costs of the retry budget, in tokens. The values are the defaults of the AWS
// SDK. Each retry takes tokens from the budget. A successful retry returns its tokens.
const (
	// budgetTokens is the size of the budget.
	budgetTokens = 500
	// retryCost is the cost of a retry after throttling or a server error. connectionRetryCost is the
	// cost of a retry after a failed connection. It is higher because a connection can take seconds to
	// fail.
	retryCost, connectionRetryCost = 5, 10
	// successRefill is the number of tokens that each successful attempt adds to the budget.
	successRefill = 1
)

// The maximum number of attempts of a request.
const (
	// maxTransactionAttempts is the limit for transactions. If the context has no deadline, all
	// attempts together take about 20 s.
	maxTransactionAttempts = 50
	// maxBulkAttempts is the limit for bulk operations. It is high because no client waits for them,
	// and because they can use the whole capacity of a table. All attempts together take about a
	// minute.
	maxBulkAttempts = 200
)

// The maximum delay before the first retry. The maximum doubles with each further retry, at most
// maxDoublings times.
const (
	// conflictRetryDelay is the maximum delay before the first retry of a transaction. It is short, because
	// a retry can succeed as soon as the conflicting transaction has ended.
	conflictRetryDelay = 10 * time.Millisecond
	// readRetryDelay is the maximum delay before the first retry of a read. It is longer than
	// conflictRetryDelay, because DynamoDB must recover within the few attempts of a read.
	readRetryDelay = 50 * time.Millisecond
	maxDoublings   = 6
)

// minAttemptTime is the minimum time for an attempt. A request is not retried if less time would
// remain after the delay until the deadline.
const minAttemptTime = 10 * time.Millisecond

// Reasons why a request is not retried. The returned error also wraps the error of the last
// attempt.
var (
	// ErrRetryBudgetExhausted: too many requests to the table were retried recently.
	ErrRetryBudgetExhausted = errors.New("the retry budget is exhausted")
	// ErrNoRetryTime: a retry could not end before the deadline.
	ErrNoRetryTime = errors.New("no time is left for a retry")
)

// RecordUnprocessed records a failure: DynamoDB did not process some keys of a batch because of
// throttling. It returns ErrRetryBudgetExhausted if the caller must not request these keys again. If the
// context has no deadline, no client waits for the request. The budget then does not limit the
// retries.
func (g *Guard) RecordUnprocessed(ctx context.Context) error {
	failure := Failure{Cause: CauseThrottled, Reason: ReasonUnprocessed, OneKey: true}
	g.notifyFailure(ctx, failure)
	_, limited := ctx.Deadline()
	_, err := g.acquireRetry(ctx, failure, limited)
	return err
}

// acquireRetry takes the cost of a retry from the budget. The retry costs nothing if limited is
// false or the failure is a Conflict. The caller must pass the outcome of the retry to the returned
// function. This function returns the tokens to the budget if the retry succeeded.
func (g *Guard) acquireRetry(ctx context.Context, failure Failure, limited bool) (func(error) error, error) {
	release := func(error) error { return nil }
	if limited && failure.Cause != CauseConflict {
		cost := uint(retryCost)
		if failure.Cause == CauseConnection {
			cost = connectionRetryCost
		}
		refund, err := g.budget.GetToken(context.WithoutCancel(ctx), cost)
		if err != nil {
			g.recordExhausted(ctx)
			return nil, fmt.Errorf("%w: %w", ErrRetryBudgetExhausted, err)
		}
		release = func(err error) error {
			if err != nil {
				return nil
			}
			return refund()
		}
	}
	g.notifyRetry(ctx, failure)
	return release, nil
}

// warnInterval is the minimum time between two log messages about the exhausted budget.
const warnInterval = time.Minute

// recordExhausted counts a request that is not retried because the budget is exhausted.
func (g *Guard) recordExhausted(ctx context.Context) {
	g.mu.Lock()
	g.exhausted++
	warn := time.Since(g.warned) >= warnInterval
	if warn {
		g.warned = time.Now()
	}
	g.mu.Unlock()
	if warn {
		g.opts.Log.WarnContext(ctx, "the retry budget is exhausted: requests to DynamoDB fail without a retry")
	}
}

// retryer extends a retryer of the AWS SDK with the retry budget of a Guard.
type retryer struct {
	aws.RetryerV2
	guard *Guard
	// firstDelay is the maximum delay before the first retry.
	firstDelay time.Duration
	// unlimited reports whether retries take no tokens from the budget.
	unlimited bool
}

// GetRetryToken returns ErrRetryBudgetExhausted or ErrNoRetryTime if the request must not be retried.
func (r retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < maxDelay(r.firstDelay, attemptCount(ctx))+minAttemptTime {
		return nil, ErrNoRetryTime
	}
	return r.guard.acquireRetry(ctx, Classify(err), !r.unlimited)
}

// RetryDelay returns the delay after the given number of failed attempts. The delay is random, so
// that requests that conflicted are not repeated at the same time. It never exceeds the delay of
// the SDK's own retryer.
func (r retryer) RetryDelay(attempts int, err error) (time.Duration, error) {
	longest, err := r.RetryerV2.RetryDelay(attempts, err)
	return min(longest, rand.N(maxDelay(r.firstDelay, attempts))), err
}

// maxDelay returns the maximum delay after the given number of failed attempts.
func maxDelay(first time.Duration, attempts int) time.Duration {
	return first << min(max(0, attempts-1), maxDoublings)
}

// retryer returns a retryer that uses the Guard's budget and has the same maximum number of
// attempts as base. If base cannot be extended or never retries, the result is base. The client of
// the embedded store never retries, because a retry would return the same error.
func (g *Guard) retryer(base aws.Retryer) aws.Retryer {
	if _, never := base.(aws.NopRetryer); never {
		return base
	}
	if v2, ok := base.(aws.RetryerV2); ok {
		return retryer{RetryerV2: v2, guard: g, firstDelay: readRetryDelay}
	}
	return base
}

// TransactionOptions returns SDK options for transactions. The SDK repeats a transaction with the
// same ClientRequestToken, which DynamoDB stores for ten minutes. Therefore a transaction is
// committed only once, even if its response is lost.
//
// With these options, the SDK also retries after conflicts with other transactions. DynamoDB
// reports a conflict by cancelling the transaction or, outside a transaction, by rejecting the
// write.
func (g *Guard) TransactionOptions() func(*dynamodb.Options) {
	return g.withMaxAttempts(maxTransactionAttempts, false)
}

// BulkOptions returns SDK options for bulk operations. Unlike the options for transactions, they
// allow more attempts, and retries do not use the retry budget.
func (g *Guard) BulkOptions() func(*dynamodb.Options) {
	return g.withMaxAttempts(maxBulkAttempts, true)
}

func (g *Guard) withMaxAttempts(attempts int, unlimited bool) func(*dynamodb.Options) {
	standard := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(isRetryable)}, o.Retryables...)
	})
	own := retryer{RetryerV2: standard, guard: g, firstDelay: conflictRetryDelay, unlimited: unlimited}
	return func(o *dynamodb.Options) {
		if _, never := o.Retryer.(aws.NopRetryer); !never {
			o.Retryer = own
		}
	}
}

// isRetryable reports whether a request can be retried after err. aws.UnknownTernary means that the
// AWS SDK must decide.
func isRetryable(err error) aws.Ternary {
	failure := Classify(err)
	switch {
	case failure.Cause == CauseConflict, failure.Cause == CauseThrottled && failure.OneKey:
		return aws.TrueTernary
	case isTransactionCancelled(err):
		return aws.FalseTernary
	default:
		return aws.UnknownTernary
	}
}
