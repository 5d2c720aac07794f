package attempt

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Cause is the cause of a failed attempt.
type Cause string

// The causes of failed attempts.
const (
	// CauseThrottled: DynamoDB rejected the request because the table or a key exceeded its throughput
	// limit.
	CauseThrottled Cause = "throttled"
	// CauseConflict: another transaction was writing the same record, or DynamoDB was still processing
	// an earlier attempt of the same transaction.
	CauseConflict Cause = "conflict"
	// CauseServerError: DynamoDB failed, or another server, such as a gateway, responded instead of
	// DynamoDB.
	CauseServerError Cause = "server_error"
	// CauseConnection: the connection to DynamoDB failed, or no response arrived in time.
	CauseConnection Cause = "connection"
	// CauseOther is any other cause, such as a failed condition, missing permissions or a canceled
	// request.
	CauseOther Cause = "other"
)

// Failure describes a failed attempt.
type Failure struct {
	Cause Cause
	// Reason is DynamoDB's reason for throttling, such as TableWriteKeyRangeThroughputExceeded. If
	// DynamoDB sent no reason, Reason is the error code. If Cause is not CauseThrottled, Reason is
	// empty.
	Reason string
	// OneKey is true if DynamoDB throttled single keys or records. It is false if DynamoDB throttled
	// the whole table.
	OneKey bool
	// Malformed is true if the response does not follow DynamoDB's protocol. In this case, Cause is
	// CauseServerError.
	Malformed bool
}

// ReasonUnprocessed is the Reason of a Failure if DynamoDB left some keys of a batch request
// unprocessed.
const ReasonUnprocessed = "UnprocessedKeys"

// Codes in the CancellationReasons of a TransactionCanceledException. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const (
	ReasonNone            = "None"
	ReasonConditionFailed = "ConditionalCheckFailed"
	reasonConflict        = "TransactionConflict"
)

// Classify determines why an attempt failed. err is the error that the AWS SDK returned for the
// attempt.
func Classify(err error) Failure {
	if errors.Is(err, context.Canceled) {
		return Failure{Cause: CauseOther}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Failure{Cause: CauseConnection}
	}
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
		return classifyCancelled(cancelled)
	}
	if api := smithy.APIError(nil); errors.As(err, &api) {
		switch code := api.ErrorCode(); code {
		case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "LimitExceededException":
			return classifyThrottled(code, throttlingReasons(err))
		case "TransactionInProgressException", "TransactionConflictException", "ReplicatedWriteConflictException":
			return Failure{Cause: CauseConflict}
		case "InternalServerError", "ServiceUnavailable":
			return Failure{Cause: CauseServerError}
		case "RequestTimeout", "RequestTimeoutException":
			return Failure{Cause: CauseConnection}
		case "UnknownError": // the response has no error code
			return Failure{Cause: CauseServerError, Malformed: api.ErrorFault() != smithy.FaultServer}
		}
		if api.ErrorFault() == smithy.FaultServer {
			return Failure{Cause: CauseServerError}
		}
	}
	// The connection failed, or it was closed before the response was complete.
	if connection := (interface{ ConnectionError() bool })(nil); errors.As(err, &connection) && connection.ConnectionError() {
		return Failure{Cause: CauseConnection}
	}
	// A gateway can respond instead of DynamoDB, for example with an HTML page.
	if response := (interface{ HTTPStatusCode() int })(nil); errors.As(err, &response) && response.HTTPStatusCode() >= 500 {
		return Failure{Cause: CauseServerError}
	}
	if network := net.Error(nil); errors.As(err, &network) { // also while the response is read
		return Failure{Cause: CauseConnection}
	}
	if malformed := (*smithy.DeserializationError)(nil); errors.As(err, &malformed) {
		return Failure{Cause: CauseServerError, Malformed: true}
	}
	return Failure{Cause: CauseOther}
}

// classifyCancelled determines why DynamoDB cancelled a transaction. If a condition failed, the
// cause is CauseOther. If the cause is CauseThrottled, OneKey is true, because requests for other
// records may still succeed.
func classifyCancelled(cancelled *types.TransactionCanceledException) Failure {
	failure := Failure{Cause: CauseOther}
	for _, reason := range cancelled.CancellationReasons {
		switch code := aws.ToString(reason.Code); code {
		case "", ReasonNone:
		case reasonConflict:
			failure = Failure{Cause: CauseConflict}
		case "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded":
			if failure.Cause == CauseOther {
				failure = Failure{Cause: CauseThrottled, Reason: code, OneKey: true}
			}
		default:
			return Failure{Cause: CauseOther}
		}
	}
	return failure
}

// throttlingReasons returns the reasons that DynamoDB gave for throttling a request.
func throttlingReasons(err error) []types.ThrottlingReason {
	var throughput *types.ProvisionedThroughputExceededException
	var limit *types.RequestLimitExceeded
	var rate *types.ThrottlingException
	switch {
	case errors.As(err, &throughput):
		return throughput.ThrottlingReasons
	case errors.As(err, &limit):
		return limit.ThrottlingReasons
	case errors.As(err, &rate):
		return rate.ThrottlingReasons
	}
	return nil
}

// classifyThrottled determines what DynamoDB throttled. A reason names the resource, the operation
// and the limit, such as TableReadProvisionedThroughputExceeded. If DynamoDB throttled a single
// partition key, the reason ends with KeyRangeThroughputExceeded.
func classifyThrottled(code string, reasons []types.ThrottlingReason) Failure {
	failure := Failure{Cause: CauseThrottled, Reason: code}
	names := make([]string, 0, len(reasons))
	for _, r := range reasons {
		if name := aws.ToString(r.Reason); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return failure
	}
	failure.Reason = names[0]
	failure.OneKey = !slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, "KeyRangeThroughputExceeded") })
	return failure
}
