package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/receivers"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// at is the time of all attempts.
var at = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// secret returns a secret that consists of one repeated letter.
func secret(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// message returns a message to a URL whose query also contains a secret.
func message(url string) webhook.Message {
	return webhook.Message{ID: "01HVNR4Q3R0000000000000009", URL: url + "/hook?token=hidden", Body: []byte(`{"specversion":"1.0","note":"hidden"}`), Secrets: []string{secret("n"), secret("o")}, At: at}
}

// newServer returns a receiver with TLS, and options of a Sender that may send to it.
func newServer(t *testing.T, serve http.HandlerFunc) (*httptest.Server, webhook.SenderOptions) {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, webhook.SenderOptions{AllowedHosts: []string{"127.0.0.1"}, RootCAs: roots}
}

// send sends one message with a new Sender. It checks that an error is short and contains nothing
// that is hidden.
func send(t *testing.T, opts webhook.SenderOptions, m webhook.Message) webhook.Outcome {
	t.Helper()
	s := webhook.NewSender(opts)
	defer s.Close()
	o := s.Send(t.Context(), m)
	if accepted := o.Status >= 200 && o.Status <= 299; o.Err == nil && !accepted {
		t.Errorf("the outcome is %+v, want an error", o)
	}
	if o.Err != nil && (len(o.Err.Error()) > 300 || strings.Contains(o.Err.Error(), "hidden") || strings.Contains(o.Err.Error(), "whsec") || strings.Contains(o.Err.Error(), "127.0.0.1:")) {
		t.Errorf("the error %q is long, or contains a secret, the response or an address", o.Err)
	}
	return o
}

// wantError checks that an error contains a text. An empty text means no error.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Errorf("the error is %v, want %q", err, text)
	}
}

