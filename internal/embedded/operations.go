package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/aws/smithy-go"
)

// operation executes one request of DynamoDB's protocol.
type operation func(ctx context.Context, request []byte) (any, error)

// routes returns all operations of the store. The engine executes the operations that it implements
// correctly.
func (s *Store) routes() map[string]operation {
	return map[string]operation{
		"CreateTable":        decoded(s.createTable),
		"UpdateTable":        decoded(s.updateTable),
		"DeleteTable":        decoded(s.deleteTable),
		"DescribeTable":      decoded(s.describeTable),
		"UpdateTimeToLive":   decoded(s.updateTimeToLive),
		"DescribeTimeToLive": decoded(s.describeTimeToLive),
		"GetItem":            decoded(s.engine.GetItem),
		"PutItem":            decoded(s.write(put)),
		"UpdateItem":         decoded(s.updateItem),
		"DeleteItem":         decoded(s.write(deleted)),
		"Query":              decoded(s.engine.Query),
		"Scan":               decoded(s.scan),
		"BatchGetItem":       decoded(s.engine.BatchGetItem),
		"BatchWriteItem":     decoded(s.batchWriteItem),
		"TransactGetItems":   decoded(s.engine.TransactGetItems),
		"TransactWriteItems": decoded(s.transactWriteItems),
	}
}

// decoded returns do as an operation that decodes JSON.
func decoded[In, Out any](do func(context.Context, *In) (*Out, error)) operation {
	return func(ctx context.Context, request []byte) (any, error) {
		in := new(In)
		if err := json.Unmarshal(request, in); err != nil {
			return nil, &failure{Type: "SerializationException", Message: err.Error()}
		}
		return do(ctx, in)
	}
}

// The DynamoDB error codes that the store itself returns. Cancellation reasons have other codes
// than errors.
const (
	codeCondition  = "ConditionalCheckFailedException"
	codeInternal   = "InternalServerError"
	codeMismatch   = "IdempotentParameterMismatchException"
	codeNoTable    = "ResourceNotFoundException"
	codeCancelled  = "TransactionCanceledException"
	codeValidation = "ValidationException"

	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonValidation = "ValidationError"
)

// failure is a DynamoDB error. A failure of the type reasonValidation is about a record and becomes
// the reason of a cancelled transaction. It is never sent as an error.
type failure struct {
	Type    string   `json:"__type"`
	Message string   `json:"message"`
	Item    record   `json:"Item,omitempty"`
	Reasons []reason `json:"CancellationReasons,omitempty"`
}

// reason is the cancellation reason of one action of a transaction.
type reason struct {
	Code    string `json:"Code"`
	Message string `json:"Message,omitempty"`
	Item    record `json:"Item,omitempty"`
}

func (f *failure) Error() string { return f.Type + ": " + f.Message }

// invalid returns the error for an invalid request.
func invalid(format string, args ...any) error {
	return &failure{Type: codeValidation, Message: fmt.Sprintf(format, args...)}
}

// refused returns the error for a request that is invalid for the current record.
func refused(format string, args ...any) error {
	return &failure{Type: reasonValidation, Message: fmt.Sprintf(format, args...)}
}

// encode encodes the result of an operation. Errors of the engine keep their codes.
func encode(out any, err error) (status int, body []byte, _ error) {
	status = http.StatusOK
	if err != nil {
		f, ok := errors.AsType[*failure](err)
		if !ok {
			f = &failure{Type: codeInternal, Message: err.Error()}
			if api, ok := errors.AsType[smithy.APIError](err); ok {
				f.Type, f.Message = api.ErrorCode(), api.ErrorMessage()
			}
		}
		out, status = f, http.StatusBadRequest
		if f.Type == codeInternal {
			status = http.StatusInternalServerError
		}
	}
	body, err = json.Marshal(spelled(reflect.ValueOf(out)))
	if err != nil {
		return 0, nil, fmt.Errorf("embedded store: encode the reply: %w", err)
	}
	return status, body, nil
}
