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

// operation answers one request of DynamoDB's protocol.
type operation func(ctx context.Context, request []byte) (any, error)

// routes are all operations of the store. What the engine does right goes to it as it comes.
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

// decoded is the operation do behind its JSON.
func decoded[In, Out any](do func(context.Context, *In) (*Out, error)) operation {
	return func(ctx context.Context, request []byte) (any, error) {
		in := new(In)
		if err := json.Unmarshal(request, in); err != nil {
			return nil, &failure{Type: "SerializationException", Message: err.Error()}
		}
		return do(ctx, in)
	}
}

// The codes of DynamoDB's that the store itself answers with. Those of reasons are not those of
// errors.
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

// failure is an error as DynamoDB sends it. One of the type reasonValidation is never sent: it is
// about a record and becomes the reason of a cancelled transaction.
type failure struct {
	Type    string   `json:"__type"`
	Message string   `json:"message"`
	Item    record   `json:"Item,omitempty"`
	Reasons []reason `json:"CancellationReasons,omitempty"`
}

// reason is why a transaction was cancelled, as far as one of its actions goes.
type reason struct {
	Code    string `json:"Code"`
	Message string `json:"Message,omitempty"`
	Item    record `json:"Item,omitempty"`
}

func (f *failure) Error() string { return f.Type + ": " + f.Message }

// invalid is the answer to a request that makes no sense.
func invalid(format string, args ...any) error {
	return &failure{Type: codeValidation, Message: fmt.Sprintf(format, args...)}
}

// refused is the answer to a request that makes no sense for the record as it is.
func refused(format string, args ...any) error {
	return &failure{Type: reasonValidation, Message: fmt.Sprintf(format, args...)}
}

// encode makes the reply of what an operation returned. The engine's errors are told apart by their
// codes.
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