// Receivers can verify a request with each of the secrets, and with no other.
func TestSignedRequest(t *testing.T) {
	var header http.Header
	var body []byte
	var protocol, target string
	server, opts := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		header, protocol, target = r.Header, r.Method+" "+r.Proto, r.RequestURI
		body, _ = io.ReadAll(r.Body)
	})
	m := message(server.URL)
	if o := send(t, opts, m); o != (webhook.Outcome{Status: http.StatusOK}) {
		t.Fatalf("the outcome is %+v, want status 200", o)
	}
	if !bytes.Equal(body, m.Body) || protocol != "POST HTTP/2.0" || target != "/hook?token=hidden" {
		t.Errorf("received %s %s with the body %s", protocol, target, body)
	}
	for name, want := range map[string]string{"Content-Type": "application/cloudevents+json; charset=utf-8", "Webhook-Id": m.ID, "Webhook-Timestamp": strconv.FormatInt(at.Unix(), 10)} {
		if got := header.Get(name); got != want {
			t.Errorf("the header %s is %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(header.Get("User-Agent"), "Ordergraph/") || header.Get("Accept-Encoding") != "" || header.Get("Idempotency-Key") != "" {
		t.Errorf("the header is %v", header)
	}
	for letter, valid := range map[string]bool{"n": true, "o": true, "x": false} {
		verifier, err := standardwebhooks.NewWebhook(secret(letter))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.VerifyIgnoringTimestamp(body, header); (err == nil) != valid {
			t.Errorf("verifying with the secret %q: %v", letter, err)
		}
	}
}

// A message that cannot be signed is not sent, and the error does not repeat the secret.
func TestUnsignedMessagesAreNotSent(t *testing.T) {
	var requests atomic.Int32
	server, opts := newServer(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	for _, secrets := range [][]string{nil, {"whsec_not base64"}, {secret("n"), "whsec_%%"}} {
		m := message(server.URL)
		m.Secrets = secrets
		wantError(t, send(t, opts, m).Err, "rotate its secret")
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived, want none", n)
	}
}

// Each status other than 2xx is an error. Redirects are never followed.
func TestStatuses(t *testing.T) {
	var followed atomic.Int32
	internal, _ := newServer(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, c := range []struct {
		status     int
		header     string // name: value
		err        string
		retryAfter time.Duration
	}{
		{status: 200},
		{status: 202},
		{status: 204},
		{status: 300, err: "status 300"},
		{301, "Location: https://new.example.com/x?token=hidden", `redirects to the host "new.example.com": change the URL`, 0},
		{302, "Location: http://169.254.169.254/latest/meta-data", `redirects to the host "169.254.169.254"`, 0},
		{303, "Location: " + internal.URL, `redirects to the host "127.0.0.1:`, 0},
		{307, "Location: " + internal.URL, `redirects to the host`, 0},
		{308, "Location: //" + strings.Repeat("a", 300), "status 308", 0},
		{308, "Location: /elsewhere", `redirects to the host "127.0.0.1`, 0},
		{307, "Location: gopher://%0a", "status 307", 0},
		{304, "Location:", "status 304", 0},
		{400, "Retry-After: 10", "status 400", 0},
		{404, "", "status 404", 0},
		{410, "", "status 410", 0},
		{429, "", "status 429", 0},
		{429, "Retry-After: 120", "status 429", 2 * time.Minute},
		{429, "Retry-After: 0", "status 429", 0},
		{429, "Retry-After: -5", "status 429", 0},
		{429, "Retry-After: soon", "status 429", 0},
		{429, "Retry-After: 86401", "status 429", 24 * time.Hour},
		{429, "Retry-After: 99999999999999999999999", "status 429", 24 * time.Hour},
		{500, "Retry-After: 10", "status 500", 0},
		{503, "Retry-After: 7", "status 503", 7 * time.Second},
		{503, "Retry-After: " + at.Add(90*time.Minute).Format(http.TimeFormat), "status 503", 90 * time.Minute},
		{503, "Retry-After: " + at.Add(-time.Hour).Format(http.TimeFormat), "status 503", 0},
		{503, "Retry-After: " + at.AddDate(9000, 0, 0).Format(http.TimeFormat), "status 503", 0}, // five digits: no valid time
		{503, "Retry-After: " + at.AddDate(700, 0, 0).Format(http.TimeFormat), "status 503", 24 * time.Hour},
		{599, "", "status 599", 0},
		{999, "", "status 999", 0},
	} {
		t.Run(fmt.Sprintf("%d %s", c.status, c.header), func(t *testing.T) {
			server, opts := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
				if name, value, ok := strings.Cut(c.header, ":"); ok {
					w.Header().Set(name, strings.TrimSpace(value))
				}
				w.WriteHeader(c.status)
			})
			s := webhook.NewSender(opts)
			defer s.Close()
			o := s.Send(t.Context(), message(server.URL))
			wantError(t, o.Err, c.err)
			if strings.HasPrefix(c.err, "status") && o.Err.Error() != "the receiver responded with "+c.err {
				t.Errorf("the error is %q, want only the status", o.Err)
			}
			if o.Status != c.status || o.RetryAfter != c.retryAfter || o.Gone() != (c.status == http.StatusGone) {
				t.Errorf("the outcome is %+v, want status %d and RetryAfter %s", o, c.status, c.retryAfter)
			}
		})
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// resolverOf returns a resolver that asks answer for the address of each name.
func resolverOf(answer func() netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			var length uint16
			if binary.Read(server, binary.BigEndian, &length) != nil {
				return
			}
			query := make([]byte, length)
			var m dnsmessage.Message
			if _, err := io.ReadFull(server, query); err != nil || m.Unpack(query) != nil {
				return
			}
			m.Response, m.Authoritative = true, true
			m.Additionals = nil
			header := dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET}
			switch address := answer(); m.Questions[0].Type {
			case dnsmessage.TypeA:
				if address.Is4() {
					m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: address.As4()}}}
				}
			case dnsmessage.TypeAAAA:
				if address.Is6() {
					m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}}}
				}
			}
			response, err := m.Pack()
			if err != nil {
				return
			}
			_, _ = server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(response))), response...))
		}()
		return client, nil
	}}
}

