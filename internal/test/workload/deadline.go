package workload

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
)

// ManualDeadline is a context whose deadline passes when a test calls Expire. The test therefore
// does not have to wait for a real deadline.
type ManualDeadline struct {
	context.Context
	once    sync.Once
	expired chan struct{}
}

// NewManualDeadline returns a ManualDeadline with the values of ctx.
func NewManualDeadline(ctx context.Context) *ManualDeadline {
	return &ManualDeadline{Context: ctx, expired: make(chan struct{})}
}

// Expire makes the deadline pass.
func (d *ManualDeadline) Expire() { d.once.Do(func() { close(d.expired) }) }

// Done returns a channel that is closed when the deadline has passed.
func (d *ManualDeadline) Done() <-chan struct{} { return d.expired }

// Deadline returns a time one hour in the future, so that the tested code never skips a retry for
// lack of time.
func (d *ManualDeadline) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

// Err returns context.DeadlineExceeded if the deadline has passed.
func (d *ManualDeadline) Err() error {
	select {
	case <-d.expired:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// ServeWithDeadline starts a server like Serve. All requests to this server share one deadline. The
// deadline passes when the test calls the returned function.
func ServeWithDeadline(t testing.TB, store *dynamo.Store, log io.Writer) (url string, passed func()) {
	t.Helper()
	next, deadline := newHandler(t, store, log), NewManualDeadline(context.Background())
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(deadline)) })), deadline.Expire
}
