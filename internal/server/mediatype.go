package server

import (
	"mime"
	"strings"

	"github.com/ordergraph/ordergraph/internal/accept"
)

// mediaType is the media type of a GraphQL response.
type mediaType string

const (
	// typeJSON is the media type that most clients accept. Its status is 200 even if the operation is
	// invalid.
	typeJSON mediaType = "application/json"
	// typeGraphQL is the media type of GraphQL over HTTP. Its status also reports whether the request
	// was executed.
	typeGraphQL mediaType = "application/graphql-response+json"
	// typeEventStream is the media type of server-sent events. Each event is a response
	// (eventstream.go).
	typeEventStream mediaType = "text/event-stream"
)

// negotiateMediaType chooses the media type of a response by the values of Accept. It returns false
// if the client accepts no supported type. Of types with the same weight, a type that Accept names
// precedes one that a wildcard matches. After that, typeGraphQL precedes typeJSON. Without Accept,
// or with */*, the type is JSON. An event stream must be named. It loses a tie against any other
// named type: a client that can read all types gets a single response.
func negotiateMediaType(values []string) (mediaType, bool) {
	// This is the fast path for the values that most clients send.
	if len(values) == 0 || len(values) == 1 && (values[0] == "*/*" || values[0] == string(typeJSON)) {
		return typeJSON, true
	}
	ranges := accept.List(values)
	if len(ranges) == 0 {
		return typeJSON, true
	}
	best, bestWeight, bestNamed := typeJSON, 0.0, false
	for _, t := range []mediaType{typeGraphQL, typeJSON, typeEventStream} {
		weight, rank := mediaTypeWeight(ranges, t)
		named := rank == rankNamed
		if t == typeEventStream && !named {
			continue
		}
		// JSON comes second and events third. They win a tie against a type that only a wildcard matches.
		if weight > bestWeight || weight > 0 && weight == bestWeight && !bestNamed {
			best, bestWeight, bestNamed = t, weight, named
		}
	}
	return best, bestWeight > 0
}

// Ranks of media ranges. The most specific range that matches a type gives its weight.
const (
	rankNone = iota
	rankAny
	rankApplication
	rankNamed
)

// mediaTypeWeight returns the weight of a type, and the rank of the media range that gives the
// weight.
func mediaTypeWeight(ranges []string, t mediaType) (weight float64, rank int) {
	for _, r := range ranges {
		name, parameters, _ := strings.Cut(r, ";")
		rangeRank := rankNone
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case string(t):
			rangeRank = rankNamed
		case "application/*":
			rangeRank = rankApplication
		case "*/*":
			rangeRank = rankAny
		}
		if rangeRank > rank && allowsUTF8(parameters) {
			weight, rank = accept.Weight(parameters), rangeRank
		}
	}
	return weight, rank
}

// allowsUTF8 reports whether the parameters allow UTF-8. It ignores parameters other than charset.
func allowsUTF8(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "charset") && !strings.EqualFold(strings.Trim(value, `"`), "utf-8") {
			return false
		}
	}
	return true
}

// isJSON reports whether a Content-Type is JSON in UTF-8, the only charset for the exchange of JSON
// (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
func isJSON(contentType string) bool {
	if contentType == string(typeJSON) { // most clients send exactly this
		return true
	}
	t, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	return err == nil && t == string(typeJSON) && (!given || strings.EqualFold(charset, "utf-8"))
}
