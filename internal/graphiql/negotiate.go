package graphiql

import (
	"strings"

	"github.com/ordergraph/ordergraph/internal/accept"
)

// acceptsGzip reports whether an Accept-Encoding header allows gzip, either by name or with the
// wildcard *. values are the values of the header. An encoding with the weight 0 is not allowed.
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

// etagMatches reports whether an If-None-Match header contains an entity tag. values are the values
// of the header. The prefix W/ is ignored, because a proxy may have added it to the tag.
func etagMatches(values []string, tag string) bool {
	for _, element := range accept.SplitElements(values) {
		if element == "*" || strings.TrimPrefix(element, "W/") == tag {
			return true
		}
	}
	return false
}
