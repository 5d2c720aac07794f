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
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
)

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
		return errcode.With(shown, code)
	}
	var full *admission.Refusal
	switch {
	case errors.As(err, &full):
		shown = shows(full.Pool().Code, "%s", full.Error())
		shown.Extensions["pool"] = full.Pool().Name
		return shown
	case errors.As(err, &invalid):
		return shows(errcode.BadUserInput, "%s", sentence(invalid, shown.Path))
	case located != nil && located.Err == nil && located.Extensions["code"] != nil:
		shown.Message, shown.Extensions = located.Message, located.Extensions
		return shown
	case located != nil && located.Err == nil:
		// The parser's and the validator's own words: they tell what is wrong with the query.
		return shows(errcode.BadUserInput, "%s", located.Message)
	case len(shown.Path) > len(graphql.GetPath(ctx)):
		// An argument that the generated code cannot read: its path reaches behind the field's.
		return shows(errcode.BadUserInput, "argument %q is not of its type", errcode.LastName(shown.Path))
	case errors.Is(err, table.ErrOverBudget):
		return shows(document.Codes.Requests, "The operation has made as many requests to DynamoDB as one can. Ask for fewer lists inside lists, or for less at once.")
	case outOfTime(ctx, err):
		r.reportOnce(ctx, err)
		return shows(errcode.TimedOut, "The request took longer than it may. Ask for less, or try again.")
	case errors.As(err, &clock):
		r.reportOnce(ctx, err)
		return shows(errcode.Unavailable, "The server makes no changes, as its clock is %s DynamoDB's. Nothing was changed. Try again.", clock.Difference())
	case errors.Is(err, table.ErrTooManyToCount):
		r.reportOnce(ctx, err)
		return shows(errcode.Unavailable, "The customer has more orders than a request counts. The server's operator can store the count with `ordergraph check -repair`.")
	case errors.Is(err, table.ErrNotCounted):
		r.reportOnce(ctx, err)
		return shows(errcode.Unavailable, "The orders have not been counted. The server's operator can count them with `ordergraph check -repair`.")
	case errors.Is(err, table.ErrNotAddedUp):
		r.reportOnce(ctx, err)
		return shows(errcode.Unavailable, "The customer's orders have not been added up. The server's operator can do that with `ordergraph check -repair`.")
	case errors.Is(err, table.ErrUnavailable), errors.Is(err, table.ErrNoTable), errors.Is(err, table.ErrAccessDenied):
		r.reportOnce(ctx, err)
		return shows(errcode.Unavailable, "The order book cannot be reached right now. Try again.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if errors.Is(err, context.DeadlineExceeded) {
			r.reportOnce(ctx, err)
		}
		return shows(errcode.Unavailable, "The order book took too long to answer, or the caller went away. Try again.")
	default:
		r.reportOnce(ctx, err)
		shown = shows(errcode.Internal, "Something went wrong on the server.")
		if r.requestID != nil {
			shown.Extensions["requestId"] = r.requestID(ctx)
		}
		return shown
	}
}

// outOfTime reports whether something went wrong because the request had no time left; it may not
// be DynamoDB's fault then.
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
		return fmt.Sprintf("argument %q: %s", errcode.LastName(path), e.Reason)
	}
	return e.Error()
}

// recovered makes an error of a panic, for the log only.
func recovered(_ context.Context, panicked any) error {
	return fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
}
