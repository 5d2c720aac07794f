package auth

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// publisher serves a JWKS and counts the requests.
type publisher struct {
	mu       sync.Mutex
	answer   http.HandlerFunc
	requests atomic.Int64
	url      string
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	s.Config.SetKeepAlivesEnabled(false) // the client would repeat a request after a broken reused connection
	p.url = s.URL + "/jwks.json"
	return p
}

func (p *publisher) respondWith(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *publisher) publish(jwks []byte) {
	p.respondWith(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(jwks) })
}

// clock is a manual clock.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// newTestKeyring returns a keyring for a location, with its clock and its log.
func newTestKeyring(t *testing.T, location string) (*keyring, *clock, *bytes.Buffer) {
	t.Helper()
	src, err := newJWKSSource(location)
	if err != nil {
		t.Fatal(err)
	}
	c, log := &clock{}, &bytes.Buffer{}
	c.advance(1000 * time.Hour)
	return &keyring{source: src, log: slog.New(slog.NewTextHandler(log, nil)), now: c.now}, c, log
}

// With refreshOnUse, a key that the issuer has withdrawn is rejected after refreshInterval,
// although the keys are not refreshed in the background.
func TestRefreshOnUse(t *testing.T) {
	published := newPublisher(t)
	published.publish(authtest.JWKS(t, authtest.NewKey(t, "first", "EdDSA").JWK(t, nil)))
	r, clock, _ := newTestKeyring(t, published.url)
	r.refreshOnUse = true
	if err := r.refresh(t.Context()); err != nil || !hasKey(r, "first") {
		t.Fatalf("the key is missing: %v", err)
	}
	published.publish(authtest.JWKS(t, authtest.NewKey(t, "second", "EdDSA").JWK(t, nil)))
	clock.advance(r.source.refreshInterval - 1)
	if !hasKey(r, "first") || published.requests.Load() != 1 {
		t.Errorf("fresh keys were read %d times, want once", published.requests.Load())
	}
	clock.advance(1)
	if hasKey(r, "first") || published.requests.Load() != 2 {
		t.Errorf("a withdrawn key is still accepted, after %d reads of the keys", published.requests.Load())
	}
}

func hasKey(r *keyring, kid string) bool {
	return len(r.find(kid, jose.EdDSA)) == 1
}

func checkRequests(t *testing.T, p *publisher, want int64, when string) {
	t.Helper()
	if got := p.requests.Load(); got != want {
		t.Errorf("%s the keys were read %d times, want %d", when, got, want)
	}
}

// A new key is found with its first token. Tokens with unknown key IDs cause at most one read in
// ten seconds.
func TestRotation(t *testing.T) {
	p := newPublisher(t)
	first, second := authtest.NewKey(t, "first", "EdDSA"), authtest.NewKey(t, "second", "EdDSA")
	p.publish(authtest.JWKS(t, first.JWK(t, nil)))
	r, c, log := newTestKeyring(t, p.url)
	if err := r.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.advance(31 * time.Second)
	p.publish(authtest.JWKS(t, second.JWK(t, nil), first.JWK(t, nil)))
	if !hasKey(r, "first") {
		t.Error("the first key is not found")
	}
	checkRequests(t, p, 1, "by a known key")
	if !hasKey(r, "second") {
		t.Error("the second key is not found")
	}
	checkRequests(t, p, 2, "by a new key")
	for i := range 1000 {
		if hasKey(r, fmt.Sprintf("../%d", i)) {
			t.Fatal("find returns a key for an unknown key ID")
		}
	}
	checkRequests(t, p, 2, "by unknown keys at once")
	c.advance(9 * time.Second)
	hasKey(r, "unknown")
	checkRequests(t, p, 2, "by unknown keys soon after")
	c.advance(2 * time.Second)
	for range 1000 {
		hasKey(r, "unknown")
	}
	checkRequests(t, p, 3, "by unknown keys later")

	// A removed key is gone after the next read.
	p.publish(authtest.JWKS(t, second.JWK(t, nil)))
	if !hasKey(r, "first") {
		t.Error("the removed key is missing before the next refresh")
	}
	r.refreshAndLog(t.Context())
	c.advance(31 * time.Second)
	if hasKey(r, "first") {
		t.Error("the removed key is still found after the refresh")
	}
	if n := strings.Count(log.String(), "has changed"); n != 2 {
		t.Errorf("the log has %d changes, want 2: %s", n, log)
	}
}

