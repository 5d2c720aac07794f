package operation

import (
	"math"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/document"
)

// These constants define the resources that one point pays for. The smallest request costs one
// point, so CPUTimePerPoint is about its processor time, including HTTP. TestPointsPayForResources checks
// that no operation uses more than three times the resources that its points pay for.
const (
	// CPUTimePerPoint is the processor time that one point pays for, on the machine that was used to choose
	// the costs. On other machines, tests use the time in which gqlparser parses about 200 fields.
	CPUTimePerPoint = 50 * time.Microsecond
	// One point pays for BytesPerPoint bytes of a client's request, or of the data in a response.
	BytesPerPoint = 1 << 10
	// ReadUnitsPerPoint is the number of DynamoDB read capacity units.
	ReadUnitsPerPoint = 1
	// WriteUnitsPerPoint is the number of DynamoDB write capacity units.
	WriteUnitsPerPoint = 1
	// ParsedNodesPerPoint is the number of parsed document nodes that one point pays for. The server
	// parses them in about CPUTimePerPoint.
	ParsedNodesPerPoint = 50
	// VisitedNodesPerPoint is the number of visited document nodes that one point pays for. The server
	// visits them in about CPUTimePerPoint. The nodes of a fragment count once for each spread of the
	// fragment.
	VisitedNodesPerPoint = 250
)

// PreparationPoints returns the points for parsing, validating and preparing a document.
func PreparationPoints(w document.ProcessedNodes) int {
	return w.Parsed/ParsedNodesPerPoint + w.Visited/VisitedNodesPerPoint
}

// WritePoints returns the points for write units.
func WritePoints(units float64) float64 { return math.Ceil(units / WriteUnitsPerPoint) }

// CountValues returns the number of values in a marshaled value, including the value itself.
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
