package httpheader

import (
	"net"
	"net/netip"
	"strings"
)

// AllowedHosts contains the additional host names that a server without authentication accepts in
// the Host header. The server always accepts localhost and IP addresses. To prevent DNS rebinding,
// it rejects other names. See https://en.wikipedia.org/wiki/DNS_rebinding.
type AllowedHosts map[string]bool

// NewAllowedHosts returns AllowedHosts with the given names. It ignores ports in the names.
func NewAllowedHosts(names []string) AllowedHosts {
	h := AllowedHosts{}
	for _, name := range names {
		h[normalizeHost(name)] = true
	}
	return h
}

// normalizeHost returns the host name in lower case, without a port, brackets or a trailing dot.
func normalizeHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Allow reports whether the server accepts a request with the given Host header.
func (h AllowedHosts) Allow(host string) bool {
	name := normalizeHost(host)
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name]
}

// PrivateName reports whether no public website can have the name in a Host header. Such a name has
// no dot, like the names of containers, or belongs to a top-level domain for private names, like
// host.docker.internal.
func PrivateName(host string) bool {
	name := normalizeHost(host)
	return name != "" && !strings.Contains(name, ".") || strings.HasSuffix(name, ".internal") || strings.HasSuffix(name, ".local")
}
