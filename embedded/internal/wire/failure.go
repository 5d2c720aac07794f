package wire

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// The error codes of DynamoDB, and the codes of cancellation reasons.
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
	CodeThrottling          = "ThrottlingException"
	CodeTooLarge            = "RequestEntityTooLargeException"

	ReasonNone       = "None"
	ReasonCondition  = "ConditionalCheckFailed"
	ReasonThrottling = "ThrottlingError"
	ReasonValidation = "ValidationError"
)

// Failure is an error response of DynamoDB.
type Failure struct {
	Code, Message string
	// Item is the existing item after a failed condition, or nil if the request does not ask for
	// it.
	Item attr.Item
	// Reasons contains a reason for each action of a cancelled transaction.
	Reasons []CancellationReason
	// Throttling contains the reasons of a ThrottlingException.
	Throttling []ThrottlingReason
	// OfItem reports whether the failure depends on the content of an item. In a transaction, such
	// a failure becomes a cancellation reason.
	OfItem bool
}

// CancellationReason describes why one action cancelled its transaction. If the action did not
// fail, Code is ReasonNone.
type CancellationReason struct {
	Code, Message string
	Item          attr.Item
}

// ThrottlingReason names a limit that a request has exceeded. Resource is the Amazon Resource Name of
// the table or index.
type ThrottlingReason struct{ Reason, Resource string }

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Invalid returns a ValidationException with a formatted message.
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

// InvalidItem is like Invalid, but the error concerns the content of an item (see Failure.OfItem).
func InvalidItem(format string, args ...any) error {
	return &Failure{Code: CodeValidation, Message: fmt.Sprintf(format, args...), OfItem: true}
}

// AsInvalid returns a ValidationException with the message of err. If err is nil, AsInvalid returns
// nil.
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

// FailureOf returns the Failure in err. If err contains no Failure, FailureOf returns an
// InternalServerError with the message of err.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Code: CodeInternal, Message: err.Error()}
}

// Response returns the HTTP status and the JSON body of the response.
func (f *Failure) Response() (status int, body []byte) {
	status = http.StatusBadRequest
	namespace := "com.amazonaws.dynamodb.v20120810#"
	switch f.Code {
	case CodeInternal:
		status = http.StatusInternalServerError
	case CodeTooLarge:
		status, namespace = http.StatusRequestEntityTooLarge, "com.amazon.coral.service#"
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
	if f.Throttling != nil {
		o.List("throttlingReasons", len(f.Throttling), func(i int) {
			o.Open()
			o.Text("reason", f.Throttling[i].Reason)
			o.Text("resource", f.Throttling[i].Resource)
			o.Close()
		})
	}
	return status, o.Done()
}
