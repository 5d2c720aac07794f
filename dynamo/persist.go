package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// patience is how often a request of bulk work is made that DynamoDB turns away because it is busy: for about five seconds, on top
// of the SDK's own attempts. A server could not wait for so long.
const patience = 12

// persist repeats a request while DynamoDB turns it away for being too much, ever later. Bulk work drives a table to its
// limits, and DynamoDB takes minutes to raise them.
//
// Errors: the request's, or the context's where it ends first.
func persist(ctx context.Context, request func() error) error {
	for attempt := 0; ; attempt++ {
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
		if err := request(); err == nil || attempt == patience || !throttled(err) {
			return err
		}
	}
}

// throttled tells whether DynamoDB turned a request away because of others.
func throttled(err error) bool {
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
		busy := false
		for _, r := range cancelled.CancellationReasons {
			switch aws.ToString(r.Code) {
			case "ConditionalCheckFailed":
				return false
			case "ThrottlingError", "ProvisionedThroughputExceeded":
				busy = true
			}
		}
		return busy
	}
	if api := smithy.APIError(nil); errors.As(err, &api) {
		switch api.ErrorCode() {
		case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "TransactionInProgressException":
			return true
		}
	}
	return false
}
