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

// Deadline is a context whose deadline passes when a test says so, so that no test has to wait for
// one.
type Deadline struct {
	context.Context
	once   sync.Once
	passed chan struct{}
}

// NewDeadline is a context with ctx's values and a deadline of its own.
func NewDeadline(ctx context.Context) *Deadline {
	return &Deadline{Context: ctx, passed: make(chan struct{})}
}

// Pass lets the deadline pass.
func (d *Deadline) Pass() { d.once.Do(func() { close(d.passed) }) }

// Done is closed when the deadline has passed.
func (d *Deadline) Done() <-chan struct{} { return d.passed }

// Deadline is in an hour: those who ask want to know whether it is worth trying once more.
func (d *Deadline) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

// Err reports whether it has passed.
func (d *Deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// ServeUntil is Serve for one request whose time is over when passed is called.
func ServeUntil(t testing.TB, store *dynamo.Store, log io.Writer) (url string, passed func()) {
	t.Helper()
	next, deadline := handlerOf(t, store, log), NewDeadline(context.Background())
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(deadline)) })), deadline.Pass
}
