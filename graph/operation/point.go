package operation

import (
	"math"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/document"
)

// The resources that one point pays for. The smallest request costs one point, so PointCPU is about
// the processor time of that request, including HTTP. No operation uses more than three times the
// resources that its points pay for (TestPointsPayForResources).
const (
	// PointCPU is the processor time, on the machine that determined the cost of points. gqlparser
	// parses about 200 fields in this time, which is how tests measure it on other machines.
	PointCPU = 50 * time.Microsecond
	// PointBytes is the number of bytes of a request, and of a response's data.
	PointBytes = 1 << 10
	// PointReadUnits is the number of DynamoDB read capacity units.
	PointReadUnits = 1
	// PointWriteUnits is the number of DynamoDB write capacity units.
	PointWriteUnits = 1
	// PointParsedNodes is the number of parsed document nodes that one point covers. Parsing them
	// takes about PointCPU.
	PointParsedNodes = 50
	// PointVisitedNodes is the number of visited nodes that one point covers. The nodes of a fragment
	// count once for every spread. Visiting them takes about PointCPU.
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
