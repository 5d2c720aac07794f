package wire

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

// The error codes, and the codes of the cancellation reasons of a transaction.
const (
	CodeCondition           = "ConditionalCheckFailedException"
	CodeInternal            = "InternalServerError"
	CodeIdempotencyMismatch = "IdempotentParameterMismatchException"
	CodeInUse               = "ResourceInUseException"
	CodeNotFound            = "ResourceNotFoundException"
	CodeCancelled           = "TransactionCanceledException"
	CodeValidation          = "ValidationException"
	CodeSerialization       = "SerializationException"
	CodeTrimmedData         = "TrimmedDataAccessException"
	CodeUnknownOperation    = "UnknownOperationException"
	CodeExpiredIterator     = "ExpiredIteratorException"

	ReasonNone       = "None"
	ReasonCondition  = "ConditionalCheckFailed"
	ReasonValidation = "ValidationError"
)

// Failure is DynamoDB's error response.
type Failure struct {
	Code, Message string
	Item          attr.Item            // Item is the item of a failed condition, if the request wants it
	Reasons       []CancellationReason // Reasons are for cancelled transactions
	// OfItem reports whether the failure depends on an item's content. In a transaction, such a
	// failure is a cancellation reason.
	OfItem bool
}

// CancellationReason is why an action cancelled its transaction.
type CancellationReason struct {
	Code, Message string
	Item          attr.Item
}

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Invalid returns a ValidationException.
func Invalid(format string, args ...any) error {
	return &Failure{Code: CodeValidation, Message: fmt.Sprintf(format, args...)}
}

// WithDetectedPrefix adds the prefix "1 validation error detected" to the message of err. DynamoDB
// uses this prefix for some errors that it detects before it looks for the table.
func WithDetectedPrefix(err error) error {
	if err == nil {
		return nil
	}
	return Invalid("1 validation error detected: %s", FailureOf(err).Message)
}

// InvalidItem returns a ValidationException about an item's content.
func InvalidItem(format string, args ...any) error {
	return &Failure{Code: CodeValidation, Message: fmt.Sprintf(format, args...), OfItem: true}
}

// AsInvalid returns a ValidationException with the message of err. It returns nil if err is nil.
func AsInvalid(err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Code: CodeValidation, Message: err.Error()}
}

// NotFound returns the error for a table that does not exist.
func NotFound() error {
	return &Failure{Code: CodeNotFound, Message: "Requested resource not found"}
}

// FailureOf returns err as a Failure. If err is of another type, the result is an internal error.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Code: CodeInternal, Message: err.Error()}
}

// Response returns the failure's status and body.
func (f *Failure) Response() (status int, body []byte) {
	status = http.StatusBadRequest
	namespace := "com.amazonaws.dynamodb.v20120810#"
	switch f.Code {
	case CodeInternal:
		status = http.StatusInternalServerError
	case CodeValidation:
		namespace = "com.amazon.coral.validate#"
	case CodeSerialization, CodeUnknownOperation:
		namespace = "com.amazon.coral.service#"
	}
	o := NewObjectWriter()
	o.Text("__type", namespace+f.Code)
	o.Text("message", f.Message)
	if f.Item != nil {
		o.Item("Item", f.Item)
	}
	if f.Reasons != nil {
		o.List("CancellationReasons", len(f.Reasons), func(i int) {
			r := f.Reasons[i]
			o.Open()
			o.Text("Code", r.Code)
			if r.Message != "" {
				o.Text("Message", r.Message)
			}
			if r.Item != nil {
				o.Item("Item", r.Item)
			}
			o.Close()
		})
	}
	return status, o.Done()
}
