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

// How often a request is made at most.
const (
	// maxWriteAttempts ends the attempts of a write whose context has no deadline: after about
	// twenty seconds.
	maxWriteAttempts = 50
	// maxBulkAttempts ends those of bulk work, which nobody waits for and which drives a table to
	// its limits: after about a minute.
	maxBulkAttempts = 200
)

// persistently are the SDK's options for requests that are made up to so many times. It is the SDK
// that tries again, because it sends the same bytes with the same ClientRequestToken: a transaction
// that was committed while its answer was lost is not done twice, as long as DynamoDB keeps the
// token, which is ten minutes. Beside throttling and faults, a conflict with another transaction is
// worth another attempt: DynamoDB cancels a transaction that meets one, and rejects a single write.
//
// A client that never tries again keeps to that: what fails in memory fails again.
func persistently(attempts int) func(*dynamodb.Options) {
	retryer := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return pause(attempt), nil })
		// The SDK would give up when many requests are throttled at once; here the number of
		// attempts and the deadline decide.
		o.RateLimiter = ratelimit.None
		o.Retryables = append([]retry.IsErrorRetryable{
			retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				cancelled := (*types.TransactionCanceledException)(nil)
				if !errors.As(err, &cancelled) {
					return aws.UnknownTernary
				}
				return aws.BoolTernary(passing(cancelled))
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

// pause is how long to wait after that many failed attempts: at random, up to 10 ms, 20 ms and so
// on to 640 ms, so that those who were in each other's way do not meet again.
func pause(attempts int) time.Duration {
	return rand.N(10*time.Millisecond<<min(max(0, attempts-1), 6)) + time.Millisecond
}

// passing reports whether a transaction was cancelled for nothing but reasons that pass.
func passing(cancelled *types.TransactionCanceledException) bool {
	found := false
	for _, reason := range cancelled.CancellationReasons {
		switch aws.ToString(reason.Code) {
		case "", ReasonNone:
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			found = true
		default:
			return false
		}
	}
	return found
}

// The codes of reasons for which a transaction is cancelled. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const (
	ReasonNone            = "None"
	ReasonConditionFailed = "ConditionalCheckFailed"
)
