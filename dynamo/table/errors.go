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

// What can go wrong with a request. Missing records are commerce.ErrNotFound.
var (
	// ErrUnavailable: DynamoDB cannot be reached, takes too long, or turns requests away for now.
	ErrUnavailable = errors.New("DynamoDB is unavailable")
	// ErrNotDynamoDB: what answers in DynamoDB's place does not speak its protocol.
	ErrNotDynamoDB = fmt.Errorf("%w: what answers is not DynamoDB", ErrUnavailable)
	// ErrNoTable: the table does not exist.
	ErrNoTable = errors.New("the table does not exist")
	// ErrAccessDenied: the credentials are missing, refused, or do not allow the operation.
	ErrAccessDenied = errors.New("DynamoDB refuses the credentials")
	// ErrNotAddedUp means that the table does not keep what a customer has spent.
	ErrNotAddedUp = errors.New("the customer's orders are not added up: `ordergraph check -repair` adds them up")
	// ErrNotCounted means that the table does not keep a number of orders.
	ErrNotCounted = errors.New("the orders are not counted: `ordergraph check -repair` counts them")
	// ErrTooManyToCount: a customer's record keeps no count of the orders, and there are more than
	// a request counts.
	ErrTooManyToCount = errors.New("too many orders to count: `ordergraph check -repair` writes the count to the customer's record")
	// ErrTableExists: there is a table of that name already.
	ErrTableExists = errors.New("the table exists already")
	// ErrTableMismatch: the table's keys or index are not the model's.
	ErrTableMismatch = errors.New("the table does not fit the model")
	// ErrNoStream: the table has no stream that tells what its records were and are.
	ErrNoStream = fmt.Errorf("%w: the table has no stream that tells changes; `ordergraph table create` turns it on", ErrUnavailable)
	// ErrOtherStream: the table has a stream of another kind, which has to be turned off first.
	ErrOtherStream = errors.New("the table's stream does not tell what records were and are")
)

// ShardsError tells that a table was written with another number of shards than the store reads, so
// that lists would look empty. It is an ErrTableMismatch.
type ShardsError struct {
	// Shards is the number that the store reads.
	Shards int
	// Keys are keys of the index that have records, and that no list of so many shards reads.
	Keys []string
}

func (e *ShardsError) Error() string {
	return fmt.Sprintf("the table was written with another number of shards than %d: it has records under %s", e.Shards, e.Under())
}

// Under names the first keys.
func (e *ShardsError) Under() string {
	const named = 3
	if len(e.Keys) > named {
		return strings.Join(e.Keys[:named], ", ") + ", ..."
	}
	return strings.Join(e.Keys, ", ")
}

// Unwrap tells of which kind it is.
func (e *ShardsError) Unwrap() error { return ErrTableMismatch }

// Failed translates an error of the SDK, and says which request failed.
//
// Errors: ErrUnavailable, ErrNoTable, ErrTableExists, ErrAccessDenied, the context's error, or the
// SDK's as it is.
func Failed(operation, subject string, err error) error {
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%s %s: %w: %w", operation, subject, kind, err)
	}
	return fmt.Errorf("%s %s: %w", operation, subject, err)
}

func kindOf(err error) error {
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
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) && passing(cancelled) {
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
			return ErrNotDynamoDB // an error without a name
		}
	}
	// No answer at all: no connection, or one that ended before the answer came.
	if sent := (interface{ ConnectionError() bool })(nil); errors.As(err, &sent) && sent.ConnectionError() {
		return ErrUnavailable
	}
	// Whatever stands between us and DynamoDB may answer in its place, a gateway with a page of its
	// own, say.
	if response := (interface{ HTTPStatusCode() int })(nil); errors.As(err, &response) && response.HTTPStatusCode() >= 500 {
		return ErrUnavailable
	}
	if foreign := (*smithy.DeserializationError)(nil); errors.As(err, &foreign) {
		return ErrNotDynamoDB
	}
	if network := net.Error(nil); errors.As(err, &network) {
		return ErrUnavailable
	}
	return nil
}
