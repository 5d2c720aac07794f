package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// maxAttempts is how often a request is made that DynamoDB turns away each time, beside the SDK's own few attempts.
const maxAttempts = 10

// persist repeats a request while DynamoDB turns it away for being too much, ever later. Bulk work drives a table to its
// limits, and DynamoDB takes minutes to raise them.
//
// Errors: the request's, or the context's where it ends first.
func persist(ctx context.Context, request func() error) error {
	for attempt := 0; ; attempt++ {
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
		err := request()
		if err == nil || attempt+1 == maxAttempts || !retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool() {
			return err
		}
	}
}
