package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// watchFixture is an Authenticator with its own clock, JWKS and log.
type watchFixture struct {
	*Authenticator
	t         *testing.T
	clock     *authtest.Clock
	publisher *publisher
	key       authtest.Key
	// lookup is the result of looking up a customer.
	lookup func() (bool, error)
	log    bytes.Buffer
	ended  chan error
}

func newWatchFixture(t *testing.T) *watchFixture {
	t.Helper()
	w := &watchFixture{
		t: t, clock: authtest.NewClock(time.Unix(1_000_000_000, 0)), publisher: newPublisher(t), key: authtest.NewKey(t, "first", "EdDSA"),
		lookup: func() (bool, error) { return true, nil }, ended: make(chan error, 10),
	}
	w.publisher.publish(authtest.JWKS(t, w.key.JWK(t, nil)))
	var err error
	w.Authenticator, err = New(t.Context(), Options{
		JWKS: w.publisher.url, Issuer: authtest.Issuer, Audience: authtest.Audience, RoleClaim: "role", CustomerClaim: "customer_id",
		CustomerExists: func(context.Context, commerce.CustomerID) (bool, error) { return w.lookup() },
		Log:            slog.New(slog.NewTextHandler(&w.log, nil)), Now: w.clock.Now, AfterFunc: w.clock.AfterFunc,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watchFixture) token(expires time.Duration) string {
	w.t.Helper()
	return w.key.Token(w.t, authtest.Claims(w.clock.Now(), authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "exp": w.clock.Now().Add(expires).Unix()}), nil)
}

// open watches a connection whose token expires after the given time.
func (w *watchFixture) open(expires time.Duration) (stop func()) {
	w.t.Helper()
	identity, err := w.Authenticate(w.t.Context(), w.token(expires))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.Watch(identity, func(err error) { w.ended <- err })
}

// active returns the number of active watches. One timer is for the refresh of the keys.
func (w *watchFixture) active() int { return w.clock.PendingTimers() - 1 }

// A watch ends once, within a minute after a key or a customer is removed.
func TestWatchesEndWithinAMinute(t *testing.T) {
	for name, revoke := range map[string]func(*watchFixture){
		"another key": func(w *watchFixture) {
			w.publisher.publish(authtest.JWKS(w.t, authtest.NewKey(w.t, "second", "EdDSA").JWK(w.t, nil)))
		},
		"another key under its ID": func(w *watchFixture) {
			w.publisher.publish(authtest.JWKS(w.t, authtest.NewKey(w.t, w.key.ID, "EdDSA").JWK(w.t, nil)))
		},
		"no customer": func(w *watchFixture) { w.lookup = func() (bool, error) { return false, nil } },
	} {
		for second := range 46 { // the longest cycle is a lookup's 30 and a check's 15 seconds
			after := time.Duration(second) * time.Second
			for when, begin := range map[string]func(w *watchFixture){
				"after the connection was opened": func(w *watchFixture) {
					w.clock.Advance(time.Duration(second%7) * time.Second)
					w.open(time.Hour)
					w.clock.Advance(after)
					revoke(w)
					w.clock.Advance(time.Minute)
				},
				"between a request and the connection": func(w *watchFixture) {
					w.open(time.Hour)() // a request ends immediately
					revoke(w)
					w.clock.Advance(after)
					if _, err := w.Authenticate(t.Context(), w.token(time.Hour)); err != nil {
						w.ended <- err // the new connection is rejected
						return
					}
					w.open(time.Hour)
					w.clock.Advance(time.Minute - after)
				},
			} {
				w := newWatchFixture(t)
				begin(w)
				if n := w.active(); n != 0 {
					t.Fatalf("%s %s: the watch is still active one minute after second %d", name, when, second)
				}
				if err := <-w.ended; !errors.Is(err, ErrUnauthenticated) {
					t.Fatalf("%s %s: the watch ended with %v, want ErrUnauthenticated", name, when, err)
				}
				w.clock.Advance(20 * time.Second)
				if len(w.ended) > 0 {
					t.Fatalf("%s %s: the watch ended a second time, with %v", name, when, <-w.ended)
				}
			}
		}
	}
}

// A watch ends when the token expires, without waiting for the next check.
func TestWatchesEndWithTheToken(t *testing.T) {
	w := newWatchFixture(t)
	w.open(100 * time.Second)
	w.clock.Advance(99 * time.Second)
	if n := w.active(); n != 1 {
		t.Fatalf("%d watches are active a second before the end", n)
	}
	w.clock.Advance(time.Second)
	if n := w.active(); n != 0 {
		t.Fatalf("%d watches are active at the end", n)
	}
	if err := <-w.ended; !errors.Is(err, ErrUnauthenticated) || !strings.Contains(err.Error(), "expired") {
		t.Error(err)
	}
}

// A watch continues while customers or keys cannot be read, and after a panic.
func TestWatchesContinueAfterErrors(t *testing.T) {
	w := newWatchFixture(t)
	stop := w.open(time.Hour)
	second := w.open(time.Hour)
	w.lookup = func() (bool, error) { return false, errors.New("down") }
	w.publisher.respondWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.clock.Advance(10 * time.Minute)
	w.lookup = func() (bool, error) { panic("a fault") }
	w.clock.Advance(time.Minute)
	if n := w.active(); n != 2 || len(w.ended) > 0 {
		t.Fatalf("after failed lookups, %d watches are active and %d have ended, want 2 and 0", n, len(w.ended))
	}
	if log := w.log.String(); !strings.Contains(log, "a fault") || strings.Contains(log, `"down"`) {
		t.Errorf("the log is %s", log)
	}
	w.lookup = func() (bool, error) { return true, nil }
	w.clock.Advance(time.Minute)
	stop()
	stop()
	if n := w.active(); n != 1 {
		t.Errorf("%d watches are active after one was stopped, want 1", n)
	}
	w.lookup = func() (bool, error) { return false, nil }
	w.clock.Advance(time.Minute)
	if n := w.active(); n != 0 {
		t.Fatalf("%d watches are active after the customer was deleted, want 0", n)
	}
	if err := <-w.ended; !errors.Is(err, ErrUnauthenticated) || len(w.ended) > 0 {
		t.Errorf("the watch ended with %v, and %d more watches have ended, want ErrUnauthenticated and 0", err, len(w.ended))
	}
	second()
}

// All connections of a customer share one lookup in 30 seconds.
func TestConnectionsShareLookups(t *testing.T) {
	w := newWatchFixture(t)
	lookups := 0
	w.lookup = func() (bool, error) { lookups++; return true, nil }
	for range 100 {
		t.Cleanup(w.open(time.Hour))
		w.clock.Advance(100 * time.Millisecond)
	}
	lookups = 0
	w.clock.Advance(10 * time.Minute)
	if lookups > 20 {
		t.Errorf("in ten minutes 100 connections made %d lookups, want 20 at most", lookups)
	}
	if n := w.active(); n != 100 {
		t.Errorf("%d watches are active, want 100", n)
	}
}

// A changed secret immediately invalidates tokens that are signed with the previous secret, and
// ends the connections of their callers.
func TestChangedSecret(t *testing.T) {
	clock := authtest.NewClock(time.Unix(1_000_000_000, 0))
	secrets := [][]byte{[]byte(strings.Repeat("1", MinSecretBytes)), []byte(strings.Repeat("2", MinSecretBytes))}
	a, err := New(t.Context(), Options{
		Secret: secrets[0], Issuer: authtest.Issuer, Audience: authtest.Audience, RoleClaim: "role", CustomerClaim: "customer_id",
		Log: slog.New(slog.DiscardHandler), Now: clock.Now, AfterFunc: clock.AfterFunc,
	})
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, s := range secrets {
		tokens = append(tokens, authtest.Key{Algorithm: "HS256", Private: s}.Token(t, authtest.Claims(clock.Now(), authtest.Object{"role": "ADMIN"}), nil))
	}
	identity, err := a.Authenticate(t.Context(), tokens[0])
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	defer a.Watch(identity, func(err error) { ended <- err })()
	clock.Advance(recheckInterval)
	a.ChangeSecret(secrets[1])
	for i, want := range []error{ErrInvalidSignature, nil} {
		if _, err := a.Authenticate(t.Context(), tokens[i]); !errors.Is(err, want) {
			t.Errorf("token %d: %v, want %v", i+1, err, want)
		}
	}
	clock.Advance(recheckInterval)
	if n := clock.PendingTimers(); n > 0 {
		t.Fatalf("%d watches continue", n)
	}
	if err := <-ended; !errors.Is(err, ErrUnauthenticated) || !strings.Contains(err.Error(), "no longer in use") {
		t.Errorf("the watch ends with %v", err)
	}
}
