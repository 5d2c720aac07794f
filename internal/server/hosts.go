package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// allowedHosts are the names of a server without authentication, in addition to localhost and IP
// addresses. They protect the server against DNS rebinding
// (https://en.wikipedia.org/wiki/DNS_rebinding): a page makes its own name resolve to the server's
// address. The browser then treats both as the same site, so neither CORS nor the CSRF check
// applies. But the Host header still has the name of the page.
type allowedHosts map[string]bool

// newAllowedHosts returns the hosts with the given names. Ports are ignored.
func newAllowedHosts(names []string) allowedHosts {
	h := allowedHosts{}
	for _, name := range names {
		h[normalizeHost(name)] = true
	}
	return h
}

// normalizeHost normalises a Host header: lower case, without port, brackets and trailing dot.
func normalizeHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// allows reports whether the server may respond to a request with this Host header.
func (h allowedHosts) allows(host string) bool {
	name := normalizeHost(host)
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name]
}

// middleware is middleware that responds with 421 to requests for any other host.
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
