package dynamo

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A transaction that was cancelled for reasons that pass is one of a DynamoDB that is unavailable; one with a reason of its own is
// not.
func TestCancelledTransactions(t *testing.T) {
	for _, c := range []struct {
		codes       []string
		unavailable bool
	}{
		{[]string{"None", "TransactionConflict"}, true},
		{[]string{"ThrottlingError", "None"}, true},
		{[]string{"ProvisionedThroughputExceeded", "TransactionConflict"}, true},
		{[]string{"TransactionConflict", "ConditionalCheckFailed"}, false},
		{[]string{"ValidationError"}, false},
		{[]string{"None"}, false},
	} {
		cancelled := &types.TransactionCanceledException{}
		for _, code := range c.codes {
			cancelled.CancellationReasons = append(cancelled.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
		}
		if err := failed("TransactWriteItems", "x", cancelled); errors.Is(err, ErrUnavailable) != c.unavailable {
			t.Errorf("%v: unavailable is %v, want %v", c.codes, !c.unavailable, c.unavailable)
		}
	}
}
