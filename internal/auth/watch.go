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

// watchEvery is the interval at which the token of an open connection is checked again. A check
// waits at most for the customer's record. All connections of a customer share one read within
// existFor.
const watchEvery = 15 * time.Second

// Watch calls onInvalid once, in its own goroutine, when a new request with the identity's token
// would be rejected. The token has expired, its key was removed, or its customer does not exist. If
// the customer's lookup fails, the watch continues. The returned function stops the watch.
func (a *Authenticator) Watch(identity Identity, onInvalid func(error)) (stop func()) {
	w := &watch{tokens: a, identity: identity, ended: onInvalid}
	w.next(0)
	return w.end
}

// watch checks the token of one connection. Between checks it needs a timer and no goroutine.
type watch struct {
	tokens   *Authenticator
	identity Identity
	ended    func(error)

	mu   sync.Mutex
	over bool
	// stop cancels the timer of the next check.
	stop func() bool
}

// next schedules the next check.
func (w *watch) next(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.stop = w.tokens.opts.After(after, w.check)
	}
}

// check ends the watch if the token is no longer valid. Otherwise it schedules the next check.
func (w *watch) check() {
	err := w.tokens.recheck(w.identity)
	if errors.Is(err, ErrUnauthenticated) {
		if w.finish() {
			go w.ended(err)
		}
		return
	}
	if err != nil {
		// The same cause makes requests fail, and these are logged as errors. Thousands of connections
		// would repeat the error, so it is logged for debugging only.
		w.tokens.opts.Log.Debug("cannot recheck the token of an open connection", "error", err)
	}
	w.next(min(watchEvery, w.identity.Expires.Sub(w.tokens.opts.Now())))
}

// finish marks the watch as ended, and reports whether it was active.
func (w *watch) finish() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	active := !w.over
	w.over = true
	return active
}

// end stops the watch without calling onInvalid.
func (w *watch) end() {
	if w.finish() {
		w.stop()
	}
}

// recheck verifies an identity as Authenticate would verify its token.
//
// It returns ErrUnauthenticated, or an error of Options.CustomerExists.
func (a *Authenticator) recheck(identity Identity) (err error) {
	defer func() {
		// An unrecovered panic in a timer's goroutine would end the server.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
			a.opts.Log.Error("rechecking the token of an open connection panicked", "error", fmt.Sprintf("%v\n%s", err, debug.Stack()))
		}
	}()
	s := identity.signature
	switch {
	case !a.opts.Now().Before(identity.Expires):
		return refused("it has expired")
	case !slices.ContainsFunc(a.keys.atHand(s.keyID, s.algorithm), s.isOf):
		return refused("its key is no longer in the JWKS")
	default:
		return a.customerExists(context.Background(), identity)
	}
}
