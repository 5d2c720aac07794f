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

// The maximum number of attempts of a request.
const (
	// maxWriteAttempts is the limit for transactions. All attempts take about 20 s if the context has
	// no deadline.
	maxWriteAttempts = 50
	// maxBulkAttempts is the limit for bulk operations. No client waits for these requests, and they
	// can use the whole capacity of a table. All attempts take about a minute.
	maxBulkAttempts = 200
)

// withMaxAttempts returns SDK options that allow the given number of attempts. The SDK repeats a
// transaction with the same ClientRequestToken, which DynamoDB stores for ten minutes. Therefore a
// transaction is committed only once, even if its response is lost.
//
// The SDK retries throttled requests and DynamoDB's server errors. With these options, it also
// retries conflicts with other transactions. On such a conflict, DynamoDB cancels a transaction or
// rejects a single write.
//
// The options do not replace a NopRetryer, which the client of the embedded store uses. An error of
// the embedded store would only occur again.
func withMaxAttempts(attempts int) func(*dynamodb.Options) {
	retryer := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return retryDelay(attempt), nil })
		// The SDK's rate limiter would stop the retries if many requests are throttled at the same time.
		// Here, only the number of attempts and the deadline limit the retries.
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

// retryDelay returns the delay after the given number of failed attempts. The delay is random, so
// that conflicting requests do not conflict again. Its maximum is 10 ms after the first attempt,
// and doubles up to 640 ms.
func retryDelay(attempts int) time.Duration {
	return rand.N(10*time.Millisecond<<min(max(0, attempts-1), 6)) + time.Millisecond
}

// isTransient reports whether all reasons for the cancellation of a transaction are transient.
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
