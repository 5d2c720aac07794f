package table

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Parallel calls the function do once for each number from 0 to n-1. At most limit calls run at the
// same time. If a call fails or panics, Parallel cancels the other calls and returns the error.
func Parallel(ctx context.Context, n, limit int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return callRecovering(ctx, 0, do)
	}
	span := trace.SpanFromContext(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	slots := make(chan struct{}, limit)
	forks := make([]context.Context, n)
	// In a Trace, the calls wait for the caller's earlier requests, but not for each other.
	span.ResolveRoundTrip()
	for i := range forks {
		forks[i] = span.Fork(ctx)
	}
	for i, forked := range forks {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if forked.Err() != nil {
				return
			}
			if err := callRecovering(forked, i, do); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	for _, forked := range forks {
		span.WaitForRoundTrip(trace.SpanFromContext(forked).LastRoundTrip())
	}
	return context.Cause(ctx)
}

// callRecovering calls do and turns a panic into an error.
func callRecovering(ctx context.Context, i int, do func(ctx context.Context, i int) error) (err error) {
	defer RecoverTo(&err)
	return do(ctx, i)
}

// RecoverTo recovers from a panic and stores it in *err as an error. Call RecoverTo with defer.
func RecoverTo(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
	}
}