// refusedAddresses has an address of each block that IANA's registries of special-purpose addresses
// do not mark as globally reachable, and of those that stand for IPv4 addresses.
var refusedAddresses = []string{
	"0.0.0.0", "0.1.2.3", // this network
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", // private
	"100.64.0.1", "100.100.100.200", "100.127.255.255", // carrier-grade NAT, metadata of Alibaba Cloud
	"127.0.0.1", "127.1.2.3", "127.255.255.255", // loopback
	"169.254.0.1", "169.254.169.254", "169.254.170.2", // link-local, metadata of clouds
	"192.0.0.1", "192.0.0.8", "192.0.0.170", "192.0.0.192", // IETF protocols
	"192.0.2.1", "198.51.100.1", "203.0.113.1", // documentation
	"192.88.99.1",                 // 6to4 relays
	"198.18.0.1", "198.19.255.25", // benchmarking
	"224.0.0.1", "239.255.255.250", // multicast
	"240.0.0.1", "255.255.255.255", // reserved, broadcast
	"::", "::1", // unspecified, loopback
	"::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", // IPv4 in IPv6
	"64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", // NAT64
	"100::1", "100:0:0:1::1", // discard-only, dummy
	"2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", // Teredo, benchmarking, ORCHID, documentation
	"2002:7f00:1::", "2002:808:808::1", // 6to4
	"3fff::1",                                        // documentation
	"5f00::1",                                        // segment routing
	"fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", // unique local, metadata of AWS, link-local, site-local
	"ff02::1", "ff0e::1", // multicast
	"4000::1", "fe00::1", // not assigned
}

// A name with a special address is refused on connecting, and the address itself when a webhook is
// created.
func TestSpecialAddressesAreRefused(t *testing.T) {
	for _, text := range refusedAddresses {
		address := netip.MustParseAddr(text)
		s := webhook.NewSender(webhook.SenderOptions{Resolver: resolverOf(func() netip.Addr { return address })})
		wantError(t, s.Send(t.Context(), message("https://shop.example.org")).Err, "an address that is not public")
		wantError(t, s.CheckURL("https://"+net.JoinHostPort(text, "8443")), "an address that is not public")
		if address.Is6() {
			wantError(t, s.CheckURL("https://["+address.StringExpanded()+"%25eth0]/"), "an address that is not public")
		}
		s.Close()
	}
}

// A name is looked up again for each connection, so a public address at first does not help.
func TestDNSRebinding(t *testing.T) {
	var requests, lookups atomic.Int32
	server, opts := newServer(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	opts.AllowedHosts = nil
	opts.Resolver = resolverOf(func() netip.Addr {
		if lookups.Add(1) == 1 {
			return netip.MustParseAddr("9.9.9.9")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	url := strings.Replace(server.URL, "127.0.0.1", "shop.example.org", 1)
	s := webhook.NewSender(opts)
	defer s.Close()
	if err := s.CheckURL(url); err != nil {
		t.Fatal(err)
	}
	if first, err := opts.Resolver.LookupNetIP(t.Context(), "ip4", "shop.example.org"); err != nil || first[0].String() != "9.9.9.9" {
		t.Fatalf("the first look-up returned %v, %v", first, err)
	}
	wantError(t, s.Send(t.Context(), message(url)).Err, "an address that is not public")
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived at the loopback address", n)
	}

	// The same name is accepted if the setting allows it. Its certificate is still verified.
	opts.AllowedHosts = []string{"Shop.Example.org"}
	wantError(t, send(t, opts, message(url)).Err, "the certificate of the receiver belongs to another host")
	opts.AllowedHosts = []string{strings.TrimPrefix(server.URL, "https://")}
	if o := send(t, opts, message(server.URL)); o.Err != nil || requests.Load() != 1 {
		t.Errorf("with an allowed host and port, the outcome is %+v", o)
	}
	opts.AllowedHosts = []string{"127.0.0.1:1"}
	wantError(t, send(t, opts, message(server.URL)).Err, "an address that is not public")
}

// TestMain sets proxies in the environment, which net/http reads only once.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		_ = os.Setenv(name, "http://proxy.example.org:3128")
	}
	os.Exit(m.Run())
}

// Proxies of the environment are not used, because they would connect to any address.
func TestProxiesAreNotUsed(t *testing.T) {
	for _, url := range []string{"https://shop.example.org", "http://erp.internal"} {
		var dialed string
		opts := webhook.SenderOptions{AllowedHosts: []string{"erp.internal"}, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			return nil, errors.New("refused")
		}}
		if send(t, opts, message(url)); !strings.HasPrefix(dialed, strings.SplitAfter(url, "//")[1]+":") {
			t.Errorf("a request to %s connects to %s", url, dialed)
		}
	}
}

