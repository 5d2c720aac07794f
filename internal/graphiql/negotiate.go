package graphiql

import (
	"strings"

	"github.com/ordergraph/ordergraph/internal/httpheader"
)

// acceptsGzip reports whether the header Accept-Encoding allows gzip, either by name or with the
// wildcard *. The slice values contains the header's values. An encoding with the weight 0 is not
// allowed.
func acceptsGzip(values []string) bool {
	wildcard := false
	for _, element := range httpheader.SplitElements(values) {
		coding, parameters, _ := strings.Cut(element, ";")
		accepted := httpheader.Weight(parameters) > 0
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			wildcard = accepted
		}
	}
	return wildcard
}

// etagMatches reports whether the header If-None-Match contains the given entity tag or the
// wildcard *. The slice values contains the header's values. The prefix W/ is ignored, because a
// proxy may have added it to the tag.
func etagMatches(values []string, tag string) bool {
	for _, element := range httpheader.SplitElements(values) {
		if element == "*" || strings.TrimPrefix(element, "W/") == tag {
			return true
		}
	}
	return false
}
