package server

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/ordergraph/ordergraph/graph"
)

// rebound tells whether a request may come from a page that has made its own name stand for this machine (DNS rebinding,
// https://en.wikipedia.org/wiki/DNS_rebinding): to the browser that page and this server are one site, so that no other rule helps. Such a
// request arrives at a loopback address, and Host has that name. known are the hosts by which the server may be called besides.
func rebound(r *http.Request, known map[string]bool) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() {
		return false
	}
	host := hostname(r.Host)
	return host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost") && net.ParseIP(host) == nil && !known[host]
}

// hostname is a host without its port, as names are compared.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// hostsOf are the hosts of origins.
func hostsOf(origins []string) map[string]bool {
	hosts := map[string]bool{}
	for _, origin := range origins {
		if u, err := url.Parse(origin); err == nil {
			hosts[hostname(u.Host)] = true
		}
	}
	return hosts
}

// unrebound refuses what may be rebound.
func unrebound(origins []string, next http.HandlerFunc) http.HandlerFunc {
	known := hostsOf(origins)
	return func(w http.ResponseWriter, r *http.Request) {
		if rebound(r, known) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cache-Control", "no-store")
			refuse(http.StatusForbidden, graph.CodeForgeable, "the server runs on this machine and is open, and pages could call it by a name of theirs: call it localhost, or add its origin to ORDERGRAPH_CORS_ORIGINS").reply(w, typeJSON)
			return
		}
		next(w, r)
	}
}
