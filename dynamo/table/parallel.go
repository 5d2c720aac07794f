package table

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Parallel calls do for 0 to n-1, at most limit at once, and waits for all. The first error ends
// the others; a panic is an error. One call needs no goroutine and gets none. In a Trace, the calls
// count as waiting for the same requests, and what follows as waiting for all of them.
func Parallel(ctx context.Context, n, limit int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return recovering(ctx, 0, do)
	}
	span := SpanOf(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	slots := make(chan struct{}, limit)
	forks := make([]context.Context, n)
	span.settle()
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
			if err := recovering(forked, i, do); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	for _, forked := range forks {
		span.Wait(SpanOf(forked).Wave())
	}
	return context.Cause(ctx)
}

// recovering calls do and returns a panic as an error.
func recovering(ctx context.Context, i int, do func(ctx context.Context, i int) error) (err error) {
	defer Recovered(&err)
	return do(ctx, i)
}

// Recovered makes an error of a panic. It is to be deferred.
func Recovered(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
	}
}
