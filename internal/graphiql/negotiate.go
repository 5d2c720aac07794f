package graphiql

import (
	"strings"

	"github.com/ordergraph/ordergraph/internal/accept"
)

// acceptsGzip reports whether the values of an Accept-Encoding header allow gzip, by name or by a
// wildcard. An encoding with the weight 0 is not allowed.
func acceptsGzip(values []string) bool {
	wildcard := false
	for _, element := range accept.SplitElements(values) {
		coding, parameters, _ := strings.Cut(element, ";")
		accepted := accept.Weight(parameters) > 0
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			wildcard = accepted
		}
	}
	return wildcard
}

// etagMatches reports whether the values of an If-None-Match header contain tag. The comparison is
// weak, because a proxy may have marked the tag as weak.
func etagMatches(values []string, tag string) bool {
	for _, element := range accept.SplitElements(values) {
		if element == "*" || strings.TrimPrefix(element, "W/") == tag {
			return true
		}
	}
	return false
}