// If a read fails or returns no keys, the previous keys remain.
func TestFailedRefreshKeepsKeys(t *testing.T) {
	huge := append([]byte(`{"keys":[],"x":"`), bytes.Repeat([]byte("x"), maxJWKSBytes)...)
	for name, answer := range map[string]http.HandlerFunc{
		"down":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"gone":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"empty":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"no JWKS": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"huge":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(huge) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other.json", http.StatusFound)
		},
		"huge when unpacked": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 20 {
				_, _ = z.Write(huge)
			}
			_ = z.Close()
		},
	} {
		p := newPublisher(t)
		p.publish(authtest.JWKS(t, authtest.NewKey(t, "first", "EdDSA").JWK(t, nil)))
		r, c, log := newTestKeyring(t, p.url)
		if err := r.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.respondWith(answer)
		r.refreshAndLog(t.Context())
		c.advance(time.Hour)
		if hasKey(r, "second") || !hasKey(r, "first") {
			t.Errorf("%s: the failed refresh removed the previous keys", name)
		}
		checkRequests(t, p, 3, name)
		for range 100 {
			hasKey(r, "second")
		}
		checkRequests(t, p, 3, name)
		if n := strings.Count(log.String(), "previous keys remain in use"); n != 2 || strings.Contains(log.String(), "jwks.json") {
			t.Errorf("%s: the log is %s", name, log)
		}
		if err := r.refresh(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Concurrent requests for a new key share one read, even if the read is slow.
func TestConcurrentRefreshesShareOneRead(t *testing.T) {
	p := newPublisher(t)
	first, second := authtest.NewKey(t, "first", "EdDSA"), authtest.NewKey(t, "second", "EdDSA")
	p.publish(authtest.JWKS(t, first.JWK(t, nil)))
	r, c, _ := newTestKeyring(t, p.url)
	if err := r.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	begun, resume := make(chan struct{}), make(chan struct{})
	p.respondWith(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-resume
		_, _ = w.Write(authtest.JWKS(t, second.JWK(t, nil)))
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if !hasKey(r, "second") {
			t.Error("the first caller does not find the key")
		}
	})
	<-begun
	for range 20 {
		wg.Go(func() {
			if !hasKey(r, "second") {
				t.Error("a later caller does not find the key")
			}
		})
	}
	if !hasKey(r, "first") {
		t.Error("a known key is not found during the read")
	}
	close(resume)
	wg.Wait()
	checkRequests(t, p, 2, "by all")
}

// A fetch times out after five seconds.
func TestFetchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newHTTPClient()
		client.Transport = hangingTransport{}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		begun := time.Now()
		_, err := fetchJWKS(ctx, client, "https://id.example/jwks.json?key=hidden")
		if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "id.example") || time.Since(begun) != fetchTimeout {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
	from, err := newJWKSSource("https://id.example/jwks.json")
	if err != nil || from.refreshInterval != 30*time.Second || from.minInterval != 10*time.Second {
		t.Errorf("the source has a refresh interval of %s and a minimum interval of %s, %v", from.refreshInterval, from.minInterval, err)
	}
}

// hangingTransport is a transport that never responds.
type hangingTransport struct{}

