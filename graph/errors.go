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
	"github.com/ordergraph/ordergraph/dynamo"
)

// Codes that top-level errors carry in extensions.code.
const (
	codeBadUserInput = "BAD_USER_INPUT"
	codeUnavailable  = "UNAVAILABLE"
	codeInternal     = "INTERNAL"
)

// present makes what a client sees of an error. It is a list of what may be seen: all else is INTERNAL, and told to report
// only.
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
	switch {
	case errors.As(err, &invalid):
		shown.Message = sentence(invalid, shown.Path)
		return withCode(shown, codeBadUserInput)
	case located != nil && located.Err == nil:
		// The parser's and the validator's own words: they tell what is wrong with the query.
		shown.Message = plain(located.Message)
		if len(shown.Path) > 1 && shown.Path[0] == ast.PathName("variable") && !strings.Contains(shown.Message, "variable ") {
			within := ""
			for _, part := range shown.Path[2:] {
				within += fmt.Sprintf("%v.", part)
			}
			shown.Message = fmt.Sprintf("variable %q: %s", fmt.Sprint(shown.Path[1]), strings.TrimSpace(strings.TrimSuffix(within, ".")+" "+shown.Message))
		}
		return withCode(shown, codeBadUserInput)
	case len(shown.Path) > len(graphql.GetPath(ctx)):
		// An argument that the generated code cannot read: its path reaches behind the field's.
		shown.Message = fmt.Sprintf("argument %q is not of its type", lastName(shown.Path))
		return withCode(shown, codeBadUserInput)
	case errors.Is(err, dynamo.ErrUnavailable), errors.Is(err, dynamo.ErrNoTable), errors.Is(err, dynamo.ErrAccessDenied):
		r.reportOnce(ctx, err)
		shown.Message = "The order book cannot be reached right now. Try again."
		return withCode(shown, codeUnavailable)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if errors.Is(err, context.DeadlineExceeded) {
			r.reportOnce(ctx, err)
		}
		shown.Message = "The request took too long, or its caller went away. Ask for less, or try again."
		return withCode(shown, codeUnavailable)
	default:
		r.reportOnce(ctx, err)
		shown.Message = "Something went wrong on the server."
		return withCode(shown, codeInternal)
	}
}

type reportedKey struct{}

// reported are the errors that were told to report for one request. Fields that wait for one request of DynamoDB's fail with
// one error, which is worth one line in the log.
type reported struct {
	mu   sync.Mutex
	seen map[string]bool
}

func withReported(ctx context.Context) context.Context {
	return context.WithValue(ctx, reportedKey{}, &reported{seen: map[string]bool{}})
}

// reportOnce tells an error to report, with the field that it happened at, unless the request told the same before.
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
		told.seen[err.Error()] = true
	}
	r.report(ctx, fmt.Errorf("%s: %w", path, err))
}

// sentence makes a sentence of what is wrong with a value; the path's end names an argument that the error does not name.
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

func withCode(e *gqlerror.Error, code string) *gqlerror.Error {
	e.Extensions = map[string]any{"code": code}
	return e
}

// plain puts a message of the library's that repeats what was sent, or leaves out what to do, into words of our own.
func plain(message string) string {
	switch {
	case strings.HasPrefix(message, "json request body could not be decoded"):
		return "the body is no JSON object with a query: send {\"query\": \"...\", \"variables\": {...}}"
	case message == "operation  not found":
		return "the request has several operations: name the one to execute with operationName"
	default:
		return message
	}
}

// recovered makes an error of a panic, for the log only.
func recovered(_ context.Context, panicked any) error {
	return fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
}
