package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
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

// present makes what a client sees of an error. It is a list of what may be seen: all else is
// INTERNAL, and told to report only.
func (r *Resolver) present(ctx context.Context, err error) *gqlerror.Error {
	shown := &gqlerror.Error{Path: graphql.GetPath(ctx)}
	var located *gqlerror.Error
	if errors.As(err, &located) {
		shown.Locations = located.Locations
		if len(located.Path) > 0 {
			shown.Path = located.Path
		}
	}
	var invalid *commerce.InvalidError
	var clock *table.ClockError
	shows := func(code, format string, args ...any) *gqlerror.Error {
		shown.Message = fmt.Sprintf(format, args...)
		return withCode(shown, code)
	}
	switch {
	case errors.As(err, &invalid):
		return shows(CodeBadUserInput, "%s", sentence(invalid, shown.Path))
	case located != nil && located.Err == nil && located.Extensions["code"] != nil:
		shown.Message, shown.Extensions = located.Message, located.Extensions
		return shown
	case located != nil && located.Err == nil:
		// The parser's and the validator's own words: they tell what is wrong with the query.
		return shows(CodeBadUserInput, "%s", located.Message)
	case len(shown.Path) > len(graphql.GetPath(ctx)):
		// An argument that the generated code cannot read: its path reaches behind the field's.
		return shows(CodeBadUserInput, "argument %q is not of its type", lastName(shown.Path))
	case errors.Is(err, table.ErrOverBudget):
		return shows(CodeTooManyRequests, "The operation has made as many requests to DynamoDB as one can. Ask for fewer lists inside lists, or for less at once.")
	case outOfTime(ctx, err):
		r.reportOnce(ctx, err)
		return shows(CodeTimedOut, "The request took longer than it may. Ask for less, or try again.")
	case errors.As(err, &clock):
		r.reportOnce(ctx, err)
		return shows(CodeUnavailable, "The server makes no changes, as its clock is %s DynamoDB's. Nothing was changed. Try again.", clock.Difference())
	case errors.Is(err, table.ErrTooManyToCount):
		r.reportOnce(ctx, err)
		return shows(CodeUnavailable, "The customer has more orders than a request counts. The server's operator can store the count with `ordergraph check -repair`.")
	case errors.Is(err, table.ErrUnavailable), errors.Is(err, table.ErrNoTable), errors.Is(err, table.ErrAccessDenied):
		r.reportOnce(ctx, err)
		return shows(CodeUnavailable, "The order book cannot be reached right now. Try again.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if errors.Is(err, context.DeadlineExceeded) {
			r.reportOnce(ctx, err)
		}
		return shows(CodeUnavailable, "The order book took too long to answer, or the caller went away. Try again.")
	default:
		r.reportOnce(ctx, err)
		shown = shows(CodeInternal, "Something went wrong on the server.")
		if r.requestID != nil {
			shown.Extensions["requestId"] = r.requestID(ctx)
		}
		return shown
	}
}

// outOfTime tells whether something went wrong because the request had no time left; it may not be
// DynamoDB's fault then.
func outOfTime(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, table.ErrUnavailable))
}

type reportedKey struct{}

// reported are the errors that were told to report for one request. Fields that wait for one
// request of DynamoDB's fail with one error, which is worth one line in the log.
type reported struct {
	mu   sync.Mutex
	seen map[string]bool
}

func withReported(ctx context.Context) context.Context {
	return context.WithValue(ctx, reportedKey{}, &reported{})
}

// reportOnce tells an error to report, with the field that it happened at, unless the request told
// the same before.
func (r *Resolver) reportOnce(ctx context.Context, err error) {
	path := graphql.GetPath(ctx)
	if located := (*gqlerror.Error)(nil); errors.As(err, &located) && located.Err != nil {
		path, err = located.Path, located.Err
	}
	if told, ok := ctx.Value(reportedKey{}).(*reported); ok {
		told.mu.Lock()
		defer told.mu.Unlock()
		if told.seen[err.Error()] {
			return
		}
		if told.seen == nil {
			told.seen = map[string]bool{}
		}
		told.seen[err.Error()] = true
	}
	if len(path) > 0 { // a stream that ends does so between the fields
		err = fmt.Errorf("%s: %w", path, err)
	}
	r.report(ctx, err)
}

// sentence makes a sentence of what is wrong with a value; the path's end names an argument that
// the error does not name.
func sentence(e *commerce.InvalidError, path ast.Path) string {
	if e.Argument == "" && len(path) > 0 {
		return fmt.Sprintf("argument %q: %s", lastName(path), e.Reason)
	}
	return e.Error()
}

func lastName(path ast.Path) string {
	for i := len(path) - 1; i >= 0; i-- {
		if name, ok := path[i].(ast.PathName); ok {
			return string(name)
		}
	}
	return ""
}

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

// recovered makes an error of a panic, for the log only.
func recovered(_ context.Context, panicked any) error {
	return fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
}
