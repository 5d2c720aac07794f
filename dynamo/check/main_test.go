package check_test

import (
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(10, 100)
	os.Exit(dynamolocal.Main(m))
}
