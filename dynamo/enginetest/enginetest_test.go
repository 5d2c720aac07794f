package enginetest_test

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/enginetest"
	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/embedded"
)

func TestMain(m *testing.M) { os.Exit(dynamolocal.Main(m)) }

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
