// Package races_test sends many requests to servers at the same time, and lets a mutation commit
// between the reads and the writes of another. A simulation (e2e/simulation) does this with faults,
// but only with small orders, with the embedded store and on one processor.
package races_test

import (
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }
