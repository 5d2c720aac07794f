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

// keyring stores the keys of a JWKS in memory. It reads the JWKS again periodically, and when a
// token has an unknown key ID. If a refresh fails, the previous keys remain in use.
type keyring struct {
	source    jwksSource
	log       *slog.Logger
	now       func() time.Time
	afterFunc func(time.Duration, func()) (stop func() bool)
	// If refreshOnUse is true, the keyring does not refresh the keys periodically. Instead, find
	// refreshes keys that are older than source.refreshInterval.
	refreshOnUse bool

	// keys points to the current keys. refresh replaces the pointer only if the new keys differ from
	// the current keys. A new pointer therefore means that the keys have changed.
	keys atomic.Pointer[keyset]
	// lastAttempt is the time of the last attempt to read the keys, in nanoseconds since 1970.
	lastAttempt atomic.Int64
	// refreshes merges concurrent refreshes into one refresh.
	refreshes singleflight.Group
}

// find returns the keys that can verify a token. If the key ID is unknown, find first refreshes the
// keys. If refreshOnUse is true, find also refreshes keys that are older than
// source.refreshInterval.
func (r *keyring) find(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, known := r.keys.Load().find(kid, algorithm)
	fresh := !r.refreshOnUse || r.wasReadWithin(r.source.refreshInterval)
	// Any client can send unknown key IDs, so minInterval limits how often the keys are refreshed.
	if known && fresh || r.wasReadWithin(r.source.minInterval) {
		return keys
	}
	// Several requests can wait for this refresh, so the refresh must continue if the context of one
	// request ends. The HTTP client that reads the JWKS has its own timeout.
	_, _, _ = r.refreshes.Do("", func() (any, error) {
		if !r.wasReadWithin(r.source.minInterval) {
			r.refreshAndLog(context.Background())
		}
		return nil, nil
	})
	return r.cached(kid, algorithm)
}

// cached returns the keys that can verify a token. It does not refresh the keys.
func (r *keyring) cached(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, _ := r.keys.Load().find(kid, algorithm)
	return keys
}

// wasReadWithin reports whether the last attempt to read the keys was less than d ago. It compares
// wall-clock times, because the monotonic clock can stop while AWS Lambda freezes the process.
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

// refreshAndLog refreshes the keys. It logs a message if the keys have changed or the refresh
// fails.
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

// refresh reads the JWKS and stores its keys if they have changed. It returns an error if the JWKS
// cannot be read or parseKeys rejects it.
func (r *keyring) refresh(ctx context.Context) (err error) {
	defer func() {
		// Recover from a panic, because a panic in a background goroutine would end the process.
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
