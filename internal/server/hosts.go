package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// allowedHosts are the host names that a server without authentication accepts, in addition to
// localhost and IP addresses. They prevent DNS rebinding
// (https://en.wikipedia.org/wiki/DNS_rebinding), where an attacker's page makes its own host name
// resolve to the server's address. The browser then treats the page and the server as the same
// site, so neither CORS nor the CSRF check applies. But the Host header of the page's requests
// still contains the attacker's host name.
type allowedHosts map[string]bool

// newAllowedHosts returns allowedHosts with the given names. It ignores ports in the names.
func newAllowedHosts(names []string) allowedHosts {
	h := allowedHosts{}
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

// allows reports whether the server accepts a request with this Host header.
func (h allowedHosts) allows(host string) bool {
	name := normalizeHost(host)
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name]
}

// middleware responds with status 421 (Misdirected Request) if the Host header is not allowed.
func (h allowedHosts) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allows(r.Host) {
			w.Header()["X-Content-Type-Options"] = nosniff
			w.Header()["Cache-Control"] = noStore
			newRefusal(http.StatusMisdirectedRequest, errcode.HostNotAllowed, "without authentication the server does not accept this Host header: use localhost, an IP address, or a host in ORDERGRAPH_ALLOWED_HOSTS").write(w, typeJSON)
			return
		}
		next.ServeHTTP(w, r)
	})
}
