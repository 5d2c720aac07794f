package auth

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// watchEvery is how often the token of an open connection is checked again. A check waits for
// nothing but the customer's record, which is read once in existFor for all connections of the
// customer.
const watchEvery = 15 * time.Second

// Watch calls ended once, in its own goroutine, when a new request with the token of an identity
// would be refused: the token has expired, its key is no longer among the keys, or its customer
// does not exist. While the customer cannot be looked up, the watch goes on. The function that
// Watch returns ends the watch.
func (a *Authenticator) Watch(identity Identity, ended func(error)) (stop func()) {
	w := &watch{tokens: a, identity: identity, ended: ended}
	w.next(0)
	return w.end
}

// watch is the watch over one connection. Between checks it takes a timer and no goroutine.
type watch struct {
	tokens   *Authenticator
	identity Identity
	ended    func(error)

	mu   sync.Mutex
	over bool
	// stop stops the timer of the next check.
	stop func() bool
}

// next plans the next check.
func (w *watch) next(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.stop = w.tokens.opts.After(after, w.check)
	}
}

// check ends the watch where the token would be refused now, or plans the next check.
func (w *watch) check() {
	err := w.tokens.recheck(w.identity)
	if errors.Is(err, ErrUnauthenticated) {
		if w.finish() {
			go w.ended(err)
		}
		return
	}
	if err != nil {
		// Requests that fail for the same reason are logged as errors. Connections would repeat it
		// thousands of times.
		w.tokens.opts.Log.Debug("the token of an open connection could not be checked", "error", err)
	}
	w.next(min(watchEvery, w.identity.Expires.Sub(w.tokens.opts.Now())))
}

// finish marks the watch as over, and reports whether it was not.
func (w *watch) finish() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.over
	w.over = true
	return first
}

// end ends the watch.
func (w *watch) end() {
	if w.finish() {
		w.stop()
	}
}

// recheck checks an identity as Authenticate would check its token.
//
// Errors: ErrUnauthenticated; those of Options.CustomerExists.
func (a *Authenticator) recheck(identity Identity) (err error) {
	defer func() {
		// In the goroutine of a timer a panic would end the server.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
			a.opts.Log.Error("the check of an open connection's token failed", "error", fmt.Sprintf("%v\n%s", err, debug.Stack()))
		}
	}()
	s := identity.signature
	switch {
	case !a.opts.Now().Before(identity.Expires):
		return refused("it has expired")
	case !slices.ContainsFunc(a.keys.atHand(s.keyID, s.algorithm), s.isOf):
		return refused("its key is no longer one of the keys")
	default:
		return a.customerExists(context.Background(), identity)
	}
}
