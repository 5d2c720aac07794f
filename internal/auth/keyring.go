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

// keyring holds the keys of a JWKS in memory. It refreshes them periodically in the background, and
// when a token names an unknown key. If a refresh fails, it keeps the previous keys.
type keyring struct {
	source    source
	log       *slog.Logger
	now       func() time.Time
	afterFunc func(time.Duration, func()) (stop func() bool)

	// keys are replaced only when they differ, so comparing pointers shows whether they changed.
	keys atomic.Pointer[keyset]
	// lastAttempt is the time of the last attempt to read the keys, in nanoseconds since 1970.
	lastAttempt atomic.Int64
	// refreshes merges concurrent refreshes.
	refreshes singleflight.Group
}

// find returns the keys for a token. Any caller can send tokens with unknown key IDs. So
// source.minInterval limits how often such tokens cause a refresh.
func (r *keyring) find(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, known := r.keys.Load().find(kid, algorithm)
	if known || r.recentlyRead() {
		return keys
	}
	// All waiting requests share the refresh, so none of them can cancel it. The source has a timeout.
	_, _, _ = r.refreshes.Do("", func() (any, error) {
		if !r.recentlyRead() {
			r.refreshAndLog(context.Background())
		}
		return nil, nil
	})
	return r.cached(kid, algorithm)
}

// cached returns the keys for a token without a refresh.
func (r *keyring) cached(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, _ := r.keys.Load().find(kid, algorithm)
	return keys
}

// recentlyRead reports whether the last attempt to read the keys was within source.minInterval.
func (r *keyring) recentlyRead() bool {
	return r.now().Sub(time.Unix(0, r.lastAttempt.Load())) < r.source.minInterval
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

// refresh reads and stores the keys. It returns the errors of the source and of parseKeys.
func (r *keyring) refresh(ctx context.Context) (err error) {
	defer func() {
		// In a background goroutine, an unrecovered panic would end the server.
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
