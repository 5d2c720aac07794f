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

// The retry budget, in tokens. The values are the defaults of the AWS SDK. Each retry takes tokens
// from the budget, and a successful retry returns them.
const (
	// budgetTokens is the size of the budget.
	budgetTokens = 500
	// retryCost is the cost of a retry after throttling or a server error. connectionRetryCost is the
	// cost of a retry after a failed connection. It is higher, because a failed connection may have
	// taken seconds.
	retryCost, connectionRetryCost = 5, 10
	// successRefill is the number of tokens that each successful attempt adds to the budget.
	successRefill = 1
)

// The maximum number of attempts of a request.
const (
	// maxTransactionAttempts is the limit for transactions. All attempts take about 20 s if the
	// context has no deadline.
	maxTransactionAttempts = 50
	// maxBulkAttempts is the limit for bulk operations. No client waits for these requests, and they
	// can use the whole capacity of a table. All attempts take about a minute.
	maxBulkAttempts = 200
)

// The maximum delay before the first retry. The maximum doubles with each further retry, at most
// maxDoublings times.
const (
	// conflictDelay is the maximum first delay for transactions. It is short, because a conflict ends
	// when the other transaction ends.
	conflictDelay = 10 * time.Millisecond
	// readDelay is the maximum first delay for reads. It is longer than conflictDelay, because reads
	// have few attempts and DynamoDB needs time to recover.
	readDelay    = 50 * time.Millisecond
	maxDoublings = 6
)

// minAttemptTime is the minimum time that an attempt needs. A request is not retried if less time
// remains between the delay and the deadline.
const minAttemptTime = 10 * time.Millisecond

// Reasons why a request is not retried. The returned error also contains the error of the last
// attempt.
var (
	// ErrBudgetExhausted: too many requests of the table were retried recently.
	ErrBudgetExhausted = errors.New("the retry budget is exhausted")
	// ErrNoTime: a retry could not end before the deadline.
	ErrNoTime = errors.New("no time is left for a retry")
)

// Unprocessed records that DynamoDB throttled keys of a batch and did not process them. It returns
// ErrBudgetExhausted if the caller must not request the keys again. A request without a deadline is
// not limited, because no client waits for it.
func (g *Guard) Unprocessed(ctx context.Context) error {
	failure := Failure{Cause: Throttled, Reason: ReasonUnprocessed, OneKey: true}
	g.recordFailure(ctx, failure)
	_, limited := ctx.Deadline()
	_, err := g.acquireRetry(ctx, failure, limited)
	return err
}

// acquireRetry takes the cost of a retry from the budget. The retry is free if limited is false, or
// if the failure is a Conflict. The caller passes the outcome of the retry to the returned
// function, which returns the tokens after a success.
func (g *Guard) acquireRetry(ctx context.Context, failure Failure, limited bool) (func(error) error, error) {
	release := func(error) error { return nil }
	if limited && failure.Cause != Conflict {
		cost := uint(retryCost)
		if failure.Cause == Connection {
			cost = connectionRetryCost
		}
		refund, err := g.budget.GetToken(context.WithoutCancel(ctx), cost)
		if err != nil {
			g.recordExhausted(ctx)
			return nil, fmt.Errorf("%w: %w", ErrBudgetExhausted, err)
		}
		release = func(err error) error {
			if err != nil {
				return nil
			}
			return refund()
		}
	}
	g.recordRetry(ctx, failure)
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

// retryer is a retryer of the AWS SDK that uses the budget of a Guard.
type retryer struct {
	aws.RetryerV2
	guard *Guard
	// firstDelay is the maximum delay before the first retry.
	firstDelay time.Duration
	// unlimited reports whether retries are free, so that they do not use the budget.
	unlimited bool
}

// GetRetryToken returns ErrBudgetExhausted or ErrNoTime if the request must not be retried.
func (r retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < maxDelay(r.firstDelay, attemptsOf(ctx))+minAttemptTime {
		return nil, ErrNoTime
	}
	return r.guard.acquireRetry(ctx, Classify(err), !r.unlimited)
}

// RetryDelay returns the delay after the given number of failed attempts. The delay is random, so
// that conflicting requests do not conflict again. It never exceeds the delay of the SDK's own
// retryer.
func (r retryer) RetryDelay(attempts int, err error) (time.Duration, error) {
	longest, err := r.RetryerV2.RetryDelay(attempts, err)
	return min(longest, rand.N(maxDelay(r.firstDelay, attempts))), err
}

// maxDelay returns the maximum delay after the given number of failed attempts.
func maxDelay(first time.Duration, attempts int) time.Duration {
	return first << min(max(0, attempts-1), maxDoublings)
}

// retryer returns a retryer with the limit of attempts of base. It returns base if base cannot be
// extended, or if base never retries. The client of the embedded store never retries, because a
// retry would return the same error.
func (g *Guard) retryer(base aws.Retryer) aws.Retryer {
	if _, never := base.(aws.NopRetryer); never {
		return base
	}
	if v2, ok := base.(aws.RetryerV2); ok {
		return retryer{RetryerV2: v2, guard: g, firstDelay: readDelay}
	}
	return base
}

// Transactions returns SDK options for transactions. The SDK repeats a transaction with the same
// ClientRequestToken, which DynamoDB stores for ten minutes. Therefore a transaction is committed
// only once, even if its response is lost.
//
// With these options, the SDK also retries conflicts with other transactions. On such a conflict,
// DynamoDB cancels a transaction or rejects a single write.
func (g *Guard) Transactions() func(*dynamodb.Options) {
	return g.withMaxAttempts(maxTransactionAttempts, false)
}

// Bulk returns SDK options for bulk operations. They are like the options for transactions, but
// without the retry budget.
func (g *Guard) Bulk() func(*dynamodb.Options) { return g.withMaxAttempts(maxBulkAttempts, true) }

func (g *Guard) withMaxAttempts(attempts int, unlimited bool) func(*dynamodb.Options) {
	standard := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(isRetryable)}, o.Retryables...)
	})
	own := retryer{RetryerV2: standard, guard: g, firstDelay: conflictDelay, unlimited: unlimited}
	return func(o *dynamodb.Options) {
		if _, never := o.Retryer.(aws.NopRetryer); !never {
			o.Retryer = own
		}
	}
}

// isRetryable reports whether a transaction can be retried after err. It returns aws.UnknownTernary
// if the AWS SDK must decide.
func isRetryable(err error) aws.Ternary {
	failure := Classify(err)
	switch {
	case failure.Cause == Conflict, failure.Cause == Throttled && failure.OneKey:
		return aws.TrueTernary
	case isCancelled(err):
		return aws.FalseTernary
	default:
		return aws.UnknownTernary
	}
}
