// Package races_test runs the server under production conditions: faults of DynamoDB, lost
// responses, impatient clients and many concurrent requests. The table must stay consistent, and
// each request must be executed once.
package races_test

import (
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(3, 30) // each history creates a table
	os.Exit(dynamolocal.Main(m))
}
