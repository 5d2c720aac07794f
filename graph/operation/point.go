package operation

import (
	"math"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/document"
)

// These constants define the resources that one point pays for. The smallest request costs one
// point, so PointCPU is about its processor time, including HTTP. TestPointsPayForResources checks
// that no operation uses more than three times the resources that its points pay for.
const (
	// PointCPU is the processor time that one point pays for, on the machine that was used to choose
	// the costs. On other machines, tests use the time in which gqlparser parses about 200 fields.
	PointCPU = 50 * time.Microsecond
	// One point pays for PointBytes bytes of a client's request, or of the data in a response.
	PointBytes = 1 << 10
	// PointReadUnits is the number of DynamoDB read capacity units.
	PointReadUnits = 1
	// PointWriteUnits is the number of DynamoDB write capacity units.
	PointWriteUnits = 1
	// PointParsedNodes is the number of parsed document nodes that one point pays for. The server
	// parses them in about PointCPU.
	PointParsedNodes = 50
	// PointVisitedNodes is the number of visited document nodes that one point pays for. The server
	// visits them in about PointCPU. The nodes of a fragment count once for each spread of the
	// fragment.
	PointVisitedNodes = 250
)

// WorkPoints returns the points for parsing, validating and preparing a document.
func WorkPoints(w document.Work) int { return w.Parsed/PointParsedNodes + w.Visited/PointVisitedNodes }

// WritePoints returns the points for write units.
func WritePoints(units float64) float64 { return math.Ceil(units / PointWriteUnits) }

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
