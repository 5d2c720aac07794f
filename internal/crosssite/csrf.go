// Package crosssite detects HTTP requests that a browser may have sent on behalf of a page of
// another site. It imports only the standard library.
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

// browserHeaders are request headers that only browsers send. A current browser sends at least one
// of them with every request of a page to another site. An old browser may send none of them, so
// PossibleCSRF recognises it by User-Agent. Sec-Fetch-Mode is not in the list, because the fetch
// function of Node.js also sends it.
var browserHeaders = [...]string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Referer", "Cookie"}

// PossibleCSRF reports whether this GET request may be a cross-site request forgery (CSRF), which a
// browser sends on behalf of a page of another site. It returns false in these cases:
//
//   - A page of another site could send the request only after a CORS preflight. The reason is a
//     header in preflight, a Bearer token, or a Content-Type that HTML forms do not support.
//   - The request comes from a page of this server or from the browser's address bar.
//   - The client is not a browser.
//
// The allowed CORS origins have no effect, because browsers send simple GETs without a preflight. A
// POST is safe: its Content-Type must be JSON, so a browser sends a preflight first.
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
	// A page cannot forge User-Agent, because the browser would send a preflight first.
	return slices.ContainsFunc([]string{"Mozilla/", "Opera/"}, func(prefix string) bool { return strings.HasPrefix(h.Get("User-Agent"), prefix) })
}

// simpleContentType reports whether a page can send a body of this content type to another site
// without a preflight.
func simpleContentType(t string) bool {
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data" || t == "text/plain"
}

// SameOrigin reports whether the Origin header of a request contains the host of the request. It
// ignores the scheme, because a server behind a proxy that terminates TLS does not know the scheme.
func SameOrigin(r *http.Request) bool {
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && strings.EqualFold(host, r.Host)
}
