// Package observe measures GraphQL operations and describes them for metrics, traces and logs.
// Within the module, it imports only dynamo/trace and graph/document.
package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Observer receives a description of each operation that an executor has finished. An
// implementation must be safe for concurrent use.
type Observer interface {
	// Observes reports whether to observe the operation with the given context. If it returns
	// false, the executor does not call EndOperation for the operation.
	Observes(ctx context.Context) bool
	// BeginEvent is called for each event of a subscription, before the server executes the
	// operation. It is also called if an error ends the subscription. It returns the context for
	// the execution.
	BeginEvent(ctx context.Context) context.Context
	// EndOperation is called after each query and each mutation, even if the server refused it. For
	// a subscription, it is called after the start, after each event, and after an error that ends
	// the subscription.
	EndOperation(ctx context.Context, o Operation)
}

const (
	// UntrustedName replaces the name if the operation has no name, or if its document is not
	// trusted. Clients can invent names in untrusted documents, so metrics could otherwise contain
	// an unlimited number of names.
	UntrustedName = "other"
	// UnknownType is the type of an operation that the server could not find. For example, the
	// request's document has a syntax error.
	UnknownType = "unknown"
	// WebhookType is the type of an operation that is a request of a webhook.
	WebhookType = "webhook"
	// OK is the code of an operation without errors. The code of any other operation is an error
	// code.
	OK = "OK"
)

// Operation describes a finished operation.
type Operation struct {
	// Name is the name of the operation if the document is trusted and the operation has a name.
	// Otherwise, it is UntrustedName. For a webhook, it is the name of the webhook.
	Name string
	// Type is "query", "mutation", "subscription", WebhookType or UnknownType.
	Type string
	// Event is true for the execution for an event of a subscription, and for an error that ends a
	// subscription.
	Event bool
	// Codes contains the codes of all errors in the response.
	Codes []string
	// Duration is the time from the start of the operation until the response was complete. For an
	// event, the time starts when the execution for the event begins.
	Duration time.Duration
	// Requests is the number of requests to DynamoDB. ReadUnits and WriteUnits are the capacity units
	// that these requests consumed.
	Requests              int
	ReadUnits, WriteUnits float64
	// Document is the text of the document. If Name identifies the operation, or if there is no
	// document, Document is empty.
	Document string
}

// hashLength is the number of bytes of the hash that DocumentHash returns. Each byte becomes two
// hexadecimal digits.
const hashLength = 6

// DocumentHash returns the first 12 hexadecimal digits of the SHA-256 of Document. If Document is
// empty, it returns an empty string.
func (o *Operation) DocumentHash() string {
	if o.Document == "" {
		return ""
	}
	hash := sha256.Sum256([]byte(o.Document))
	return hex.EncodeToString(hash[:hashLength])
}

// Code returns the code of the first error, or OK if there are no errors.
func (o *Operation) Code() string {
	if len(o.Codes) == 0 {
		return OK
	}
	return o.Codes[0]
}
