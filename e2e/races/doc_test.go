// Package races_test puts the server under what happens to it in production: faults of DynamoDB,
// lost replies, impatient clients and many of them at once. Whatever happens, the table stays
// consistent and each request is done once.
package races_test

import (
	"flag"
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/dynamolocal"
)

// checks is how many histories are tried where -rapid.checks does not say so: each has a table of
// its own.
const checks = "30"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(dynamolocal.Main(m))
}