func (hangingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// endlessReader is an endless reader that counts the bytes read.
type endlessReader struct{ read int }

func (e *endlessReader) Read(b []byte) (int, error) {
	if e.read += len(b); e.read > 100*maxJWKSBytes {
		return 0, errors.New("the limit is ignored")
	}
	return len(b), nil
}

func TestEndlessJWKS(t *testing.T) {
	e := &endlessReader{}
	if _, err := readJWKS(e); err == nil || !strings.Contains(err.Error(), "exceeds") || e.read > 4*maxJWKSBytes {
		t.Errorf("%d bytes are read, %v", e.read, err)
	}
}

// The background refresh runs at its interval until ctx ends. A panic does not stop it.
func TestPeriodicRefresh(t *testing.T) {
	jwks := authtest.JWKS(t, authtest.NewKey(t, "first", "EdDSA").JWK(t, nil))
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		after := func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
		r := &keyring{log: slog.New(slog.DiscardHandler), now: time.Now, afterFunc: after, source: jwksSource{refreshInterval: time.Minute, read: func(context.Context) ([]byte, error) {
			if reads++; reads == 2 {
				panic("a fault")
			}
			return jwks, nil
		}}}
		ctx, stop := context.WithCancel(t.Context())
		if err := r.refresh(ctx); err != nil {
			t.Fatal(err)
		}
		r.refreshPeriodically(ctx)
		time.Sleep(10*time.Minute + time.Second) // by the fake clock of synctest
		synctest.Wait()
		if reads != 11 {
			t.Errorf("in ten minutes the keys were read %d times, want 11", reads)
		}
		stop()
		time.Sleep(10 * time.Minute)
		if reads != 11 {
			t.Errorf("the keys were read %d times after ctx ended, want 11", reads)
		}
	})
}

// A changed file is read again.
func TestChangedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jwks.json")
	write := func(id string) {
		if err := os.WriteFile(name, authtest.JWKS(t, authtest.NewKey(t, id, "EdDSA").JWK(t, nil)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	r, c, _ := newTestKeyring(t, name)
	if err := r.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	write("second")
	if hasKey(r, "second") {
		t.Error("the file was read again within the minimum interval of one second")
	}
	c.advance(time.Second)
	if !hasKey(r, "second") || hasKey(r, "first") {
		t.Error("the file was not read again after the minimum interval")
	}
	if r.source.refreshInterval != 10*time.Second {
		t.Errorf("the refresh interval of the file is %s, want 10s", r.source.refreshInterval)
	}
}

// New fails if there are no keys, and its error describes why.
func TestNewFailsWithoutKeys(t *testing.T) {
	p := newPublisher(t)
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		problem string
	}{
		"down": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "404 Not Found"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://other.example/", http.StatusMovedPermanently)
		}, "redirects are not followed"},
		"no keys":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, "not a JWKS"},
		"an empty set": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys": []}`) }, "the JWKS has no keys"},
	} {
		p.respondWith(c.answer)
		_, err := New(t.Context(), Options{JWKS: p.url, Issuer: "i", Audience: "a", RoleClaim: "r", CustomerClaim: "c", Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want an error with %s", name, err, c.problem)
		}
	}
}

