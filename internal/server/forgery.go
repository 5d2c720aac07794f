package server

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// provingHeaders are headers that no page can make a browser send to another site without asking
// the server first, which CORS then answers
// (https://fetch.spec.whatwg.org/#cors-safelisted-request-header). The first is what Apollo's
// clients and gateways send.
var provingHeaders = [...]string{"Apollo-Require-Preflight", "X-Apollo-Operation-Name", "GraphQL-Require-Preflight", ExplainHeader}

// browserHeaders are marks of a browser: it sends at least one of them with a request that another
// site's page caused, but for old ones, which User-Agent gives away. Node's fetch sends
// Sec-Fetch-Mode, which so is no mark.
var browserHeaders = [...]string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Referer", "Cookie"}

// forgeable reports whether a foreign page could have made a browser send a GET: no page may make
// the server work in its visitors' name. What cannot be forged carries a header that needs a
// preflight, comes from a page of this site or from the address bar, or shows no mark of a browser.
// A configured origin does not help: its simple GETs are sent without a preflight as anybody's are.
// POST needs no such rule, its Content-Type is JSON's.
func forgeable(h http.Header) bool {
	for _, name := range provingHeaders {
		if h.Get(name) != "" {
			return false
		}
	}
	// Other schemes than Bearer (Basic, Digest, Negotiate) browsers send by themselves once
	// somebody has logged in.
	if scheme, _, _ := strings.Cut(h.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return false
	}
	if t, _, err := mime.ParseMediaType(h.Get("Content-Type")); err == nil && !simpleType(t) {
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

// simpleType reports whether pages can send this type of content to any site.
func simpleType(t string) bool {
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data" || t == "text/plain"
}
