package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// maxErrorMessage is the maximum length of an error message in bytes. Messages can quote the
// client's input.
const maxErrorMessage = 1000

// presentError converts an error for the client. The client sees only the errors that this function
// lists. All other errors become INTERNAL, and only the log contains their cause.
func (r *Resolver) presentError(ctx context.Context, err error) *gqlerror.Error {
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
	var missing *model.DerivationUnavailable
	show := func(code, format string, args ...any) *gqlerror.Error {
		shown.Message = errcode.Excerpt(fmt.Sprintf(format, args...), maxErrorMessage)
		return errcode.WithCode(shown, code)
	}
	var full *admission.Refusal
	switch {
	case errors.As(err, &full):
		shown = show(full.Pool.Code, "%s", full.Error())
		shown.Extensions["pool"] = full.Pool.Name
		return shown
	case errors.As(err, &invalid):
		return show(errcode.BadUserInput, "%s", invalidValueMessage(invalid, shown.Path))
	case located != nil && located.Err == nil && located.Extensions["code"] != nil:
		shown.Message, shown.Extensions = located.Message, located.Extensions
		return shown
	case located != nil && located.Err == nil:
		// This error of the parser or the validator describes a mistake in the document.
		return show(errcode.BadUserInput, "%s", located.Message)
	case len(shown.Path) > len(graphql.GetPath(ctx)):
		// The error's path is longer than the path of the field, so the error is about an argument.
		return show(errcode.BadUserInput, "argument %q does not have the expected type", errcode.LastPathName(shown.Path))
	case errors.Is(err, table.ErrReadBudgetExceeded):
		return show(document.LimitCodes.Requests, "The operation needs more than the maximum number of requests to DynamoDB. Request fewer nested lists or smaller pages.")
	case errors.Is(err, table.ErrOutcomeUnknown):
		r.reportOnce(ctx, err)
		code := errcode.Unavailable
		if deadlineExceeded(ctx, err) {
			code = errcode.TimedOut
		}
		return show(code, "The database did not confirm the change in time, so it is unknown whether the change was made. Send the same input with the same idempotencyKey again: the change is then made only once.")
	case deadlineExceeded(ctx, err):
		r.reportOnce(ctx, err)
		return show(errcode.TimedOut, "The request exceeded its time limit. Request fewer fields, or try again.")
	case errors.Is(err, commerce.ErrMalformed):
		r.reportOnce(ctx, err)
		return show(errcode.MalformedRecord, "A stored record is malformed. The server's operator can find the record with `ordergraph check`.")
	case errors.As(err, &clock):
		r.reportOnce(ctx, err)
		return show(errcode.Unavailable, "The server's clock is %s DynamoDB's clock, so it rejects mutations and does not list changes. Nothing was changed. Try again.", clock.DifferenceText())
	case errors.Is(err, table.ErrTooManyOrders):
		r.reportOnce(ctx, err)
		return show(errcode.Unavailable, "The customer has too many orders to count during this request. The server's operator can store the count with `ordergraph check -repair`.")
	case errors.Is(err, table.ErrStatusCountsIncomplete):
		r.reportOnce(ctx, err)
		return show(errcode.Unavailable, "The orders have not been counted. The server's operator can count them with `ordergraph check -repair`.")
	case errors.Is(err, table.ErrSpendingIncomplete):
		r.reportOnce(ctx, err)
		return show(errcode.Unavailable, "The customer's spending has not been computed. The server's operator can compute it with `ordergraph check -repair`.")
	case errors.As(err, &missing):
		return show(errcode.Unavailable, "This list or number is not ready: %s.", missing.Error())
	case errors.Is(err, change.ErrNoWebhookKey), errors.Is(err, change.ErrWrongWebhookKey):
		r.reportOnce(ctx, err)
		return show(errcode.Unavailable, "The server's operator must change a setting: %s.", err.Error())
	case errors.Is(err, table.ErrUnavailable), errors.Is(err, table.ErrNoTable), errors.Is(err, table.ErrAccessDenied):
		r.reportOnce(ctx, err)
		return show(errcode.Unavailable, "The server cannot reach its database right now. Try again.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if errors.Is(err, context.DeadlineExceeded) {
			r.reportOnce(ctx, err)
		}
		return show(errcode.Unavailable, "The database took too long to respond, or the client canceled the request. Try again.")
	default:
		r.reportOnce(ctx, err)
		shown = show(errcode.Internal, "Something went wrong on the server.")
		if r.requestID != nil {
			shown.Extensions["requestId"] = r.requestID(ctx)
		}
		return shown
	}
}

// deadlineExceeded reports whether an error occurred because the deadline of the client's request
// has passed. Such an error does not mean that DynamoDB has a problem.
func deadlineExceeded(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, table.ErrUnavailable))
}

type reportedErrorsKey struct{}

// reportedErrors contains the messages of the errors that were logged for one GraphQL request. If
// several fields wait for the same DynamoDB request, they fail with the same error. This error is
// logged only once.
type reportedErrors struct {
	mu   sync.Mutex
	seen map[string]bool
}

func withReportedErrors(ctx context.Context) context.Context {
	return context.WithValue(ctx, reportedErrorsKey{}, &reportedErrors{})
}

// reportOnce logs an error with the path of its field, at most once during a GraphQL request.
func (r *Resolver) reportOnce(ctx context.Context, err error) {
	path := graphql.GetPath(ctx)
	if located := (*gqlerror.Error)(nil); errors.As(err, &located) && located.Err != nil {
		path, err = located.Path, located.Err
	}
	if request, ok := ctx.Value(reportedErrorsKey{}).(*reportedErrors); ok {
		request.mu.Lock()
		defer request.mu.Unlock()
		if request.seen[err.Error()] {
			return
		}
		if request.seen == nil {
			request.seen = map[string]bool{}
		}
		request.seen[err.Error()] = true
	}
	if len(path) > 0 { // an error that ends a subscription has no path
		err = fmt.Errorf("%s: %w", path, err)
	}
	r.report(ctx, err)
}

// invalidValueMessage returns the message for an invalid value. If the error does not name the
// argument, the message contains the last name in the path instead.
func invalidValueMessage(e *commerce.InvalidError, path ast.Path) string {
	if e.Argument == "" && len(path) > 0 {
		return fmt.Sprintf("argument %q: %s", errcode.LastPathName(path), e.Reason)
	}
	return e.Error()
}

// panicError converts a panic to an error for the log. Clients do not see this error.
func panicError(_ context.Context, panicked any) error {
	return fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
}
