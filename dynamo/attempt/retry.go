package attempt

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
)

// The size of the retry budget and the costs of retries, in tokens, as in the AWS SDK. If a retry
// succeeds, its tokens return to the budget.
const (
	// budgetTokens is the size of the retry budget.
	budgetTokens = 500
	// retryCost is the cost of a retry after throttling or a server error. connectionRetryCost is the
	// cost of a retry after a failed connection. It is higher because a connection can take seconds to
	// fail.
	retryCost, connectionRetryCost = 5, 10
	// successRefill is the number of tokens that each successful attempt adds to the retry budget.
	successRefill = 1
)

// The maximum number of attempts for one request.
const (
	// maxTransactionAttempts is the maximum for transactions. If the context has no deadline, all
	// attempts together take about 20 s.
	maxTransactionAttempts = 50
	// maxBulkAttempts is the maximum for bulk operations. It is high, because no client waits for
	// these operations. All attempts together take about a minute.
	maxBulkAttempts = 200
)

// The maximum delays before retries. The maximum doubles with each further retry, at most
// maxDoublings times.
const (
	// conflictRetryDelay is the maximum delay before the first retry of a transaction or a bulk
	// request. It is short, because a retry can succeed as soon as the conflicting transaction has
	// ended.
	conflictRetryDelay = 10 * time.Millisecond
	// readRetryDelay is the maximum delay before the first retry of a read. It is longer than
	// conflictRetryDelay, because a read has only a few attempts, and DynamoDB needs time to recover.
	readRetryDelay = 50 * time.Millisecond
	maxDoublings   = 6
)

// minAttemptTime is the minimum time for an attempt. If the time before the deadline is shorter
// than the maximum delay plus minAttemptTime, the request is not retried.
const minAttemptTime = 10 * time.Millisecond

// Reasons why a failed request is not retried. The returned error also wraps the error of the last
// attempt.
var (
	// ErrRetryBudgetExhausted: other requests to the table have recently used up the retry budget.
	ErrRetryBudgetExhausted = errors.New("the retry budget is exhausted")
	// ErrNoRetryTime: the remaining time before the deadline is too short for a retry.
	ErrNoRetryTime = errors.New("the time before the deadline is too short for a retry")
)

// RecordUnprocessed records that DynamoDB throttled some keys of a batch request. If the retry
// budget is exhausted, RecordUnprocessed returns ErrRetryBudgetExhausted, and the caller must not
// request these keys again.
func (g *Guard) RecordUnprocessed(ctx context.Context) error {
	failure := Failure{Cause: CauseThrottled, Reason: ReasonUnprocessed, OneKey: true}
	g.notifyFailure(ctx, failure)
	// Without a deadline, no client waits for the request, so the retry takes no tokens.
	_, limited := ctx.Deadline()
	_, err := g.acquireRetry(ctx, failure, limited)
	return err
}

// acquireRetry takes the cost of a retry from the retry budget if the parameter limited is true.
// The caller must pass the retry's error to the returned function. If this error is nil, the
// function puts the tokens back into the budget.
func (g *Guard) acquireRetry(ctx context.Context, failure Failure, limited bool) (func(error) error, error) {
	release := func(error) error { return nil }
	// A retry after a conflict costs nothing.
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

// warnInterval is the minimum time between two log messages about the exhausted retry budget.
const warnInterval = time.Minute

// recordExhausted counts a request that is not retried because the retry budget is exhausted. It
// also logs a warning, at most once per warnInterval.
func (g *Guard) recordExhausted(ctx context.Context) {
	g.mu.Lock()
	g.exhausted++
	warn := time.Since(g.warned) >= warnInterval
	if warn {
		g.warned = time.Now()
	}
	g.mu.Unlock()
	if warn {
		g.opts.Log.WarnContext(ctx, "the retry budget is exhausted: failed requests to DynamoDB are not retried")
	}
}

// retryer is a retryer of the AWS SDK that also takes tokens from the retry budget of a Guard.
type retryer struct {
	aws.RetryerV2
	guard *Guard
	// firstDelay is the maximum delay before the first retry.
	firstDelay time.Duration
	// unlimited is true if retries take no tokens from the retry budget.
	unlimited bool
}

// GetRetryToken takes the cost of a retry from the retry budget. If the request must not be
// retried, it returns ErrRetryBudgetExhausted or ErrNoRetryTime.
func (r retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < maxDelay(r.firstDelay, attemptCount(ctx))+minAttemptTime {
		return nil, ErrNoRetryTime
	}
	return r.guard.acquireRetry(ctx, Classify(err), !r.unlimited)
}

// RetryDelay returns the delay after the given number of failed attempts. The delay is random, so
// that conflicting requests are not retried at the same time.
func (r retryer) RetryDelay(attempts int, _ error) (time.Duration, error) {
	return RandomN(maxDelay(r.firstDelay, attempts)), nil
}

// RandomN returns a random number from 0 to n-1. n must be positive. Like new IDs, it uses
// crypto/rand, so a test that replaces the source of crypto/rand determines all random numbers.
func RandomN[Int ~int | ~int64](n Int) Int {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return Int(binary.LittleEndian.Uint64(b[:]) % uint64(n))
}

// maxDelay returns the maximum delay before the next retry. The parameter first is the maximum
// delay before the first retry. The parameter attempts is the number of failed attempts so far.
func maxDelay(first time.Duration, attempts int) time.Duration {
	return first << min(max(0, attempts-1), maxDoublings)
}

// retryer returns an SDK retryer that extends base with the Guard's retry budget. If base never
// retries or cannot be extended, retryer returns base.
func (g *Guard) retryer(base aws.Retryer) aws.Retryer {
	// The client of the embedded store never retries, because a retry would return the same error.
	if _, never := base.(aws.NopRetryer); never {
		return base
	}
	if v2, ok := base.(aws.RetryerV2); ok {
		return retryer{RetryerV2: v2, guard: g, firstDelay: readRetryDelay}
	}
	return base
}

// TransactionOptions returns SDK options for transactions. With these options, the SDK also retries
// a transaction after a conflict with another transaction. All attempts share a ClientRequestToken,
// so DynamoDB commits the transaction only once.
func (g *Guard) TransactionOptions() func(*dynamodb.Options) {
	return g.withMaxAttempts(maxTransactionAttempts, false)
}

// BulkOptions returns SDK options for bulk operations, such as an import. They allow more attempts
// than TransactionOptions. Retries take no tokens from the retry budget.
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

// isRetryable reports whether a request can be retried after err. It returns aws.UnknownTernary to
// leave the decision to the AWS SDK.
func isRetryable(err error) aws.Ternary {
	failure := Classify(err)
	switch {
	case failure.Cause == CauseConflict, failure.Cause == CauseThrottled && failure.OneKey:
		return aws.TrueTernary
	case isTransactionCancelled(err):
		return aws.FalseTernary
	case failure.Cause == CauseConnection && errors.As(err, new(*smithy.DeserializationError)):
		return aws.TrueTernary // the connection broke while the response was read, which the SDK does not retry
	default:
		return aws.UnknownTernary
	}
}
