package table

import (
	"errors"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A transaction that was cancelled only for transient reasons returns ErrUnavailable. Any other
// reason does not.
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
		if err := WrapError("TransactWriteItems", "x", cancelled); errors.Is(err, ErrUnavailable) != c.unavailable {
			t.Errorf("%v: unavailable is %v, want %v", c.codes, !c.unavailable, c.unavailable)
		}
	}
}

// If the connection is closed before the response arrives, the outcome of the request is unknown.
// The error is ErrUnavailable.
func TestLostConnections(t *testing.T) {
	for _, lost := range []error{io.ErrUnexpectedEOF, io.EOF, errors.New("http: server closed idle connection")} {
		if err := WrapError("TransactWriteItems", "x", &smithyhttp.RequestSendError{Err: lost}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%v: got %v, want ErrUnavailable", lost, err)
		}
	}
}
