// Package crosssite detects requests that a page of another site could have made a browser send. It
// imports only the standard library.
package crosssite

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// PreflightHeaders returns request headers that a page cannot send to another site without a CORS
// preflight request. See https://fetch.spec.whatwg.org/#cors-safelisted-request-header. Apollo's
// clients and gateways send some of these headers.
func PreflightHeaders() []string {
	return []string{"Apollo-Require-Preflight", "X-Apollo-Operation-Name", "GraphQL-Require-Preflight"}
}

// browserHeaders are request headers that only browsers send. A browser sends at least one of them
// with every request that a page of another site causes. Old browsers are identified by User-Agent
// instead. Sec-Fetch-Mode is not in the list, because the fetch function of Node.js also sends it.
var browserHeaders = [...]string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Referer", "Cookie"}

// PossibleCSRF reports whether a page of another site could have made a browser send this GET
// request (CSRF). It returns false if the request has a header in preflight, because other sites
// cannot send these headers without a CORS preflight request. It also returns false for requests
// from pages of this server, from the address bar, and from clients that are not browsers. It
// ignores the allowed CORS origins, because browsers send simple GETs without a preflight. POSTs
// need no check, because their Content-Type is JSON and therefore needs a preflight.
func PossibleCSRF(h http.Header, preflight []string) bool {
	for _, name := range preflight {
		if h.Get(name) != "" {
			return false
		}
	}
	// A browser never sends a Bearer token automatically. It sends the credentials of other schemes
	// (Basic, Digest, Negotiate) automatically after the user has logged in.
	if scheme, _, _ := strings.Cut(h.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return false
	}
	if t, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && !simpleContentType(t) {
		return false
	}
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	}
	for _, name := range browserHeaders {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	// Setting User-Agent would need a preflight, so pages cannot fake it.
	return slices.ContainsFunc([]string{"Mozilla/", "Opera/"}, func(prefix string) bool { return strings.HasPrefix(h.Get("User-Agent"), prefix) })
}

// simpleContentType reports whether a page can send a body of this content type to another site
// without a preflight.
func simpleContentType(t string) bool {
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data" || t == "text/plain"
}

// SameOrigin reports whether the Origin header of a request contains the host of the request. It
// ignores the scheme, which the server does not know behind a proxy that terminates TLS.
func SameOrigin(r *http.Request) bool {
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && strings.EqualFold(host, r.Host)
}
