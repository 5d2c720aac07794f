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

// keyring has the keys of a JWKS at hand. They are read again in the background from time to time,
// and at need where a token names a key that is not among them; when they cannot be read, those at
// hand go on.
type keyring struct {
	source source
	log    *slog.Logger
	now    func() time.Time
	after  func(time.Duration, func()) (stop func() bool)

	// keys are replaced only by others, so that the pointer tells whether they are the same.
	keys atomic.Pointer[keyset]
	// tried is when the keys were last read, or could not be, in nanoseconds since 1970.
	tried atomic.Int64
	// reading lets all who need the keys now wait for one reading.
	reading singleflight.Group
}

// find returns the keys for a token. Anybody can name keys that do not exist, so the keys are read
// no more often than source.pause allows, however many tokens name some.
func (r *keyring) find(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, known := r.keys.Load().find(kid, algorithm)
	if known || r.lately() {
		return keys
	}
	// The reading belongs to all who wait for it, so none of them can end it; the source bounds its
	// time.
	_, _, _ = r.reading.Do("", func() (any, error) {
		if !r.lately() {
			r.reread(context.Background())
		}
		return nil, nil
	})
	return r.atHand(kid, algorithm)
}

// atHand returns the keys for a token among those that were read last.
func (r *keyring) atHand(kid string, algorithm jose.SignatureAlgorithm) []any {
	keys, _ := r.keys.Load().find(kid, algorithm)
	return keys
}

// lately reports whether the keys were read a moment ago.
func (r *keyring) lately() bool { return r.now().Sub(time.Unix(0, r.tried.Load())) < r.source.pause }

// follow reads the keys again and again until ctx ends.
func (r *keyring) follow(ctx context.Context) {
	r.after(r.source.every, func() {
		if ctx.Err() != nil {
			return
		}
		_, _, _ = r.reading.Do("", func() (any, error) { r.reread(ctx); return nil, nil })
		r.follow(ctx)
	})
}

// reread reads the keys again, and tells the log what came of it.
func (r *keyring) reread(ctx context.Context) {
	before := r.keys.Load()
	switch err := r.refresh(ctx); {
	case ctx.Err() != nil:
	case err != nil:
		r.log.WarnContext(ctx, "the keys of tokens cannot be read, those at hand go on", "error", err)
	case before != r.keys.Load():
		r.log.InfoContext(ctx, "the keys of tokens have changed", "keys", len(*r.keys.Load()))
	}
}

// refresh reads the keys.
//
// Errors: those of the source and of parseKeys.
func (r *keyring) refresh(ctx context.Context) (err error) {
	defer func() {
		// Nobody else would catch it in the background, and the keys at hand are as good as before.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
		r.tried.Store(r.now().UnixNano())
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
