package server

import (
	"mime"
	"strings"

	"github.com/ordergraph/ordergraph/internal/httpheader"
)

// mediaType is the media type of a GraphQL response.
type mediaType string

const (
	// typeJSON is the media type that most clients accept. A response of this type has status 200 even
	// if the operation is invalid.
	typeJSON mediaType = "application/json"
	// typeGraphQL is the media type of the GraphQL over HTTP specification. If an operation is not
	// executed, a response of this type has a 4xx or 5xx status.
	typeGraphQL mediaType = "application/graphql-response+json"
	// typeEventStream is the media type of server-sent events. Each event contains one GraphQL
	// response.
	typeEventStream mediaType = "text/event-stream"
)

// negotiateMediaType returns the supported type with the highest weight in the Accept header. If
// Accept is missing or contains only wildcards, the result is typeJSON. If no supported type is
// acceptable, the result is false.
func negotiateMediaType(values []string) (mediaType, bool) {
	// Most clients send one of these values.
	if len(values) == 0 || len(values) == 1 && (values[0] == "*/*" || values[0] == string(typeJSON)) {
		return typeJSON, true
	}
	ranges := httpheader.SplitElements(values)
	if len(ranges) == 0 {
		return typeJSON, true
	}
	best, bestWeight, bestNamed := typeJSON, 0.0, false
	for _, t := range []mediaType{typeGraphQL, typeJSON, typeEventStream} {
		weight, rank := mediaTypeWeight(ranges, t)
		named := rank == acceptRankExact
		// A wildcard never selects typeEventStream.
		if t == typeEventStream && !named {
			continue
		}
		// If two types have the same weight, the earlier type in the list is chosen. But if the earlier
		// type matched only a wildcard, the later type is chosen.
		if weight > bestWeight || weight > 0 && weight == bestWeight && !bestNamed {
			best, bestWeight, bestNamed = t, weight, named
		}
	}
	return best, bestWeight > 0
}

// Ranks of the media ranges in Accept. If several ranges match a type, the range with the highest
// rank determines the type's weight.
const (
	acceptRankNone = iota
	acceptRankAny
	acceptRankApplication
	acceptRankExact
)

// mediaTypeWeight returns the weight that Accept assigns to a type, and the rank of the media range
// that determines the weight.
func mediaTypeWeight(ranges []string, t mediaType) (weight float64, rank int) {
	for _, r := range ranges {
		name, parameters, _ := strings.Cut(r, ";")
		rangeRank := acceptRankNone
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case string(t):
			rangeRank = acceptRankExact
		case "application/*":
			rangeRank = acceptRankApplication
		case "*/*":
			rangeRank = acceptRankAny
		}
		if rangeRank > rank && allowsUTF8(parameters) {
			weight, rank = httpheader.Weight(parameters), rangeRank
		}
	}
	return weight, rank
}

// allowsUTF8 reports whether the parameters of a media range allow UTF-8. It ignores all parameters
// except charset.
func allowsUTF8(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "charset") && !strings.EqualFold(strings.Trim(value, `"`), "utf-8") {
			return false
		}
	}
	return true
}

// isJSONContentType reports whether a Content-Type is JSON in UTF-8. Systems must exchange JSON in
// UTF-8 (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
func isJSONContentType(contentType string) bool {
	if contentType == string(typeJSON) { // most clients send exactly this
		return true
	}
	t, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	return err == nil && t == string(typeJSON) && (!given || strings.EqualFold(charset, "utf-8"))
}
