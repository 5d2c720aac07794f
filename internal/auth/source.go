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

// jwksSource reads a JWKS from a URL or a file.
type jwksSource struct {
	read func(context.Context) ([]byte, error)
	// refreshInterval is the interval between periodic reads.
	refreshInterval time.Duration
	// minInterval limits the reads for unknown key IDs. An unknown key ID causes a read only if the
	// last read was at least minInterval ago.
	minInterval time.Duration
}

// maxJWKSBytes is the maximum length of a JWKS in bytes. Even a JWKS with certificates usually has
// only about ten thousand bytes.
const maxJWKSBytes = 256 << 10

// fetchTimeout is the timeout for fetching a JWKS from a URL.
const fetchTimeout = 5 * time.Second

// FilePollInterval is the interval between two reads of a file that contains keys or a secret.
const FilePollInterval = 10 * time.Second

// newJWKSSource returns the source for a URL or a file name. If the location is invalid, it returns
// the error of CheckJWKSLocation.
func newJWKSSource(location string) (jwksSource, error) {
	if err := CheckJWKSLocation(location); err != nil {
		return jwksSource{}, err
	}
	if !isURL(location) {
		return jwksSource{read: func(context.Context) ([]byte, error) { return readJWKSFile(location) }, refreshInterval: FilePollInterval, minInterval: time.Second}, nil
	}
	client := newHTTPClient()
	return jwksSource{read: func(ctx context.Context) ([]byte, error) { return fetchJWKS(ctx, client, location) }, refreshInterval: 30 * time.Second, minInterval: 10 * time.Second}, nil
}

func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout: fetchTimeout,
		// Do not follow redirects, because CheckJWKSLocation has not validated the target of a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func isURL(location string) bool { return strings.Contains(location, "://") }

// CheckJWKSLocation validates the location of a JWKS: a file name, an https URL, or an http URL of
// this machine.
//
// The error does not contain the location, because a URL can contain a password.
func CheckJWKSLocation(location string) error {
	if !isURL(location) {
		return nil
	}
	u, err := url.Parse(location)
	switch {
	case err != nil || u.Host == "":
		return errors.New("is not a valid URL: set it to a URL such as https://id.example.com/.well-known/jwks.json, or to a file name")
	case u.User != nil:
		return errors.New("has a user name in its URL: remove the user name, because public keys need no credentials")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("is not an https URL, so an attacker could replace the keys: use an https URL or a file; http is allowed only for this machine")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readJWKSFile reads a JWKS from a file.
func readJWKSFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readJWKS(f)
}

// fetchJWKS reads a JWKS from a URL.
func fetchJWKS(ctx context.Context, client *http.Client, location string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := client.Do(r)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // omit the url.Error, because it contains the URL, which may contain a secret
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the JWKS from %s: %w", r.URL.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		hint := ""
		if response.StatusCode/100 == 3 {
			hint = ": redirects are not followed, so set the final URL"
		}
		return nil, fmt.Errorf("fetch the JWKS from %s: the response status is %s%s", r.URL.Host, response.Status, hint)
	}
	text, err := readJWKS(response.Body)
	if err != nil {
		return nil, fmt.Errorf("fetch the JWKS from %s: %w", r.URL.Host, err)
	}
	return text, nil
}

// readJWKS reads a JWKS from r. If the JWKS exceeds maxJWKSBytes, readJWKS returns an error.
func readJWKS(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJWKSBytes+1))
	if err == nil && len(text) > maxJWKSBytes {
		return nil, fmt.Errorf("the JWKS exceeds %d bytes", maxJWKSBytes)
	}
	return text, err
}
