package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// hosts are the names by which clients may call a server without authentication, beside localhost
// and IP addresses. They protect it against DNS rebinding
// (https://en.wikipedia.org/wiki/DNS_rebinding): a page lets its own name resolve to the server's
// address. To the browser the two are then one site, so neither CORS nor the CSRF check applies,
// but Host still has the name of the page.
type hosts map[string]bool

// newHosts returns the hosts with these names. Their ports do not matter.
func newHosts(names []string) hosts {
	h := hosts{}
	for _, name := range names {
		h[hostname(name)] = true
	}
	return h
}

// hostname is the host of a Host header in the form in which names are compared: lower case,
// without a port, brackets or the dot at the end.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// allow reports whether a request with this Host header may be answered.
func (h hosts) allow(host string) bool {
	name := hostname(host)
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") || h[name]
}

// checked answers 421 to requests that name another host.
func (h hosts) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allow(r.Host) {
			w.Header()["X-Content-Type-Options"] = nosniff
			w.Header()["Cache-Control"] = noStore
			refuse(http.StatusMisdirectedRequest, errcode.HostNotAllowed, "a server without authentication answers to localhost, to IP addresses, and to the hosts in ORDERGRAPH_ALLOWED_HOSTS: "+
				"call it by one of them, or add the host of this request there").reply(w, typeJSON)
			return
		}
		next.ServeHTTP(w, r)
	})
}
