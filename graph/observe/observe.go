// Package observe measures operations, and describes them for metrics, traces and logs. Within the
// module, it imports only dynamo/trace and graph/document.
package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Observer is notified of all operations of an executor. It must be safe for concurrent use.
type Observer interface {
	// Observes reports whether the operation with this context is observed. If not, the executor does
	// not call EndOperation.
	Observes(ctx context.Context) bool
	// BeginEvent is called before an operation is executed for an event of a subscription. It returns
	// the context of the execution.
	BeginEvent(ctx context.Context) context.Context
	// EndOperation is called once for each query, each mutation, each start of a subscription, and
	// each event of a subscription. It is also called if the operation was refused. ctx is the context
	// of the operation.
	EndOperation(ctx context.Context, o Operation)
}

const (
	// UntrustedName replaces the name of an operation if its document is not trusted. Clients choose
	// the names in such documents, so the number of different names would be unlimited.
	UntrustedName = "other"
	// UnknownType is the type of an operation if its document was rejected.
	UnknownType = "unknown"
	// OK is the code of an operation without errors. All other codes are error codes.
	OK = "OK"
)

// Operation describes a finished operation.
type Operation struct {
	// Name is the name of the operation if the document is trusted. Otherwise, Name is Other.
	Name string
	// Type is query, mutation, subscription or UnknownType.
	Type string
	// Event reports whether the operation was executed for an event of a subscription.
	Event bool
	// Codes are the codes of all errors in the response.
	Codes []string
	// Duration is the time from the start of the operation, or from the arrival of the event, until
	// the response was complete.
	Duration time.Duration
	// Requests is the number of requests to DynamoDB. ReadUnits and WriteUnits are the capacity units
	// that these requests consumed.
	Requests              int
	ReadUnits, WriteUnits float64

	document string
}

// RefusedOperation returns the description of a request that was refused before its operation was known.
// code is the error code.
func RefusedOperation(code string) Operation {
	return Operation{Name: UntrustedName, Type: UnknownType, Codes: []string{code}}
}

// WithDocument returns a copy of the operation with the text of an untrusted document. Only
// DocumentHash uses the text.
func (o Operation) WithDocument(text string) Operation {
	o.document = text
	return o
}

// hashLength is the number of bytes of the hash that DocumentHash returns.
const hashLength = 6

// DocumentHash returns the first 12 hexadecimal digits of the SHA-256 of a document that is not
// trusted. It returns an empty string for a trusted document, or if the request had no document.
func (o *Operation) DocumentHash() string {
	if o.document == "" {
		return ""
	}
	hash := sha256.Sum256([]byte(o.document))
	return hex.EncodeToString(hash[:hashLength])
}

// Code returns the code of the first error, or OK if there are no errors.
func (o *Operation) Code() string {
	if len(o.Codes) == 0 {
		return OK
	}
	return o.Codes[0]
}
