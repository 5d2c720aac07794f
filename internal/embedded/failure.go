package embedded

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
)

// The codes of errors, and of the reasons of cancelled transactions.
const (
	codeCondition   = "ConditionalCheckFailedException"
	codeInternal    = "InternalServerError"
	codeMismatch    = "IdempotentParameterMismatchException"
	codeInUse       = "ResourceInUseException"
	codeNotFound    = "ResourceNotFoundException"
	codeCancelled   = "TransactionCanceledException"
	codeValidation  = "ValidationException"
	codeSerialized  = "SerializationException"
	codeTrimmed     = "TrimmedDataAccessException"
	codeOldIterator = "ExpiredIteratorException"

	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonValidation = "ValidationError"
)

// failure is DynamoDB's error response.
type failure struct {
	kind, message string
	item          attr.Item // item is the item of a failed condition, if the request wants it
	reasons       []reason  // reasons are for cancelled transactions
	// ofItem reports whether the failure is about an item's content. In a transaction it is a reason.
	ofItem bool
}

// reason is why an action cancelled its transaction.
type reason struct {
	code, message string
	item          attr.Item
}

func (f *failure) Error() string { return f.kind + ": " + f.message }

// invalid returns a ValidationException.
func invalid(format string, args ...any) error {
	return &failure{kind: codeValidation, message: fmt.Sprintf(format, args...)}
}

// detected returns the error of a write in DynamoDB's form for errors that it finds before it looks
// for the table.
func detected(err error) error {
	if err == nil {
		return nil
	}
	return invalid("1 validation error detected: %s", failureOf(err).message)
}

// invalidItem returns a ValidationException about an item's content.
func invalidItem(format string, args ...any) error {
	return &failure{kind: codeValidation, message: fmt.Sprintf(format, args...), ofItem: true}
}

// asInvalid returns a ValidationException with the error's message, or nil for nil.
func asInvalid(err error) error {
	if err == nil {
		return nil
	}
	return &failure{kind: codeValidation, message: err.Error()}
}

// notFound returns the error for a table that does not exist.
func notFound() error {
	return &failure{kind: codeNotFound, message: "Requested resource not found"}
}

// failureOf returns the error as a failure. Other errors are internal errors.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return &failure{kind: codeInternal, message: err.Error()}
}

// response returns the failure's status and body.
func (f *failure) response() (status int, body []byte) {
	status = http.StatusBadRequest
	namespace := "com.amazonaws.dynamodb.v20120810#"
	switch f.kind {
	case codeInternal:
		status = http.StatusInternalServerError
	case codeValidation:
		namespace = "com.amazon.coral.validate#"
	case codeSerialized, "UnknownOperationException":
		namespace = "com.amazon.coral.service#"
	}
	o := newObject()
	o.text("__type", namespace+f.kind)
	o.text("message", f.message)
	if f.item != nil {
		o.item("Item", f.item)
	}
	if f.reasons != nil {
		o.list("CancellationReasons", len(f.reasons), func(i int) {
			r := f.reasons[i]
			o.open()
			o.text("Code", r.code)
			if r.message != "" {
				o.text("Message", r.message)
			}
			if r.item != nil {
				o.item("Item", r.item)
			}
			o.close()
		})
	}
	return status, o.done()
}
