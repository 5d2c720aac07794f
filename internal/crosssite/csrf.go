// Package crosssite detects HTTP requests that a browser may have sent because of a page of another
// site. It imports only the standard library.
package crosssite

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// PreflightHeaders returns the names of headers that protect a request against CSRF. A page can
// send such a header to another site only after a CORS preflight. See
// https://fetch.spec.whatwg.org/#cors-safelisted-request-header.
func PreflightHeaders() []string {
	return []string{"Apollo-Require-Preflight", "X-Apollo-Operation-Name", "GraphQL-Require-Preflight"}
}

// browserHeaders are request headers that only browsers send. Sec-Fetch-Mode is not in the list,
// because the fetch function of Node.js also sends it.
var browserHeaders = [...]string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Referer", "Cookie"}

// PossibleCSRF reports whether a GET request may be a cross-site request forgery (CSRF). h contains
// the headers of the request. preflight contains the names of headers that cause a CORS preflight.
func PossibleCSRF(h http.Header, preflight []string) bool {
	// A page of another site could send these headers only after a CORS preflight.
	for _, name := range preflight {
		if h.Get(name) != "" {
			return false
		}
	}
	// A browser never adds a Bearer token to a request automatically. After the user has logged in, a
	// browser automatically adds the credentials of other schemes, such as Basic.
	if scheme, _, _ := strings.Cut(h.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return false
	}
	// Browsers send a preflight for a Content-Type that HTML forms do not support.
	if t, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && !simpleContentType(t) {
		return false
	}
	// The request comes from a page of this server or from the browser's address bar.
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	}
	for _, name := range browserHeaders {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	// Old browsers may send none of these headers, so check User-Agent. A page of another site cannot
	// change User-Agent, because the browser would send a preflight first.
	return slices.ContainsFunc([]string{"Mozilla/", "Opera/"}, func(prefix string) bool { return strings.HasPrefix(h.Get("User-Agent"), prefix) })
}

// simpleContentType reports whether a page can send a body of content type t to another site
// without a preflight.
func simpleContentType(t string) bool {
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data" || t == "text/plain"
}

// SameOrigin reports whether the Origin and Host headers name the same host. SameOrigin ignores the
// scheme, which is unknown behind a proxy that terminates TLS.
func SameOrigin(r *http.Request) bool {
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && strings.EqualFold(host, r.Host)
}
