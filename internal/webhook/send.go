package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ordergraph/ordergraph/internal/version"
)

// ContentType is the content type of all requests: an event of CloudEvents in JSON.
const ContentType = "application/cloudevents+json; charset=utf-8"

// Limits of a request.
const (
	defaultTimeout    = 10 * time.Second
	maxResponseHeader = 16 << 10
	maxResponseBody   = 4 << 10
	maxRetryAfter     = 24 * time.Hour
	maxConnsPerHost   = 32
	maxIdlePerHost    = 8
	maxIdle           = 256
	idleTimeout       = 30 * time.Second
)

// SenderOptions configures a Sender.
type SenderOptions struct {
	// AllowedHosts are host names or IPv4 addresses, each with or without a port. They may have
	// private addresses, any port, and URLs that begin with http.
	AllowedHosts []string
	// Timeout is the time for one request, from the look-up of the host to the end of the response.
	// The default is 10 seconds.
	Timeout time.Duration
	// RootCAs verify the certificates of receivers. The default is the roots of the system.
	RootCAs *x509.CertPool
	// Resolver looks up host names. The default is net.DefaultResolver.
	Resolver *net.Resolver
	// Dial replaces all connections, also to addresses that are otherwise refused. Only tests set it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Sender sends requests to webhooks. It connects only to public addresses and to allowed hosts.
// Concurrent calls of its methods are safe. Each host has at most 32 connections. More requests wait
// for a connection within their timeout, so the caller limits the number of concurrent requests.
type Sender struct {
	transport *http.Transport
	guard     *ssrf.Guardian
	allowed   map[string]bool
	timeout   time.Duration
	userAgent string
}

// NewSender returns a Sender. The caller must close it.
func NewSender(opts SenderOptions) *Sender {
	s := &Sender{guard: ssrf.New(ssrf.WithAnyPort()), allowed: map[string]bool{}, timeout: cmp.Or(opts.Timeout, defaultTimeout), userAgent: "Ordergraph/" + version.Get().Version}
	for _, host := range opts.AllowedHosts {
		s.allowed[strings.ToLower(host)] = true
	}
	// A dial and a TLS handshake can outlive their request, so they have their own timeouts.
	direct := &net.Dialer{Timeout: s.timeout, Resolver: opts.Resolver}
	// Control receives the address after the look-up of the name, immediately before each connection.
	guarded := &net.Dialer{Timeout: s.timeout, Resolver: opts.Resolver, Control: s.guard.Safe}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && s.isAllowed(host, port) {
			return direct.DialContext(ctx, network, address)
		}
		return guarded.DialContext(ctx, network, address)
	}
	if opts.Dial != nil {
		dial = opts.Dial
	}
	s.transport = &http.Transport{
		Proxy:                  nil, // a proxy would connect to addresses that the guard refuses
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.RootCAs},
		TLSHandshakeTimeout:    s.timeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponseHeader,
		MaxConnsPerHost:        maxConnsPerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxIdleConns:           maxIdle,
		IdleConnTimeout:        idleTimeout,
		// Connections of HTTP/2 that are lost without a notice are found by a ping.
		HTTP2: &http.HTTP2Config{SendPingTimeout: idleTimeout / 2, PingTimeout: idleTimeout / 6},
	}
	return s
}

// Close closes the connections that no request uses.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// isAllowed reports whether AllowedHosts contains the host, with or without the port.
func (s *Sender) isAllowed(host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return s.allowed[host] || s.allowed[net.JoinHostPort(host, port)]
}

// Message is one request to a webhook.
type Message struct {
	// ID is the ID of the event. All attempts to deliver an event have the same ID.
	ID string
	// URL is the URL of the webhook.
	URL string
	// Body is the event in JSON.
	Body []byte
	// Secrets are the secrets of the webhook, in base64 after "whsec_". The request has one signature
	// for each of them.
	Secrets []string
	// At is the time of the attempt. The signature covers it.
	At time.Time
}

// Outcome is the result of one request.
type Outcome struct {
	// Status is the status code of the response, or 0 without a response.
	Status int
	// RetryAfter is how long the receiver wants no further requests, at most 24 hours. It is set only
	// for the statuses 429 and 503.
	RetryAfter time.Duration
	// Err is nil if the receiver has accepted the event: with a complete response whose status is 2xx,
	// before the timeout and the end of the context.
	// Otherwise, it describes the problem, without secrets, bytes of the response, or the addresses of
	// the host. It wraps context.Canceled if the context of Send was canceled.
	Err error
}

// Gone reports whether the receiver wants no requests anymore.
func (o Outcome) Gone() bool { return o.Status == http.StatusGone }

