// Package errcode defines the error codes of the API and creates errors with codes. It imports no
// other package of the module.
package errcode

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes of the top-level errors in a response. Clients find the code of an error in
// extensions.code. The codes of exceeded document limits are in document.LimitCodes.
const (
	// BadUserInput means that the document, a variable or an argument is invalid.
	BadUserInput = "BAD_USER_INPUT"
	// Unavailable means that the server cannot process the request at this time, for example
	// because it cannot reach DynamoDB.
	Unavailable = "UNAVAILABLE"
	// TimedOut means that the request exceeded its time limit.
	TimedOut = "TIMED_OUT"
	// Internal means that an unexpected error occurred on the server.
	Internal = "INTERNAL"

	// MalformedRecord means that a stored record has a value that cannot be read.
	MalformedRecord = "MALFORMED_RECORD"

	// Codes for authentication, permissions and rate limits.

	// Unauthenticated means that credentials are missing or invalid.
	Unauthenticated = "UNAUTHENTICATED"
	// Forbidden means that the caller lacks a permission.
	Forbidden = "FORBIDDEN"
	// NotFound means that the client subscribed to a record that does not exist, or that the caller
	// may not see.
	NotFound = "NOT_FOUND"
	// RateLimited means that the caller exceeded the rate limit.
	RateLimited = "RATE_LIMITED"

	// Codes for subscriptions.

	// TooSlow means that the server ended a subscription because the client read its events too
	// slowly. To resume the subscription, the client subscribes again with the argument "after".
	TooSlow = "TOO_SLOW"
	// TooManySubscriptions means that the server cannot start another subscription or WebSocket
	// operation. The server, the caller or the WebSocket has reached a limit.
	TooManySubscriptions = "TOO_MANY_SUBSCRIPTIONS"

	// SubscriptionsOff means that the server does not support subscriptions.
	SubscriptionsOff = "SUBSCRIPTIONS_OFF"

	// Codes for requests that the HTTP handler rejects.

	// BadRequest means that the request is malformed, for example because its body is not valid
	// JSON.
	BadRequest = "BAD_REQUEST"
	// MethodNotAllowed means that the path or the operation does not support the HTTP method. For
	// example, a mutation cannot be sent with GET.
	MethodNotAllowed = "METHOD_NOT_ALLOWED"
	// NotAcceptable means that the request's Accept header contains no media type that the server
	// can send.
	NotAcceptable = "NOT_ACCEPTABLE"
	// RequestTimeout means that the body of the request did not arrive in time.
	RequestTimeout = "REQUEST_TIMEOUT"
	// BodyTooLarge means that the body of the request exceeds the size limit.
	BodyTooLarge = "BODY_TOO_LARGE"
	// UnsupportedMediaType means that the body is compressed, or is not JSON in UTF-8.
	UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	// CSRFPrevented means that the request could be a CSRF attack, because a page of another
	// website could have sent it.
	CSRFPrevented = "CSRF_PREVENTED"
	// HostNotAllowed means that the server does not accept the host name in the Host header. Only
	// servers without authentication check the host name.
	HostNotAllowed = "HOST_NOT_ALLOWED"
	// Overloaded means that the server has no capacity for the request at this time. The server
	// also returns this code if the caller has reached its share of the capacity.
	Overloaded = "OVERLOADED"

	// Codes for GraphQL documents.

	// IntrospectionOff means that introspection is disabled on the server.
	IntrospectionOff = "INTROSPECTION_OFF"
	// PersistedQueryNotFound means that the server does not know the document with the requested
	// hash. In Apollo's protocol of automatic persisted queries, the client then sends the document
	// together with the hash.
	PersistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND"
	// PersistedQueryMismatch means that the hash in the request is not the hash of the document in
	// the request.
	PersistedQueryMismatch = "PERSISTED_QUERY_HASH_MISMATCH"
	// UntrustedDocument means that the server does not trust the document. Servers that execute
	// only trusted documents return this code for all other documents. All servers return it for an
	// unknown document ID.
	UntrustedDocument = "DOCUMENT_NOT_TRUSTED"
)

// IsServerFault reports whether an error with this code is a fault of the server or of a service
// that it depends on.
func IsServerFault(code string) bool {
	switch code {
	case Internal, Unavailable, TimedOut, Overloaded:
		return true
	}
	return false
}

// All returns the error codes of this package. document.AllLimitCodes returns the codes of exceeded
// limits.
func All() []string {
	return []string{
		BadUserInput, Unavailable, TimedOut, Internal, MalformedRecord, Unauthenticated, Forbidden, NotFound,
		RateLimited, TooSlow, TooManySubscriptions, BadRequest, MethodNotAllowed, NotAcceptable,
		RequestTimeout, BodyTooLarge, UnsupportedMediaType, CSRFPrevented, HostNotAllowed,
		Overloaded, IntrospectionOff, SubscriptionsOff, PersistedQueryNotFound, PersistedQueryMismatch,
		UntrustedDocument,
	}
}

// New returns an error with a code in its extensions. If position is nil, the error has no
// location.
func New(position *ast.Position, code, format string, args ...any) *gqlerror.Error {
	if position == nil {
		// Without a position, gqlerror.ErrorPosf would set the line number to -1, which is invalid.
		return WithCode(gqlerror.Errorf(format, args...), code)
	}
	return WithCode(gqlerror.ErrorPosf(position, format, args...), code)
}

// MaxErrors is the maximum number of errors in the response to a request that is rejected before
// its execution.
const MaxErrors = 20

// Excerpt shortens a text for a message that quotes the client's input. The parameter length is the
// maximum number of bytes. Excerpt cuts a longer text to this length, without a partial character
// at the end, and appends "...".
func Excerpt(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "..."
}

// WithCode sets the code of an error, removes all other extensions of the error, and returns the
// error.
func WithCode(e *gqlerror.Error, code string) *gqlerror.Error {
	e.Extensions = map[string]any{"code": code}
	return e
}

// LastPathName returns the last name in the path of an error. This is the name of a field or an
// argument. If the path contains only list indexes, LastPathName returns an empty string.
func LastPathName(path ast.Path) string {
	for i := len(path) - 1; i >= 0; i-- {
		if name, ok := path[i].(ast.PathName); ok {
			return string(name)
		}
	}
	return ""
}
