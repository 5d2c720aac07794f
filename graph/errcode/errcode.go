// Package errcode has error codes of the API and makes errors that carry codes. It imports
// nothing of the module.
package errcode

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes that top-level errors carry in extensions.code. Those of limits on documents are
// document.Codes.
const (
	// BadUserInput means that the document, a variable or an argument is wrong.
	BadUserInput = "BAD_USER_INPUT"
	// Unavailable means that the order book cannot be reached right now.
	Unavailable = "UNAVAILABLE"
	// TimedOut means that the request took longer than it may.
	TimedOut = "TIMED_OUT"
	// Internal means a fault of the server.
	Internal = "INTERNAL"

	// Codes of who may do what.

	// Unauthenticated means that the request says nobody who makes it, or somebody who cannot
	// be believed.
	Unauthenticated = "UNAUTHENTICATED"
	// Forbidden means that who makes the request may not use something that it asks for.
	Forbidden = "FORBIDDEN"
	// NotFound means that what a subscription is to follow does not exist.
	NotFound = "NOT_FOUND"
	// RateLimited means that who makes the request has asked for too much lately.
	RateLimited = "RATE_LIMITED"

	// Codes of subscriptions.

	// TooSlow means that a subscriber has read so slowly that it was cut; it can go on behind
	// the last update with after.
	TooSlow = "TOO_SLOW"
	// TooManySubscriptions means that the server, or the connection, has as many subscriptions
	// as it takes on.
	TooManySubscriptions = "TOO_MANY_SUBSCRIPTIONS"

	// Codes of requests that HTTP refuses.

	// BadRequest means that what was sent is no GraphQL request.
	BadRequest = "BAD_REQUEST"
	// MethodNotAllowed means that the HTTP method, or a GET, is not for this.
	MethodNotAllowed = "METHOD_NOT_ALLOWED"
	// NotAcceptable means that the client accepts no type that the server can answer with.
	NotAcceptable = "NOT_ACCEPTABLE"
	// RequestTimeout means that the request did not arrive in time.
	RequestTimeout = "REQUEST_TIMEOUT"
	// BodyTooLarge means that the body is longer than the limit.
	BodyTooLarge = "BODY_TOO_LARGE"
	// UnsupportedMediaType means that the body is not JSON in UTF-8, or is compressed.
	UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	// CSRFPrevented means that a foreign page could have made a browser send the request.
	CSRFPrevented = "CSRF_PREVENTED"
	// HostNotAllowed means that a server without authentication does not answer to the name in
	// Host.
	HostNotAllowed = "HOST_NOT_ALLOWED"
	// Overloaded means that the server is busy with as many requests as it takes on at once.
	Overloaded = "OVERLOADED"

	// Codes of documents.

	// IntrospectionOff means that the server does not tell its schema.
	IntrospectionOff = "INTROSPECTION_OFF"
	// PersistedQueryNotFound is what Apollo's protocol wants where a hash is not known: send
	// the text with it.
	PersistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND"
	// PersistedQueryMismatch means that the hash is not that of the text.
	PersistedQueryMismatch = "PERSISTED_QUERY_HASH_MISMATCH"
	// UntrustedDocument means that only trusted documents are executed, and this is none.
	UntrustedDocument = "DOCUMENT_NOT_TRUSTED"
)

// New is an error that clients see as it is, with a place in the document where it has one.
func New(position *ast.Position, code, format string, args ...any) *gqlerror.Error {
	if position == nil {
		// ErrorPosf would give line -1, and there is none below 1.
		return With(gqlerror.Errorf(format, args...), code)
	}
	return With(gqlerror.ErrorPosf(position, format, args...), code)
}

// MaxErrors is the maximum number of errors that the response to one document has.
const MaxErrors = 20

// Excerpt is the beginning of a text, of so many bytes at most, for messages that repeat what was
// sent.
func Excerpt(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "..."
}

// With gives an error a code, instead of its other extensions.
func With(e *gqlerror.Error, code string) *gqlerror.Error {
	e.Extensions = map[string]any{"code": code}
	return e
}

// LastName is the last name in a path; empty if there is none.
func LastName(path ast.Path) string {
	for i := len(path) - 1; i >= 0; i-- {
		if name, ok := path[i].(ast.PathName); ok {
			return string(name)
		}
	}
	return ""
}
