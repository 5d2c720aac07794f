package crosssite

import (
	"net"
	"net/netip"
	"strings"
)

// AllowedHosts are the host names that a server without authentication accepts, in addition to
// localhost and IP addresses. They prevent DNS rebinding
// (https://en.wikipedia.org/wiki/DNS_rebinding).
//
// In DNS rebinding, an attacker's page makes its own host name resolve to the server's address. The
// browser then treats the page and the server as the same site, so neither CORS nor the CSRF check
// applies. But the page's requests still have the attacker's host name in their Host header.
type AllowedHosts map[string]bool

// NewAllowedHosts returns AllowedHosts with the given names. It ignores ports in the names.
func NewAllowedHosts(names []string) AllowedHosts {
	h := AllowedHosts{}
	for _, name := range names {
		h[normalizeHost(name)] = true
	}
	return h
}

// normalizeHost returns the host name of a Host header in lower case, without port, brackets and
// trailing dot.
func normalizeHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Allow reports whether the server accepts a request with this Host header.
func (h AllowedHosts) Allow(host string) bool {
	name := normalizeHost(host)
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name]
}