// The URL is also verified before each request, because the settings can change.
func TestInvalidURLsAreNotSent(t *testing.T) {
	for _, url := range []string{"http://shop.example.org", "https://user:hidden@shop.example.org", "https://shop.example.org:22", "https://localhost", "file://shop.example.org"} {
		opts := webhook.SenderOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
			t.Errorf("the request to %s is sent", url)
			return nil, errors.New("refused")
		}}
		if o := send(t, opts, message(url)); !commerce.IsUserError(o.Err) {
			t.Errorf("the outcome is %+v, want a user error", o)
		}
	}
}

// newCertificate returns a self-signed certificate.
func newCertificate(t *testing.T, host string, from, to time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, BasicConstraintsValid: true, IsCA: true}
	if address := net.ParseIP(host); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Receivers without valid TLS receive no request, also if the setting allows the host.
func TestInvalidTLS(t *testing.T) {
	now := time.Now()
	valid := newCertificate(t, "127.0.0.1", now.Add(-time.Hour), now.Add(time.Hour))
	for _, c := range []struct {
		name    string
		config  *tls.Config
		unknown bool // whether the Sender does not know the authority
		err     string
	}{
		{name: "valid", config: &tls.Config{Certificates: []tls.Certificate{valid}}},
		{"unknown authority", &tls.Config{Certificates: []tls.Certificate{valid}}, true, "no known authority has signed the certificate"},
		{"expired", &tls.Config{Certificates: []tls.Certificate{newCertificate(t, "127.0.0.1", now.Add(-2*time.Hour), now.Add(-time.Hour))}}, false, "expired or not valid yet"},
		{"not valid yet", &tls.Config{Certificates: []tls.Certificate{newCertificate(t, "127.0.0.1", now.Add(time.Hour), now.Add(2*time.Hour))}}, false, "expired or not valid yet"},
		{"another host", &tls.Config{Certificates: []tls.Certificate{newCertificate(t, "hidden.example.com", now.Add(-time.Hour), now.Add(time.Hour))}}, false, "belongs to another host"},
		{"TLS 1.1", &tls.Config{Certificates: []tls.Certificate{valid}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false, "no TLS of version 1.2 or 1.3"},
		{"client certificate required", &tls.Config{Certificates: []tls.Certificate{valid}, ClientAuth: tls.RequireAnyClientCert}, false, "no TLS of version 1.2 or 1.3"},
		{"no certificate", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }}, false, "no TLS of version 1.2 or 1.3"},
		{"plain HTTP", nil, false, "no TLS of version 1.2 or 1.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			opts := webhook.SenderOptions{AllowedHosts: []string{"127.0.0.1"}, RootCAs: x509.NewCertPool()}
			if server.TLS = c.config; c.config != nil {
				if !c.unknown {
					for _, certificate := range c.config.Certificates {
						opts.RootCAs.AddCert(certificate.Leaf)
					}
				}
				server.Listener = tls.NewListener(server.Listener, c.config)
			}
			server.Start()
			defer server.Close()
			wantError(t, send(t, opts, message("https://"+server.Listener.Addr().String())).Err, c.err)
			if n := requests.Load(); (n == 0) != (c.err != "") {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

// Connections are used again. If a receiver closes an idle connection, the request is repeated on a
// new one.
func TestConnectionsAreUsedAgain(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var connections atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "thanks") }))
		server.EnableHTTP2 = http2
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		s := webhook.NewSender(webhook.SenderOptions{AllowedHosts: []string{"127.0.0.1"}, RootCAs: roots})
		for i, want := range []int32{1, 1, 2} {
			if i == 2 && http2 {
				break // HTTP/2 repeats only requests that the server has not begun to process
			} else if i == 2 {
				server.CloseClientConnections()
			}
			if o := s.Send(t.Context(), message(server.URL)); o.Err != nil || connections.Load() != want {
				t.Errorf("HTTP/2 %t, request %d: the outcome is %+v after %d connections, want %d", http2, i, o, connections.Load(), want)
			}
		}
		s.Close()
		server.Close()
	}
}

