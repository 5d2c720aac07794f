package table

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Errors of requests. A missing record is commerce.ErrNotFound.
var (
	// ErrUnavailable: DynamoDB cannot be reached, is too slow, or rejects requests temporarily.
	ErrUnavailable = errors.New("DynamoDB is unavailable")
	// ErrNotDynamoDB: the response is not in DynamoDB's protocol. A proxy may have sent it.
	ErrNotDynamoDB = fmt.Errorf("%w: the response is not from DynamoDB", ErrUnavailable)
	// ErrNoTable: the table does not exist.
	ErrNoTable = errors.New("the table does not exist")
	// ErrAccessDenied: the credentials are missing, rejected, or do not allow the operation.
	ErrAccessDenied = errors.New("DynamoDB refuses the credentials")
	// ErrSpendingIncomplete: the spending records of the customer are incomplete.
	ErrSpendingIncomplete = errors.New("the customer's orders are not added up: `ordergraph check -repair` adds them up")
	// ErrStatusCountsIncomplete: the table's counters of orders are incomplete.
	ErrStatusCountsIncomplete = errors.New("the orders are not counted: `ordergraph check -repair` counts them")
	// ErrTooManyOrders: the customer's record has no order count, and the orders exceed the
	// MaxCountPages that Count reads.
	ErrTooManyOrders = errors.New("too many orders to count: `ordergraph check -repair` writes the count to the customer's record")
	// ErrTableExists: a table with this name exists already.
	ErrTableExists = errors.New("the table exists already")
	// ErrTableMismatch: the table's keys or index differ from the model's.
	ErrTableMismatch = errors.New("the table does not fit the model")
	// ErrNoStream: the table has no stream of new and old images.
	ErrNoStream = fmt.Errorf("%w: the table has no stream of its changes; `ordergraph table create` enables it", ErrUnavailable)
	// ErrStreamViewType: the table has a stream with another view type. It must be disabled first.
	ErrStreamViewType = errors.New("the table's stream has the wrong view type")
)

// ShardsError reports that a table was written with another number of shards than the store reads.
// Lists would look empty. It wraps ErrTableMismatch.
type ShardsError struct {
	// Shards is the number of shards that the store reads.
	Shards int
	// Keys are partition keys of the index that have records, but belong to none of these shards.
	Keys []string
}

func (e *ShardsError) Error() string {
	return fmt.Sprintf("the table was written with another number of shards than %d: it has records under %s", e.Shards, e.KeyList())
}

// KeyList lists the first three Keys.
func (e *ShardsError) KeyList() string {
	const named = 3
	if len(e.Keys) > named {
		return strings.Join(e.Keys[:named], ", ") + ", ..."
	}
	return strings.Join(e.Keys, ", ")
}

// Unwrap returns ErrTableMismatch.
func (e *ShardsError) Unwrap() error { return ErrTableMismatch }

// WrapError wraps an error of the SDK with the operation and its subject, such as a key. It also
// wraps ErrUnavailable, ErrNotDynamoDB, ErrNoTable, ErrTableExists or ErrAccessDenied if one
// applies.
func WrapError(operation, subject string, err error) error {
	if kind := classifyError(err); kind != nil {
		return fmt.Errorf("%s %s: %w: %w", operation, subject, kind, err)
	}
	return fmt.Errorf("%s %s: %w", operation, subject, err)
}

// classifyError returns the error of this package that describes an error of the SDK, or nil if
// there is no such error. The error of a cancelled context has no kind.
func classifyError(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrUnavailable
	}
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return ErrNoTable
	}
	if exists := (*types.ResourceInUseException)(nil); errors.As(err, &exists) {
		return ErrTableExists
	}
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) && isTransient(cancelled) {
		return ErrUnavailable
	}
	if api := smithy.APIError(nil); errors.As(err, &api) {
		switch api.ErrorCode() {
		case "AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException",
			"MissingAuthenticationToken", "MissingAuthenticationTokenException", "IncompleteSignature", "InvalidClientTokenId":
			return ErrAccessDenied
		case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "LimitExceededException",
			"InternalServerError", "ServiceUnavailable", "TransactionInProgressException", "TransactionConflictException", "RequestTimeout":
			return ErrUnavailable
		}
		if api.ErrorFault() == smithy.FaultServer {
			return ErrUnavailable
		}
		if api.ErrorCode() == "UnknownError" {
			return ErrNotDynamoDB // the response has no error code
		}
	}
	// There was no connection, or it was closed before the response was complete.
	if connection := (interface{ ConnectionError() bool })(nil); errors.As(err, &connection) && connection.ConnectionError() {
		return ErrUnavailable
	}
	// A gateway may respond instead of DynamoDB, for example with an HTML page.
	if response := (interface{ HTTPStatusCode() int })(nil); errors.As(err, &response) && response.HTTPStatusCode() >= 500 {
		return ErrUnavailable
	}
	if malformed := (*smithy.DeserializationError)(nil); errors.As(err, &malformed) {
		return ErrNotDynamoDB
	}
	if network := net.Error(nil); errors.As(err, &network) {
		return ErrUnavailable
	}
	return nil
}
