package feed_test

import (
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(5, 100)
	os.Exit(dynamolocal.Main(m))
}