// A customer is looked up once in 30 seconds for all requests. Errors are not cached.
func TestCustomers(t *testing.T) {
	c := &clock{}
	var lookups []commerce.CustomerID
	down := errors.New("down")
	answers := map[commerce.CustomerID]error{"here": nil, "down": down}
	cache := newCustomerCache(func(ctx context.Context, id commerce.CustomerID) (bool, error) {
		if _, bounded := ctx.Deadline(); !bounded || ctx.Err() != nil {
			t.Errorf("the lookup of %s has no deadline, or has ended: %v", id, ctx.Err())
		}
		lookups = append(lookups, id)
		err, exists := answers[id]
		return exists && err == nil, err
	}, c.now)
	canceled, stop := context.WithCancel(t.Context())
	stop() // a canceled caller does not fail the lookup of others
	check := func(id commerce.CustomerID, want bool, wantErr error, times int) {
		t.Helper()
		lookups = nil
		for range 3 {
			if exists, err := cache.exists(canceled, id); exists != want || !errors.Is(err, wantErr) {
				t.Errorf("customer %s: exists returns %t, %v, want %t, %v", id, exists, err, want, wantErr)
			}
		}
		if len(lookups) != times {
			t.Errorf("%s is looked up %d times, want %d", id, len(lookups), times)
		}
	}
	check("here", true, nil, 1)
	check("missing", false, nil, 1)
	check("down", false, down, 3)
	c.advance(5 * time.Second)
	check("here", true, nil, 0)
	check("missing", false, nil, 1)
	answers["missing"], answers["down"] = nil, nil
	c.advance(5 * time.Second)
	check("missing", true, nil, 1)
	check("down", true, nil, 1)
	delete(answers, "here")
	c.advance(19 * time.Second)
	check("here", true, nil, 0)
	c.advance(time.Second)
	check("here", false, nil, 1)
	for i := range 2 * maxCachedCustomers {
		_, _ = cache.exists(canceled, commerce.CustomerID(fmt.Sprint(i)))
	}
	if n := cache.cache.Len(); n != maxCachedCustomers {
		t.Errorf("%d customers are cached, want %d", n, maxCachedCustomers)
	}
}

// Verifying a signature waits for a slot until the request is canceled. A token that was verified
// before needs no slot until it expires or its key changes. So forged tokens, which occupy the
// slots, do not lock out other callers.
func TestVerificationsWaitForASlot(t *testing.T) {
	first, second := authtest.NewKey(t, "first", "EdDSA"), authtest.NewKey(t, "second", "EdDSA")
	p := newPublisher(t)
	p.publish(authtest.JWKS(t, first.JWK(t, nil), second.JWK(t, nil)))
	c := &clock{}
	c.advance(1000 * time.Hour)
	a, err := New(t.Context(), Options{JWKS: p.url, Issuer: authtest.Issuer, Audience: authtest.Audience, RoleClaim: "role", CustomerClaim: "customer_id", Log: slog.New(slog.DiscardHandler), Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	canceled, stop := context.WithCancel(t.Context())
	stop()
	known, unknown := first.Token(t, authtest.Claims(c.now(), nil), nil), second.Token(t, authtest.Claims(c.now(), nil), nil)
	check := func(when, token string, want error) {
		t.Helper()
		ctx := t.Context()
		if errors.Is(want, context.Canceled) {
			ctx = canceled // otherwise it would wait forever
		}
		if _, err := a.Authenticate(ctx, token); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	check("with a free slot", known, nil)
	pool, others := a.opts.Verifications, admission.Caller{Key: "others"}
	occupy := func() {
		t.Helper()
		if err := pool.Acquire(canceled, others, pool.Size); err != nil {
			t.Fatal(err)
		}
	}
	occupy()
	check("a verified token without a free slot", known, nil)
	check("a new token without a free slot", unknown, context.Canceled)
	check("a verified token with another signature", known[:len(known)-10]+"AAAAAAAAAA", context.Canceled)
	ring := a.keys.(*keyring)
	ring.refreshAndLog(t.Context())
	check("a verified token when the keys were read again", known, nil)
	p.publish(authtest.JWKS(t, first.JWK(t, nil)))
	ring.refreshAndLog(t.Context())
	check("a verified token when another key is gone", known, nil)
	p.publish(authtest.JWKS(t, authtest.NewKey(t, "first", "EdDSA").JWK(t, nil)))
	ring.refreshAndLog(t.Context())
	check("a verified token when its key has another value", known, context.Canceled)
	p.publish(authtest.JWKS(t, second.JWK(t, nil)))
	ring.refreshAndLog(t.Context())
	check("a verified token of a key that is gone", known, ErrUnauthenticated)
	p.publish(authtest.JWKS(t, first.JWK(t, nil), second.JWK(t, nil)))
	ring.refreshAndLog(t.Context())
	pool.Release(others, pool.Size)
	check("when its key is back", known, nil)
	occupy()
	c.advance(2 * time.Hour)
	check("a verified token that has expired", known, ErrUnauthenticated)
}
