package change_test

import (
	"os"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }
