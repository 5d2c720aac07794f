// Package races_test puts the server under what happens to it in production: faults of DynamoDB,
// lost replies, impatient clients and many of them at once. Whatever happens, the table stays
// consistent and each request is done once.
package races_test

import (
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/longtest"
)

func TestMain(m *testing.M) {
	longtest.Checks(3, 30) // each history has a table of its own
	os.Exit(dynamolocal.Main(m))
}
