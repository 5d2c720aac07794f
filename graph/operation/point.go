package operation

import (
	"math"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/graph/document"
)

// What one point pays for. The smallest request costs one point, so the processor time of a point
// is about what that request takes, HTTP included. No operation takes more than three times what
// its points pay for (TestPointsPayForResources).
const (
	// PointCPU is the processor time, on the machine where the prices were set. It is about what
	// gqlparser takes to parse 200 fields, which is how tests measure it on other machines.
	PointCPU = 50 * time.Microsecond
	// PointBytes is the number of bytes of a request, and of an answer's data.
	PointBytes = 1 << 10
	// PointReadUnits is the number of DynamoDB's read capacity units.
	PointReadUnits = 1
	// PointWriteUnits is the number of DynamoDB's write capacity units.
	PointWriteUnits = 1
	// PointParsed is the number of nodes of a document that are parsed. They take about PointCPU.
	PointParsed = 50
	// PointVisited is the number of nodes that are visited, in place of the spreads of fragments.
	// They take about PointCPU.
	PointVisited = 250
)

// WorkPoints returns the points for a document that was parsed, validated and prepared.
func WorkPoints(w document.Work) int { return w.Parsed/PointParsed + w.Visited/PointVisited }

// WritePoints returns the points for write units.
func WritePoints(units float64) float64 { return math.Ceil(units / PointWriteUnits) }

// CountValues returns the number of values in a value that was marshaled: itself, and those in it.
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