// A connection that is refused or reset is an error without an address.
func TestBrokenConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts := webhook.SenderOptions{AllowedHosts: []string{"127.0.0.1", "gone.example.com"}}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_ = c.(*net.TCPConn).SetLinger(0) // sends a reset
			_ = c.Close()
		}
	}()
	url := "http://" + listener.Addr().String()
	wantError(t, send(t, opts, message(url)).Err, "closed the connection before its response was complete")
	_ = listener.Close()
	wantError(t, send(t, opts, message(url)).Err, "the receiver refuses connections")
	opts.Resolver = resolverOf(func() netip.Addr { return netip.Addr{} })
	wantError(t, send(t, opts, message("http://gone.example.com")).Err, "the host does not exist")
	opts.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("hidden") }}
	wantError(t, send(t, opts, message("http://gone.example.com")).Err, "cannot be looked up")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := webhook.NewSender(opts)
	defer s.Close()
	if o := s.Send(ctx, message("http://gone.example.com")); !errors.Is(o.Err, context.Canceled) {
		t.Errorf("with a canceled context, the error is %v", o.Err)
	}
}

// A host has at most 32 connections.
func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		var running sync.WaitGroup
		s := webhook.NewSender(webhook.SenderOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			dials.Add(1)
			running.Go(func() { _, _ = io.Copy(io.Discard, server) }) // never answers
			return client, nil
		}})
		for range 100 {
			running.Go(func() { wantError(t, s.Send(t.Context(), message("https://shop.example.org")).Err, "within 10s") })
		}
		synctest.Wait()
		if n := dials.Load(); n != 32 {
			t.Errorf("there are %d connections, want 32", n)
		}
		running.Wait()
		s.Close()
	})
}

// Many programs respond with the status 200 when the sender closes the connection. If this response
// arrives after the timeout, the event is not delivered.
func TestResponseAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := receivers.NewNetwork(t)
		url := n.AddTLS("shop.example.com", "shop.example.com", receivers.Hang, secret("n")).URL
		s := webhook.NewSender(n.SenderOptions())
		for range longtest.Size(30, 100) {
			m := message(url)
			m.At, m.Body = time.Now(), []byte(`{"id": "`+m.ID+`", "subject": "order", "data": {"event": {}, "version": 1}}`)
			var sending sync.WaitGroup
			for range 32 {
				sending.Go(func() { wantError(t, s.Send(t.Context(), m).Err, "within 10s") })
			}
			sending.Wait()
		}
		s.Close()
	})
}

// drip writes a text again and again, with a pause after each, until the connection is closed.
func drip(c net.Conn, text string, pause time.Duration) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

