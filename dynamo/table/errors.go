package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
)

// Errors of requests to DynamoDB. They do not include the error for a record that does not exist,
// which is commerce.ErrNotFound.
var (
	// ErrUnavailable: DynamoDB is unreachable, responds too late, or temporarily rejects requests.
	ErrUnavailable = errors.New("DynamoDB is unavailable")
	// ErrOutcomeUnknown: a change was sent, but its outcome is unknown. It may have been written, and it
	// may still be written.
	ErrOutcomeUnknown = errors.New("it is unknown whether the change was written")
	// ErrNotDynamoDB: the response does not follow DynamoDB's protocol. A proxy may have sent it.
	ErrNotDynamoDB = fmt.Errorf("%w: the response is not from DynamoDB", ErrUnavailable)
	// ErrNoTable: the table does not exist.
	ErrNoTable = errors.New("the table does not exist")
	// ErrAccessDenied: the credentials are missing, rejected or insufficient for the operation.
	ErrAccessDenied = errors.New("DynamoDB refuses the credentials")
	// ErrSpendingIncomplete: a customer's spending records do not include all of the customer's
	// orders.
	ErrSpendingIncomplete = errors.New("the customer's spending records are incomplete; run `ordergraph check -repair` to complete them")
	// ErrStatusCountsIncomplete: a stored number of orders is missing or does not include all orders.
	// The table stores these numbers by status, by account representative and by product.
	ErrStatusCountsIncomplete = errors.New("the order counts are incomplete; run `ordergraph check -repair` to complete them")
	// ErrTooManyOrders: the customer's record contains no order count, and MaxCountPages Queries are
	// not enough to count the orders.
	ErrTooManyOrders = errors.New("the customer has too many orders to count; run `ordergraph check -repair` to store the count")
	// ErrTableExists: a table with this name already exists.
	ErrTableExists = errors.New("the table already exists")
	// ErrTableMismatch: the table's keys or index differ from the data model, or the table was written
	// with another number of shards.
	ErrTableMismatch = errors.New("the table does not match Ordergraph's data model")
	// ErrNoStream: the table has no stream with the view type RequiredStreamView.
	ErrNoStream = fmt.Errorf("%w: the table lacks the DynamoDB stream that subscriptions need; run `ordergraph table create` to enable it", ErrUnavailable)
	// ErrStreamViewType: the table's stream has a view type other than RequiredStreamView. This stream
	// must be disabled before a stream with the required view type can be enabled.
	ErrStreamViewType = errors.New("the table's stream has the wrong view type")
)

// ShardsError means that the table's records were not written with the configured number of shards
// (partition keys per list). Lists would not find all records. ShardsError wraps ErrTableMismatch.
type ShardsError struct {
	// Shards is the configured number of shards.
	Shards int
	// Keys are the partition keys in the index that contain records but belong to no configured shard.
	Keys []string
}

func (e *ShardsError) Error() string {
	return fmt.Sprintf("the table was written with a number of shards other than %d: its index contains the partition keys %s", e.Shards, e.KeyList())
}

// KeyList returns the first three Keys as text.
func (e *ShardsError) KeyList() string {
	const named = 3
	if len(e.Keys) > named {
		return strings.Join(e.Keys[:named], ", ") + ", ..."
	}
	return strings.Join(e.Keys, ", ")
}

// Unwrap returns ErrTableMismatch.
func (e *ShardsError) Unwrap() error { return ErrTableMismatch }

// WrapError adds the operation and its subject, such as a key, to an error of the AWS SDK. If
// ErrUnavailable, ErrNotDynamoDB, ErrNoTable, ErrTableExists or ErrAccessDenied describes the
// error, the result also wraps that error.
func WrapError(operation, subject string, err error) error {
	if kind := classifyError(err); kind != nil {
		return fmt.Errorf("%s %s: %w: %w", operation, subject, kind, err)
	}
	return fmt.Errorf("%s %s: %w", operation, subject, err)
}

// classifyError returns the error variable of this package that describes an error of the AWS SDK.
// If no variable describes the error, or if the context was canceled, it returns nil.
func classifyError(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return ErrNoTable
	}
	if exists := (*types.ResourceInUseException)(nil); errors.As(err, &exists) {
		return ErrTableExists
	}
	if errors.Is(err, attempt.ErrBreakerOpen) || errors.Is(err, attempt.ErrRetryBudgetExhausted) {
		return ErrUnavailable
	}
	if api := smithy.APIError(nil); errors.As(err, &api) {
		switch api.ErrorCode() {
		case "AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException",
			"MissingAuthenticationToken", "MissingAuthenticationTokenException", "IncompleteSignature", "InvalidClientTokenId":
			return ErrAccessDenied
		}
	}
	switch failure := attempt.Classify(err); {
	case failure.Malformed:
		return ErrNotDynamoDB
	case failure.Cause != attempt.CauseOther:
		return ErrUnavailable
	}
	return nil
}
