// Package receivers has receivers of webhooks for tests, which fail in many ways, and verifies what
// they have accepted. Connections are pipes inside the process, so receivers also work in the
// bubbles of testing/synctest, with virtual time.
package receivers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/webhook"
)

// Network connects Senders with receivers.
type Network struct {
	t     testing.TB
	mu    sync.Mutex
	hosts map[string]*listener
	roots *x509.CertPool
}

// NewNetwork returns a network without receivers. The cleanup of the test closes its receivers.
func NewNetwork(t testing.TB) *Network {
	return &Network{t: t, hosts: map[string]*listener{}, roots: x509.NewCertPool()}
}

// SenderOptions returns options of a Sender that sends to the receivers of the network.
func (n *Network) SenderOptions() webhook.SenderOptions {
	n.mu.Lock()
	defer n.mu.Unlock()
	opts := webhook.SenderOptions{RootCAs: n.roots, Dial: n.dial}
	for address := range n.hosts {
		if _, port, _ := net.SplitHostPort(address); port == "80" {
			opts.AllowedHosts = append(opts.AllowedHosts, address)
		}
	}
	return opts
}

// dial connects to the receiver with an address such as shop.example.com:443.
func (n *Network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.hosts[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	}
	client, server := net.Pipe()
	select {
	case l.connections <- server:
		return client, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Add adds a receiver with the URL http://HOST, which behaves as b. It verifies signatures with the
// secrets.
func (n *Network) Add(host string, b Behavior, secrets ...string) *Receiver {
	return n.add("http://"+host, net.JoinHostPort(host, "80"), nil, b, secrets)
}

// AddTLS adds a receiver with the URL https://HOST. Its certificate belongs to another host, unless
// both are equal.
func (n *Network) AddTLS(host, certificateHost string, b Behavior, secrets ...string) *Receiver {
	certificate := newCertificate(n.t, certificateHost)
	n.roots.AddCert(certificate.Leaf)
	return n.add("https://"+host, net.JoinHostPort(host, "443"), &tls.Config{Certificates: []tls.Certificate{certificate}}, b, secrets)
}

func (n *Network) add(url, address string, config *tls.Config, b Behavior, secrets []string) *Receiver {
	r := &Receiver{URL: url, behavior: b}
	for _, secret := range secrets {
		r.Trust(n.t, secret)
	}
	l := &listener{connections: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.hosts[address] = l
	n.mu.Unlock()
	server := &http.Server{Handler: r, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	var accepting net.Listener = l
	if config != nil {
		accepting = tls.NewListener(l, config)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(accepting) })
	n.t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return r
}

// newCertificate returns a self-signed certificate.
func newCertificate(t testing.TB, host string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), DNSNames: []string{host}, BasicConstraintsValid: true, IsCA: true}
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

// listener accepts the connections of Network.dial.
type listener struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address without a meaning.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
