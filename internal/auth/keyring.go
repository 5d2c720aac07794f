package auth

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

// keyring stores the keys of a JWKS in memory. It refreshes them periodically, and when a token has
// an unknown key ID. If a refresh fails, the previous keys remain in use.
type keyring struct {
	source    jwksSource
	log       *slog.Logger
	now       func() time.Time
	afterFunc func(time.Duration, func()) (stop func() bool)
	// If refreshOnUse is true, there are no periodic refreshes. Instead, find refreshes keys that are
	// older than source.refreshInterval.
	refreshOnUse bool

	// keys is replaced only if the new keys differ. So a changed pointer means that the keys have
	// changed.
	keys atomic.Pointer[keyset]
	// lastAttempt is the time of the last attempt to read the keys, in nanoseconds since 1970.
	lastAttempt atomic.Int64
	// refreshes merges concurrent refreshes.
	refreshes singleflight.Group
}

// find returns the keys that can verify a token. It first refreshes the keys if the key ID is
// unknown, or if refreshOnUse is set and the keys are too old. Any client can send unknown key IDs,
// so source.minInterval limits how often find refreshes the keys.
func (r *keyring) find(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, known := r.keys.Load().find(kid, algorithm)
	fresh := !r.refreshOnUse || r.wasReadWithin(r.source.refreshInterval)
	if known && fresh || r.wasReadWithin(r.source.minInterval) {
		return keys
	}
	// All waiting requests share this refresh, so it does not use the context of a single request. The
	// source has its own timeout.
	_, _, _ = r.refreshes.Do("", func() (any, error) {
		if !r.wasReadWithin(r.source.minInterval) {
			r.refreshAndLog(context.Background())
		}
		return nil, nil
	})
	return r.cached(kid, algorithm)
}

// cached returns the keys for a token. It does not refresh the keys.
func (r *keyring) cached(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, _ := r.keys.Load().find(kid, algorithm)
	return keys
}

// wasReadWithin reports whether the last attempt to read the keys was less than d ago. It compares
// times of the wall clock, because the monotonic clock can stop while the process is frozen.
func (r *keyring) wasReadWithin(d time.Duration) bool {
	return r.now().Sub(time.Unix(0, r.lastAttempt.Load())) < d
}

// refreshPeriodically refreshes the keys every source.refreshInterval until ctx ends.
func (r *keyring) refreshPeriodically(ctx context.Context) {
	r.afterFunc(r.source.refreshInterval, func() {
		if ctx.Err() != nil {
			return
		}
		_, _, _ = r.refreshes.Do("", func() (any, error) { r.refreshAndLog(ctx); return nil, nil })
		r.refreshPeriodically(ctx)
	})
}

// refreshAndLog refreshes the keys and logs changes and failures.
func (r *keyring) refreshAndLog(ctx context.Context) {
	before := r.keys.Load()
	switch err := r.refresh(ctx); {
	case ctx.Err() != nil:
	case err != nil:
		r.log.WarnContext(ctx, "cannot refresh the JWKS, so its previous keys remain in use", "error", err)
	case before != r.keys.Load():
		r.log.InfoContext(ctx, "the JWKS has changed", "keys", len(*r.keys.Load()))
	}
}

// refresh reads the keys and stores them if they have changed. It returns the errors of the source
// and of parseKeys.
func (r *keyring) refresh(ctx context.Context) (err error) {
	defer func() {
		// An unrecovered panic in a background goroutine would end the process.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
		r.lastAttempt.Store(r.now().UnixNano())
	}()
	text, err := r.source.read(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return err
	}
	if before := r.keys.Load(); before == nil || !reflect.DeepEqual(*before, keys) {
		r.keys.Store(&keys)
	}
	return nil
}
