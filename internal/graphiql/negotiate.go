package graphiql

import (
	"strconv"
	"strings"
)

// acceptsGzip reports whether the values of an Accept-Encoding header allow
// gzip, by name or by wildcard. A weight of zero forbids what it is given to.
func acceptsGzip(values []string) bool {
	wildcard := false
	for _, element := range list(values) {
		coding, parameters, _ := strings.Cut(element, ";")
		accepted := weight(parameters) > 0
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			wildcard = accepted
		}
	}
	return wildcard
}

// weight reads the q parameter of a list element; a missing one means 1, and
// one that is no number counts as a refusal.
func weight(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 1
}

// matches reports whether the values of an If-None-Match header include tag,
// compared weakly: a proxy may have marked the tag as weak on its way.
func matches(values []string, tag string) bool {
	for _, element := range list(values) {
		if element == "*" || strings.TrimPrefix(element, "W/") == tag {
			return true
		}
	}
	return false
}

// list splits header values at their commas. None of the elements read here can
// contain a comma: codings are tokens, and the tags of this package hexadecimal.
func list(values []string) []string {
	elements := strings.Split(strings.Join(values, ","), ",")
	for i := range elements {
		elements[i] = strings.TrimSpace(elements[i])
	}
	return elements
}
