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

// recheckInterval is the interval between two checks of an open connection's token. Usually, at
// most every second check reads the store, because the customer's existence is cached for
// existsTTL.
const recheckInterval = 15 * time.Second

// Watch calls onInvalid once, in its own goroutine, when the token expires, its key is removed or
// its customer is deleted. The function stop ends the watch.
func (a *Authenticator) Watch(identity Identity, onInvalid func(error)) (stop func()) {
	w := &tokenWatch{authenticator: a, identity: identity, onInvalid: onInvalid}
	w.schedule(0)
	return w.cancel
}

// tokenWatch checks the token of one connection periodically. Between two checks, a tokenWatch uses
// only a timer and no goroutine.
type tokenWatch struct {
	authenticator *Authenticator
	identity      Identity
	onInvalid     func(error)

	mu      sync.Mutex
	stopped bool
	// stopTimer cancels the timer of the next check.
	stopTimer func() bool
}

// schedule starts the timer for the next check, unless the watch has been stopped.
func (w *tokenWatch) schedule(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.stopTimer = w.authenticator.opts.AfterFunc(after, w.check)
	}
}

// check ends the watch if the token is no longer valid. Otherwise, it schedules the next check.
func (w *tokenWatch) check() {
	err := w.authenticator.recheck(w.identity)
	if errors.Is(err, ErrUnauthenticated) {
		if w.markStopped() {
			go w.onInvalid(err)
		}
		return
	}
	if err != nil {
		// Log this error only at debug level, because the check may fail for thousands of connections at
		// once. The same problem makes requests fail, and their errors are logged at error level.
		w.authenticator.opts.Log.Debug("cannot recheck the token of an open connection", "error", err)
	}
	w.schedule(min(recheckInterval, w.identity.Expires.Sub(w.authenticator.opts.Now())))
}

// markStopped marks the watch as stopped. It reports whether the watch was active before the call.
func (w *tokenWatch) markStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	active := !w.stopped
	w.stopped = true
	return active
}

// cancel stops the watch without calling onInvalid.
func (w *tokenWatch) cancel() {
	if w.markStopped() {
		w.stopTimer()
	}
}

// recheck checks whether a token has expired, and whether its key and its customer still exist. If
// the token is no longer valid, the error wraps ErrUnauthenticated.
func (a *Authenticator) recheck(identity Identity) (err error) {
	defer func() {
		// Recover from a panic, because a panic in the timer's goroutine would end the process.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
			a.opts.Log.Error("rechecking the token of an open connection panicked", "error", fmt.Sprintf("%v\n%s", err, debug.Stack()))
		}
	}()
	s := identity.signature
	switch {
	case !a.opts.Now().Before(identity.Expires):
		return newUnauthenticated("it has expired")
	case !slices.ContainsFunc(a.keys.cached(s.keyID, s.algorithm), s.matchesKey):
		return newUnauthenticated("its key is no longer in use")
	default:
		return a.customerExists(context.Background(), identity)
	}
}
