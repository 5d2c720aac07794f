package shoptest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
)

// Deadline is a context that expires when a test calls Pass. So tests do not wait for a real
// deadline.
type Deadline struct {
	context.Context
	once   sync.Once
	passed chan struct{}
}

// NewDeadline returns a Deadline with the values of ctx.
func NewDeadline(ctx context.Context) *Deadline {
	return &Deadline{Context: ctx, passed: make(chan struct{})}
}

// Pass makes the deadline pass.
func (d *Deadline) Pass() { d.once.Do(func() { close(d.passed) }) }

// Done returns a channel that is closed when the deadline has passed.
func (d *Deadline) Done() <-chan struct{} { return d.passed }

// Deadline returns a time in an hour, so that callers expect time for another attempt.
func (d *Deadline) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

// Err returns context.DeadlineExceeded if the deadline has passed.
func (d *Deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// ServeUntil starts a server as Serve does. When passed is called, the deadline of its requests
// passes.
func ServeUntil(t testing.TB, store *dynamo.Store, log io.Writer) (url string, passed func()) {
	t.Helper()
	next, deadline := handlerOf(t, store, log), NewDeadline(context.Background())
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(deadline)) })), deadline.Pass
}
