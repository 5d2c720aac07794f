package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// hosts are the names of a server without authentication, in addition to localhost and IP
// addresses. They protect the server against DNS rebinding
// (https://en.wikipedia.org/wiki/DNS_rebinding): a page makes its own name resolve to the server's
// address. The browser then treats both as the same site, so neither CORS nor the CSRF check
// applies. But the Host header still has the name of the page.
type hosts map[string]bool

// newHosts returns the hosts with the given names. Ports are ignored.
func newHosts(names []string) hosts {
	h := hosts{}
	for _, name := range names {
		h[hostname(name)] = true
	}
	return h
}

// hostname normalises a Host header: lower case, without port, brackets and trailing dot.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// allow reports whether the server may respond to a request with this Host header.
func (h hosts) allow(host string) bool {
	name := hostname(host)
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name]
}

// checked is middleware that responds with 421 to requests for any other host.
func (h hosts) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allow(r.Host) {
			w.Header()["X-Content-Type-Options"] = nosniff
			w.Header()["Cache-Control"] = noStore
			refuse(http.StatusMisdirectedRequest, errcode.HostNotAllowed, "without authentication the server does not accept this Host header: use localhost, an IP address, or a host in ORDERGRAPH_ALLOWED_HOSTS").reply(w, typeJSON)
			return
		}
		next.ServeHTTP(w, r)
	})
}
