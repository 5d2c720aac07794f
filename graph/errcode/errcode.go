// Package errcode defines the error codes of the API and creates errors with codes. It imports no
// other package of the module.
package errcode

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes of top-level errors, in extensions.code. The codes of document limits are in
// document.Codes.
const (
	// BadUserInput means that the document, a variable or an argument is invalid.
	BadUserInput = "BAD_USER_INPUT"
	// Unavailable means that the server cannot reach the table at this time.
	Unavailable = "UNAVAILABLE"
	// TimedOut means that the request exceeded its time limit.
	TimedOut = "TIMED_OUT"
	// Internal means that the server failed.
	Internal = "INTERNAL"

	// Codes of authentication, permissions and rate limits.

	// Unauthenticated means that credentials are missing or invalid.
	Unauthenticated = "UNAUTHENTICATED"
	// Forbidden means that the caller lacks a permission.
	Forbidden = "FORBIDDEN"
	// NotFound means that the record to subscribe to does not exist.
	NotFound = "NOT_FOUND"
	// RateLimited means that the caller exceeded the rate limit.
	RateLimited = "RATE_LIMITED"

	// Codes of subscriptions.

	// TooSlow means that the server ended a subscription because the client read its events too
	// slowly. The client can resume the subscription with the argument "after".
	TooSlow = "TOO_SLOW"
	// TooManySubscriptions means that the server or the connection has reached its maximum number of
	// subscriptions.
	TooManySubscriptions = "TOO_MANY_SUBSCRIPTIONS"

	// SubscriptionsOff means that the server does not support subscriptions.
	SubscriptionsOff = "SUBSCRIPTIONS_OFF"

	// Codes of requests that the HTTP handler rejects.

	// BadRequest means that the request is not a valid GraphQL request.
	BadRequest = "BAD_REQUEST"
	// MethodNotAllowed means that the path or the operation does not support the HTTP method.
	MethodNotAllowed = "METHOD_NOT_ALLOWED"
	// NotAcceptable means that the client accepts no media type that the server can send.
	NotAcceptable = "NOT_ACCEPTABLE"
	// RequestTimeout means that the request did not arrive in time.
	RequestTimeout = "REQUEST_TIMEOUT"
	// BodyTooLarge means that the body exceeds its size limit.
	BodyTooLarge = "BODY_TOO_LARGE"
	// UnsupportedMediaType means that the body is not uncompressed JSON in UTF-8.
	UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	// CSRFPrevented means that the request could be a CSRF attack: another website could have made a
	// browser send the request.
	CSRFPrevented = "CSRF_PREVENTED"
	// HostNotAllowed means that a server without authentication does not accept the host name in the
	// Host header.
	HostNotAllowed = "HOST_NOT_ALLOWED"
	// Overloaded means that the server has reached its maximum number of concurrent requests.
	Overloaded = "OVERLOADED"

	// Codes of documents.

	// IntrospectionOff means that the server rejects introspection.
	IntrospectionOff = "INTROSPECTION_OFF"
	// PersistedQueryNotFound is the code of Apollo's protocol for an unknown hash. After this error,
	// the client sends the document together with the hash.
	PersistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND"
	// PersistedQueryMismatch means that the hash does not match the document.
	PersistedQueryMismatch = "PERSISTED_QUERY_HASH_MISMATCH"
	// UntrustedDocument means that the document is not trusted, but the server executes only trusted
	// documents.
	UntrustedDocument = "DOCUMENT_NOT_TRUSTED"
)

// IsServerFault reports whether an error with this code is a fault of the server, or of a service
// that the server depends on.
func IsServerFault(code string) bool {
	switch code {
	case Internal, Unavailable, TimedOut, Overloaded:
		return true
	}
	return false
}

// All returns all error codes, except the codes of package graph/document for exceeded limits.
func All() []string {
	return []string{
		BadUserInput, Unavailable, TimedOut, Internal, Unauthenticated, Forbidden, NotFound,
		RateLimited, TooSlow, TooManySubscriptions, BadRequest, MethodNotAllowed, NotAcceptable,
		RequestTimeout, BodyTooLarge, UnsupportedMediaType, CSRFPrevented, HostNotAllowed,
		Overloaded, IntrospectionOff, SubscriptionsOff, PersistedQueryNotFound, PersistedQueryMismatch,
		UntrustedDocument,
	}
}

// New returns an error with a code for clients. If position is nil, the error has no location.
func New(position *ast.Position, code, format string, args ...any) *gqlerror.Error {
	if position == nil {
		// Without a position, ErrorPosf would set the line to -1, but line numbers start at 1.
		return WithCode(gqlerror.Errorf(format, args...), code)
	}
	return WithCode(gqlerror.ErrorPosf(position, format, args...), code)
}

// MaxErrors is the maximum number of errors in the response to one document.
const MaxErrors = 20

// Excerpt returns at most length bytes of a text, for messages that quote client input.
func Excerpt(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "..."
}

// WithCode sets the code of an error and removes its other extensions.
func WithCode(e *gqlerror.Error, code string) *gqlerror.Error {
	e.Extensions = map[string]any{"code": code}
	return e
}

// LastPathName returns the last field or argument name in a path. It returns an empty string if the
// path contains only list indexes.
func LastPathName(path ast.Path) string {
	for i := len(path) - 1; i >= 0; i-- {
		if name, ok := path[i].(ast.PathName); ok {
			return string(name)
		}
	}
	return ""
}
