package server

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// preflightHeaders are headers that a page cannot send to another site without a CORS preflight
// request (https://fetch.spec.whatwg.org/#cors-safelisted-request-header). Apollo's clients and
// gateways send the first one.
var preflightHeaders = [...]string{"Apollo-Require-Preflight", "X-Apollo-Operation-Name", "GraphQL-Require-Preflight", ExplainHeader}

// browserHeaders identify a browser. A browser sends at least one of them with a request that a
// page of another site caused. Old browsers are identified by User-Agent instead. Sec-Fetch-Mode is
// not in the list because Node's fetch sends it.
var browserHeaders = [...]string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Referer", "Cookie"}

// possibleCSRF reports whether a page of another site could have made a browser send a GET request
// (CSRF). A request cannot be forged if it has a header that needs a preflight, comes from a page
// of this site or the address bar, or does not come from a browser. A configured origin is not
// sufficient: browsers send simple GETs without a preflight. POST needs no such check, as its
// Content-Type is JSON.
func possibleCSRF(h http.Header) bool {
	for _, name := range preflightHeaders {
		if h.Get(name) != "" {
			return false
		}
	}
	// Browsers send the other schemes (Basic, Digest, Negotiate) by themselves once a user has logged
	// in.
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
	// Pages cannot change User-Agent without a preflight either.
	return slices.ContainsFunc([]string{"Mozilla/", "Opera/"}, func(prefix string) bool { return strings.HasPrefix(h.Get("User-Agent"), prefix) })
}

// simpleContentType reports whether pages can send this content type to any site without a
// preflight.
func simpleContentType(t string) bool {
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data" || t == "text/plain"
}