// Send sends a message. It does not follow redirects.
func (s *Sender) Send(ctx context.Context, m Message) Outcome {
	// The settings may have changed since the webhook was created.
	if err := s.CheckURL(m.URL); err != nil {
		return Outcome{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := s.newRequest(ctx, m)
	if err != nil {
		return Outcome{Err: err}
	}
	// The transport follows no redirects, and keeps no cookies.
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return Outcome{Err: s.describe(err)}
	}
	defer response.Body.Close()
	o := Outcome{Status: response.StatusCode, Err: statusError(response)}
	if o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable {
		o.RetryAfter = retryAfter(response.Header.Get("Retry-After"), m.At)
	}
	// The body of a switched protocol does not end with the context.
	if o.Status != http.StatusSwitchingProtocols {
		// A connection can be used again after the whole body was read.
		if _, err := io.CopyN(io.Discard, response.Body, maxResponseBody); err != nil && !errors.Is(err, io.EOF) && o.Err == nil {
			o.Err = s.describe(err)
		}
	}
	// Many programs respond with the status 200 when the sender closes the connection.
	if err := ctx.Err(); err != nil && o.Err == nil {
		o.Err = s.describe(err)
	}
	return o
}

// newRequest returns the signed request.
func (s *Sender) newRequest(ctx context.Context, m Message) (*http.Request, error) {
	if len(m.Secrets) == 0 {
		return nil, errors.New("the webhook has no secret: rotate its secret")
	}
	signatures := make([]string, len(m.Secrets))
	for i, secret := range m.Secrets {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err == nil {
			signatures[i], err = signer.Sign(m.ID, m.At, m.Body)
		}
		if err != nil { // the error could contain the secret
			return nil, errors.New("a secret of the webhook is not in base64: rotate its secret")
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, errors.New("the URL of the webhook is invalid: change it")
	}
	request.Header.Set("Content-Type", ContentType)
	request.Header.Set("User-Agent", s.userAgent)
	request.Header.Set(standardwebhooks.HeaderWebhookID, m.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(m.At.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	// Without a value, this header is not sent. It lets the transport repeat the request if the
	// receiver has closed an idle connection at the same time.
	request.Header["Idempotency-Key"] = []string{}
	return request, nil
}

// statusError returns nil if the status of the response is 2xx.
func statusError(response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= 200 && status <= 299:
		return nil
	case status >= 300 && status <= 399:
		if location, err := response.Location(); err == nil && len(location.Host) <= maxHost {
			return fmt.Errorf("the receiver responded with status %d and redirects to the host %q: change the URL of the webhook to the new location", status, location.Host)
		}
	}
	return fmt.Errorf("the receiver responded with status %d", status)
}

// retryAfter returns the duration in a header Retry-After, which contains seconds or a time.
func retryAfter(header string, now time.Time) time.Duration {
	d := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		d = time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// describe returns an error that an admin can read. It repeats no text of err, because err could
// contain bytes of the receiver, addresses of the network, or the whole URL.
func (s *Sender) describe(err error) error {
	var (
		timeout     interface{ Timeout() bool }
		lookup      *net.DNSError
		certificate *tls.CertificateVerificationError
		hostname    x509.HostnameError
		authority   x509.UnknownAuthorityError
		invalid     x509.CertificateInvalidError
		notTLS      tls.RecordHeaderError
		network     *net.OpError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("the request was interrupted: %w", context.Canceled)
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork), errors.Is(err, ssrf.ErrInvalidHostPort):
		return errors.New("the host has an address that is not public: " + useAllowed)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("the receiver did not respond completely within %s", s.timeout)
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return errors.New("the host does not exist: change the URL of the webhook")
	case errors.As(err, &lookup):
		return errors.New("the address of the host cannot be looked up")
	case errors.As(err, &certificate):
		switch {
		case errors.As(err, &hostname):
			return errors.New("the certificate of the receiver belongs to another host")
		case errors.As(err, &authority):
			return errors.New("no known authority has signed the certificate of the receiver")
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
			return errors.New("the certificate of the receiver is expired or not valid yet")
		}
		return errors.New("the certificate of the receiver is invalid")
	case errors.As(err, &notTLS), errors.As(err, &network) && strings.HasSuffix(network.Op, " error"): // an alert of TLS
		return errors.New("the receiver has no TLS of version 1.2 or 1.3")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the receiver refuses connections")
	case errors.As(err, &network) && network.Op == "dial":
		return errors.New("the receiver cannot be reached")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("the receiver closed the connection before its response was complete")
	}
	return errors.New("the receiver did not send a valid HTTP response")
}
