package enginetest_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/enginetest"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

func TestMain(m *testing.M) {
	// TestDifferential has a table per check and worker. The long run has 40,000 requests.
	longtest.SetRapidChecks(2, 100)
	if err := flag.Set("rapid.steps", strconv.Itoa(longtest.Size(60, 92))); err != nil {
		panic(err) // the flag exists
	}
	if os.Getenv("CI") != "" {
		// CI sends the same requests each time, so that it fails only because of a change.
		if err := flag.Set("rapid.seed", "1"); err != nil {
			panic(err)
		}
	}
	os.Exit(dynamolocal.Main(m))
}

func TestDynamoDBLocal(t *testing.T) {
	t.Parallel()
	inst := dynamolocal.Shared(t)
	enginetest.Run(t, func(*testing.T) *dynamodb.Client { return inst.Client() })
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	store := embedded.New() // all subtests share one store, because each has its own table
	enginetest.Run(t, func(*testing.T) *dynamodb.Client { return store.Client() })
}
