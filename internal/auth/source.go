package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// source is where a JWKS is read.
type source struct {
	read func(context.Context) ([]byte, error)
	// every is how long keys are used before they are read again; pause is how much time at least
	// lies between two readings because of tokens that name unknown keys.
	every, pause time.Duration
}

// maxJWKS is how many bytes a JWKS can have. Those with certificates have some ten thousand.
const maxJWKS = 256 << 10

// fetchTimeout is how long a JWKS can take to arrive.
const fetchTimeout = 5 * time.Second

// newSource returns where a JWKS is read: a URL, or the name of a file.
//
// Errors: those of CheckJWKS.
func newSource(where string) (source, error) {
	if err := CheckJWKS(where); err != nil {
		return source{}, err
	}
	if !isURL(where) {
		return source{read: func(context.Context) ([]byte, error) { return readFile(where) }, every: 10 * time.Second, pause: time.Second}, nil
	}
	client := newClient()
	return source{read: func(ctx context.Context) ([]byte, error) { return fetch(ctx, client, where) }, every: 30 * time.Second, pause: 10 * time.Second}, nil
}

func newClient() *http.Client {
	return &http.Client{
		Timeout: fetchTimeout,
		// Whoever could redirect could choose the keys; and the place would not be checked as this
		// one was.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func isURL(where string) bool { return strings.Contains(where, "://") }

// CheckJWKS reports whether a JWKS may be read from there: a file, or a URL that nobody on the way
// can change.
//
// Errors: one that says what to change.
func CheckJWKS(where string) error {
	if !isURL(where) {
		return nil
	}
	u, err := url.Parse(where)
	switch {
	case err != nil || u.Host == "":
		return errors.New("is no URL: set it to one such as https://id.example.com/.well-known/jwks.json, or to the name of a file")
	case u.User != nil:
		return errors.New("has a user in its URL: leave it out, keys for checking tokens are public")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return errors.New("is no https URL, so that others could put their keys there: use https (http is for this machine only), or a file")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readFile reads a JWKS from a file.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f)
}

// fetch reads a JWKS from a URL.
func fetch(ctx context.Context, client *http.Client, from string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	answer, err := client.Do(r)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // it would repeat the URL, whose query may be a secret
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the JWKS from %s: %w", r.URL.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		hint := ""
		if answer.StatusCode/100 == 3 {
			hint = ": redirects are not followed, name the place itself"
		}
		return nil, fmt.Errorf("fetch the JWKS from %s: the answer is %s%s", r.URL.Host, answer.Status, hint)
	}
	text, err := bounded(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("fetch the JWKS from %s: %w", r.URL.Host, err)
	}
	return text, nil
}

// bounded reads a text that is not too long for a JWKS.
func bounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxJWKS+1))
	if err == nil && len(text) > maxJWKS {
		return nil, fmt.Errorf("it is longer than %d bytes, which no JWKS should be", maxJWKS)
	}
	return text, err
}
