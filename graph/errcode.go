package graph

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes that top-level errors carry in extensions.code.
const (
	// CodeBadUserInput means that the document, a variable or an argument is wrong.
	CodeBadUserInput = "BAD_USER_INPUT"
	// CodeUnavailable means that the order book cannot be reached right now.
	CodeUnavailable = "UNAVAILABLE"
	// CodeTimedOut means that the request took longer than it may.
	CodeTimedOut = "TIMED_OUT"
	// CodeInternal means a fault of the server.
	CodeInternal = "INTERNAL"

	// Codes of who may do what.

	// CodeUnauthenticated means that the request says nobody who makes it, or somebody who cannot
	// be believed.
	CodeUnauthenticated = "UNAUTHENTICATED"
	// CodeForbidden means that who makes the request may not use something that it asks for.
	CodeForbidden = "FORBIDDEN"
	// CodeNotFound means that what a subscription is to follow does not exist.
	CodeNotFound = "NOT_FOUND"
	// CodeRateLimited means that who makes the request has asked for too much lately.
	CodeRateLimited = "RATE_LIMITED"

	// Codes of subscriptions.

	// CodeTooSlow means that a subscriber has read so slowly that it was cut; it can go on behind
	// the last update with after.
	CodeTooSlow = "TOO_SLOW"
	// CodeTooManySubscriptions means that the server, or the connection, has as many subscriptions
	// as it takes on.
	CodeTooManySubscriptions = "TOO_MANY_SUBSCRIPTIONS"

	// Codes of requests that HTTP refuses.

	// CodeBadRequest means that what was sent is no GraphQL request.
	CodeBadRequest = "BAD_REQUEST"
	// CodeMethodNotAllowed means that the HTTP method, or a GET, is not for this.
	CodeMethodNotAllowed = "METHOD_NOT_ALLOWED"
	// CodeNotAcceptable means that the client accepts no type that the server can answer with.
	CodeNotAcceptable = "NOT_ACCEPTABLE"
	// CodeRequestTimeout means that the request did not arrive in time.
	CodeRequestTimeout = "REQUEST_TIMEOUT"
	// CodeBodyTooLarge means that the body is longer than the limit.
	CodeBodyTooLarge = "BODY_TOO_LARGE"
	// CodeUnsupportedMediaType means that the body is not JSON in UTF-8, or is compressed.
	CodeUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	// CodeForgeable means that a foreign page could have made a browser send the request.
	CodeForgeable = "CSRF_PREVENTED"
	// CodeHostNotAllowed means that a server without authentication does not answer to the name in
	// Host.
	CodeHostNotAllowed = "HOST_NOT_ALLOWED"
	// CodeOverloaded means that the server is busy with as many requests as it takes on at once.
	CodeOverloaded = "OVERLOADED"

	// Codes of limits: see Limits.

	// CodeTooManyTokens belongs to Limits.Tokens.
	CodeTooManyTokens = "TOO_MANY_TOKENS"
	// CodeTooDeep belongs to Limits.Depth.
	CodeTooDeep = "TOO_DEEP"
	// CodeTooManyAliases belongs to Limits.Aliases.
	CodeTooManyAliases = "TOO_MANY_ALIASES"
	// CodeTooManyRootFields belongs to Limits.RootFields.
	CodeTooManyRootFields = "TOO_MANY_ROOT_FIELDS"
	// CodeTooManyDirectives belongs to Limits.Directives.
	CodeTooManyDirectives = "TOO_MANY_DIRECTIVES"
	// CodeListTooDeep belongs to Limits.ListDepth.
	CodeListTooDeep = "LIST_TOO_DEEP"
	// CodeIntrospectionTooDeep belongs to Limits.IntrospectionDepth.
	CodeIntrospectionTooDeep = "INTROSPECTION_TOO_DEEP"
	// CodeTooExpensive belongs to Limits.Cost.
	CodeTooExpensive = "TOO_EXPENSIVE"
	// CodeTooManyRequests belongs to Limits.Requests.
	CodeTooManyRequests = "TOO_MANY_REQUESTS"
	// CodeAnswerTooLarge belongs to Limits.Answer.
	CodeAnswerTooLarge = "ANSWER_TOO_LARGE"

	// Codes of documents.

	// CodeIntrospectionOff means that the server does not tell its schema.
	CodeIntrospectionOff = "INTROSPECTION_OFF"
	// CodePersistedQueryNotFound is what Apollo's protocol wants where a hash is not known: send
	// the text with it.
	CodePersistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND"
	// CodePersistedQueryMismatch means that the hash is not that of the text.
	CodePersistedQueryMismatch = "PERSISTED_QUERY_HASH_MISMATCH"
	// CodeUntrustedDocument means that only trusted documents are executed, and this is none.
	CodeUntrustedDocument = "DOCUMENT_NOT_TRUSTED"
)

// refusedAt is an error that clients see as it is, with a place in the document where it has one.
func refusedAt(position *ast.Position, code, format string, args ...any) *gqlerror.Error {
	if position == nil {
		// ErrorPosf would give line -1, and there is none below 1.
		return withCode(gqlerror.Errorf(format, args...), code)
	}
	return withCode(gqlerror.ErrorPosf(position, format, args...), code)
}

// maxErrors is the maximum number of errors that the response to one document has.
const maxErrors = 20

// excerpt is the beginning of a text, of so many bytes at most, for messages that repeat what was
// sent.
func excerpt(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "..."
}

func withCode(e *gqlerror.Error, code string) *gqlerror.Error {
	e.Extensions = map[string]any{"code": code}
	return e
}
