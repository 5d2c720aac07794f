package operation

import (
	"math"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/document"
)

// These constants define how much of each resource one point pays for. TestPointsPayForResources in
// package graph checks that no operation uses more than three times the resources that its points
// pay for.
const (
	// CPUTimePerPoint is the processor time that one point pays for, measured on one machine. It is
	// about the time of the smallest request. On other machines, tests replace it with the time
	// that gqlparser needs to parse 200 fields.
	CPUTimePerPoint = 50 * time.Microsecond
	// BytesPerPoint is the number of bytes that one point pays for. It applies to the bytes of a
	// client's request and to the bytes of the data in a response.
	BytesPerPoint = 1 << 10
	// ReadUnitsPerPoint is the number of DynamoDB read capacity units that one point pays for.
	ReadUnitsPerPoint = 1
	// WriteUnitsPerPoint is the number of DynamoDB write capacity units that one point pays for.
	WriteUnitsPerPoint = 1
	// ParsedNodesPerPoint is the number of document nodes that the server parses for one point.
	// This takes about CPUTimePerPoint.
	ParsedNodesPerPoint = 50
	// VisitedNodesPerPoint is the number of document nodes that the server visits for one point
	// after it has parsed the document. This takes about CPUTimePerPoint. The nodes of a fragment
	// count each time that the server visits the fragment.
	VisitedNodesPerPoint = 250
)

// PreparationPoints returns the points for parsing, validating and preparing a document. w contains
// the numbers of processed nodes.
func PreparationPoints(w document.ProcessedNodes) int {
	return w.Parsed/ParsedNodesPerPoint + w.Visited/VisitedNodesPerPoint
}

// WritePoints returns the points for DynamoDB write units.
func WritePoints(units float64) float64 { return math.Ceil(units / WriteUnitsPerPoint) }

// CountValues returns the number of values in the result of a field, including the result itself.
func CountValues(value graphql.Marshaler) int {
	n := 1
	switch value := value.(type) {
	case *graphql.FieldSet:
		for _, field := range value.Values {
			n += CountValues(field)
		}
	case graphql.Array:
		for _, element := range value {
			n += CountValues(element)
		}
	}
	return n
}
