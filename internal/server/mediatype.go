package server

import (
	"mime"
	"strings"

	"github.com/ordergraph/ordergraph/internal/accept"
)

// mediaType is a type of body that GraphQL is answered with.
type mediaType string

const (
	// typeJSON is what most clients take. Its status says whether a GraphQL request arrived, not
	// how it went.
	typeJSON mediaType = "application/json"
	// typeGraphQL is the type of GraphQL over HTTP. Its status says also whether the request was
	// executed.
	typeGraphQL mediaType = "application/graphql-response+json"
	// typeEventStream is that of server-sent events, each of which is an answer (eventstream.go).
	typeEventStream mediaType = "text/event-stream"
)

// answerType chooses the type of an answer by the values of Accept; false where none is acceptable.
// Of types that are equally welcome, the one that is named wins over one that a wildcard covers,
// and then GraphQL's own wins. So does no Accept at all mean JSON, as does */*. A stream of events
// has to be named, and wins no tie against another type that is: clients that can read all of them
// get one answer as one.
func answerType(values []string) (mediaType, bool) {
	// What most clients send is not taken apart.
	if len(values) == 0 || len(values) == 1 && (values[0] == "*/*" || values[0] == string(typeJSON)) {
		return typeJSON, true
	}
	ranges := accept.List(values)
	if len(ranges) == 0 {
		return typeJSON, true
	}
	best, bestWeight, bestNamed := typeJSON, 0.0, false
	for _, t := range []mediaType{typeGraphQL, typeJSON, typeEventStream} {
		weight, rank := welcome(ranges, t)
		named := rank == rankNamed
		if t == typeEventStream && !named {
			continue
		}
		// JSON comes second, events third, and they win a tie against what only a wildcard covers.
		if weight > bestWeight || weight > 0 && weight == bestWeight && !bestNamed {
			best, bestWeight, bestNamed = t, weight, named
		}
	}
	return best, bestWeight > 0
}

// Ranks of ranges: the closest one that covers a type gives its weight.
const (
	rankNone = iota
	rankAny
	rankApplication
	rankNamed
)

// welcome is the weight that ranges give to a type, and the rank of the range that gives it.
func welcome(ranges []string, t mediaType) (weight float64, rank int) {
	for _, r := range ranges {
		name, parameters, _ := strings.Cut(r, ";")
		of := rankNone
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case string(t):
			of = rankNamed
		case "application/*":
			of = rankApplication
		case "*/*":
			of = rankAny
		}
		if of > rank && inUTF8(parameters) {
			weight, rank = accept.Weight(parameters), of
		}
	}
	return weight, rank
}

// inUTF8 reports whether parameters ask for no other charset than UTF-8. Other parameters say
// nothing here.
func inUTF8(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if strings.EqualFold(name, "charset") && !strings.EqualFold(strings.Trim(value, `"`), "utf-8") {
			return false
		}
	}
	return true
}

// isJSON reports whether a Content-Type is that of JSON in UTF-8, which is the only charset that
// JSON is exchanged in (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
func isJSON(contentType string) bool {
	if contentType == string(typeJSON) { // what most clients send
		return true
	}
	t, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	return err == nil && t == string(typeJSON) && (!given || strings.EqualFold(charset, "utf-8"))
}
