package table

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Maximum attempts of a request.
const (
	// maxWriteAttempts applies to transactions. They take about 20 s if the context has no deadline.
	maxWriteAttempts = 50
	// maxBulkAttempts applies to bulk work. No caller waits for its requests, and it may use all the
	// capacity of a table. The attempts take about a minute.
	maxBulkAttempts = 200
)

// withMaxAttempts returns SDK options that allow the given number of attempts. The SDK repeats a
// transaction with the same ClientRequestToken, which DynamoDB remembers for ten minutes. So a
// transaction whose response was lost is not committed twice.
//
// The SDK retries throttling and server errors. The options also retry conflicts with other
// transactions: DynamoDB cancels a transaction or rejects a single write on such a conflict.
//
// A client with a NopRetryer keeps it: an error of the embedded store would occur again.
func withMaxAttempts(attempts int) func(*dynamodb.Options) {
	retryer := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return retryDelay(attempt), nil })
		// With its own rate limiter the SDK stops retrying when many requests are throttled at once.
		// Here only the number of attempts and the deadline decide.
		o.RateLimiter = ratelimit.None
		o.Retryables = append([]retry.IsErrorRetryable{
			retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				cancelled := (*types.TransactionCanceledException)(nil)
				if !errors.As(err, &cancelled) {
					return aws.UnknownTernary
				}
				return aws.BoolTernary(isTransient(cancelled))
			}),
			retry.RetryableErrorCode{Codes: map[string]struct{}{"TransactionInProgressException": {}, "TransactionConflictException": {}}},
		}, o.Retryables...)
	})
	return func(o *dynamodb.Options) {
		if _, never := o.Retryer.(aws.NopRetryer); !never {
			o.Retryer = retryer
		}
	}
}

// retryDelay returns the delay after the given number of failed attempts. It is a random time of up
// to 10 ms, 20 ms, 40 ms and so on to 640 ms, so that conflicting requests do not conflict again.
func retryDelay(attempts int) time.Duration {
	return rand.N(10*time.Millisecond<<min(max(0, attempts-1), 6)) + time.Millisecond
}

// isTransient reports whether a transaction was cancelled for transient reasons only.
func isTransient(cancelled *types.TransactionCanceledException) bool {
	transient := false
	for _, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "", ReasonNone:
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			transient = true
		default:
			return false
		}
	}
	return transient
}

// Codes in the CancellationReasons of a cancelled transaction. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const (
	ReasonNone            = "None"
	ReasonConditionFailed = "ConditionalCheckFailed"
)