// A request ends within its timeout, although the receiver sends too much or nothing. It leaves no
// goroutine behind: a bubble of synctest ends only after all its goroutines.
func TestHostileReceivers(t *testing.T) {
	const second = time.Second
	hang := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	text := func(response string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, response) }
	}
	for _, r := range []struct {
		name    string
		respond func(net.Conn) // after the request was read
		status  int
		err     string
		after   time.Duration
	}{
		{"answers after 8 s", func(c net.Conn) { time.Sleep(8 * second); text("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(c) }, 200, "", 8 * second},
		{"never answers", hang, 0, "did not respond completely within 10s", 10 * second},
		{"drips its status line", func(c net.Conn) { drip(c, "H", second) }, 0, "within 10s", 10 * second},
		{"drips a header line", func(c net.Conn) { text("HTTP/1.1 200 OK\r\nX: ")(c); drip(c, "x", second) }, 0, "within 10s", 10 * second},
		{"drips its body", func(c net.Conn) { text("HTTP/1.1 200 OK\r\n\r\n")(c); drip(c, "x", second) }, 200, "within 10s", 10 * second},
		{"drips the body of an error", func(c net.Conn) { text("HTTP/1.1 500 Oops\r\n\r\n")(c); drip(c, "x", second) }, 500, "status 500", 10 * second},
		{"drips chunks", func(c net.Conn) {
			text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")(c)
			drip(c, "1\r\nx\r\n", second)
		}, 200, "within 10s", 10 * second},
		{"sends 103 for ever", func(c net.Conn) { drip(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 0) }, 0, "not send a valid HTTP response", 0},
		{"sends 100 each second", func(c net.Conn) { drip(c, "HTTP/1.1 100 Continue\r\n\r\n", second) }, 0, "within 10s", 10 * second},
		{"switches protocols", func(c net.Conn) {
			text("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")(c)
			hang(c)
		}, 101, "status 101", 0},
		{"sends an endless header", func(c net.Conn) { text("HTTP/1.1 200 OK\r\n")(c); drip(c, "X: hidden\r\n", 0) }, 0, "not send a valid HTTP response", 0},
		{"sends an endless header line", func(c net.Conn) { text("HTTP/1.1 200 OK\r\nX: ")(c); drip(c, "hidden", 0) }, 0, "not send a valid HTTP response", 0},
		{"sends an endless body", func(c net.Conn) { text("HTTP/1.1 200 OK\r\n\r\n")(c); drip(c, "hidden", 0) }, 200, "", 0},
		{"sends an endless chunk size", func(c net.Conn) {
			text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")(c)
			drip(c, "0", 0)
		}, 200, "not send a valid HTTP response", 0},
		{"sends less than Content-Length", text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhidden"), 200, "closed the connection", 0},
		{"sends more than Content-Length", text("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhidden"), 200, "", 0},
		{"sends two values of Content-Length", text("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 6\r\n\r\nhidden"), 0, "not send a valid HTTP response", 0},
		{"sends a negative Content-Length", text("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhidden"), 0, "not send a valid HTTP response", 0},
		{"claims a huge Content-Length", func(c net.Conn) {
			text("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n")(c)
			drip(c, strings.Repeat("x", 1000), 0)
		}, 200, "", 0},
		{"sends garbage", text("\x00\xff hidden \r\n\r\n"), 0, "not send a valid HTTP response", 0},
		{"is an SSH server", text("SSH-2.0-OpenSSH_9.9\r\n"), 0, "not send a valid HTTP response", 0},
		{"has a status of four digits", text("HTTP/1.1 2000 hidden\r\n\r\n"), 0, "not send a valid HTTP response", 0},
		{"closes the connection", text(""), 0, "closed the connection", 0},
		{"closes the connection in its header", text("HTTP/1.1 200 OK\r\nX: hid"), 0, "closed the connection", 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			respond := func(c net.Conn) {
				defer func() { _ = c.Close() }()
				request, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					_, err = io.Copy(io.Discard, request.Body)
				}
				if err == nil {
					r.respond(c)
				}
			}
			sendOverPipe(t, "http://receiver", respond, r.status, r.err, r.after)
		})
	}
	for _, r := range []struct {
		name, url string
		serve     func(net.Conn)
		err       string
	}{
		{"never reads the request", "http://receiver", func(c net.Conn) { <-time.After(time.Hour); _ = c.Close() }, "within 10s"},
		{"never answers the TLS handshake", "https://receiver", hang, "within 10s"},
		{"drips the TLS handshake", "https://receiver", func(c net.Conn) {
			go hang(c)
			drip(c, "\x16\x03\x03\x40\x00"[:1], second)
		}, "no TLS of version 1.2"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			sendOverPipe(t, r.url, r.serve, 0, r.err, 10*second)
		})
	}
}

// sendOverPipe sends a message over a pipe to a receiver in a bubble of synctest, and checks the
// outcome and how long it took.
func sendOverPipe(t *testing.T, url string, serve func(net.Conn), status int, text string, atMost time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var receiver sync.WaitGroup
		var read atomic.Int64
		defer receiver.Wait()
		start := time.Now()
		o := send(t, webhook.SenderOptions{AllowedHosts: []string{"receiver"}, Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			receiver.Go(func() { serve(server) })
			return countingConn{client, &read}, nil
		}}, message(url))
		if wantError(t, o.Err, text); o.Status != status || time.Since(start) > atMost {
			t.Errorf("the outcome is %+v after %s, want status %d within %s", o, time.Since(start), status, atMost)
		}
		if n := read.Load(); n > 32<<10 {
			t.Errorf("%d bytes of the receiver were read, want at most 32 KiB", n)
		}
	})
}

// countingConn is a connection that counts the bytes that are read.
type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
