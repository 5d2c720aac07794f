// Package httpheader interprets the headers of HTTP requests: whether a page of another site may have
// caused the request, which client sent it through proxies, and which alternatives the client
// accepts. It imports only the standard library.
package httpheader

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

// PossibleCSRF reports whether a GET request with the headers h may be a cross-site request forgery
// (CSRF). The parameter preflight lists headers that a browser sends to another site only after a
// CORS preflight.
func PossibleCSRF(h http.Header, preflight []string) bool {
	// A page of another site could send these headers only after a CORS preflight.
	for _, name := range preflight {
		if h.Get(name) != "" {
			return false
		}
	}
	// A request with a Bearer token cannot be a CSRF, because a browser never adds such a token by
	// itself. But a browser adds Basic credentials by itself after the user has logged in.
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
	// Old browsers may send none of these headers, so check User-Agent, which all browsers send. A
	// page can change User-Agent in a request to another site only after a CORS preflight.
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

// ForeignPage reports whether a page of another site has sent a request with a body. Browsers send
// the headers Origin and Sec-Fetch-Site with such requests.
func ForeignPage(r *http.Request) bool {
	if len(r.Header.Values("Origin")) > 0 {
		return !SameOrigin(r)
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}
