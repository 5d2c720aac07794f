// Package storetest runs tests on both engines: the embedded store and Amazon's DynamoDB Local. It
// also has the fixtures, clients and checks that tests of the Store share.
package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/embedded"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/sampledata"
)

// Engine is a DynamoDB implementation that tests run on.
type Engine struct {
	Name string
	// Client returns a client of the engine. If the engine is not available, Client skips t and logs
	// the reason.
	Client func(t testing.TB) *dynamodb.Client
}

// Engines returns both engines.
func Engines() []Engine {
	return []Engine{
		{"embedded", func(testing.TB) *dynamodb.Client { return embedded.New().Client() }},
		{"dynamodb-local", func(t testing.TB) *dynamodb.Client { return dynamolocal.Shared(t).Client() }},
	}
}

// ForEachEngine runs test on both engines. Use Each where the engines could differ: transactions,
// conditions, pages, streams and all golden files.
func ForEachEngine(t *testing.T, test func(t *testing.T, db *dynamodb.Client)) {
	runOnEngines(t, Engines(), test)
}

// ForEachEngineIfLong runs test on the embedded store. In the long run it uses both engines. Use
// ForEachEngineIfLong for code above the engine, and for tests that write too many records for
// DynamoDB Local.
func ForEachEngineIfLong(t *testing.T, test func(t *testing.T, db *dynamodb.Client)) {
	runOnEngines(t, Engines()[:longtest.Size(1, 2)], test)
}

func runOnEngines(t *testing.T, engines []Engine, test func(t *testing.T, db *dynamodb.Client)) {
	for _, engine := range engines {
		t.Run(engine.Name, func(t *testing.T) { test(t, engine.Client(t)) })
	}
}

// IsEmbedded reports whether t runs on the embedded store. Each must have started t.
func IsEmbedded(t testing.TB) bool { return !strings.Contains(t.Name(), "/dynamodb-local") }

// RunsCase reports whether t runs its i-th case. Each must have started t. The embedded store and
// the long run have all cases. Otherwise DynamoDB Local, which is slow, has every n-th case.
func RunsCase(t testing.TB, n, i int) bool { return IsEmbedded(t) || i%longtest.Size(n, 1) == 0 }

// tableCount counts the tables of this process. The count makes table names unique on the shared
// engine.
var tableCount atomic.Int64

// TableName returns a name that no other table of this process has.
func TableName() string { return fmt.Sprintf("test-%d", tableCount.Add(1)) }

// NewTable creates a table and returns its Store. If opts.Table is empty, NewTable chooses a name.
//
// The table has no stream until Feed enables it. At each write, DynamoDB Local searches the streams
// of all tables it ever had.
func NewTable(t testing.TB, db *dynamodb.Client, opts dynamo.Options) *dynamo.Store {
	t.Helper()
	if opts.Table == "" {
		opts.Table = TableName()
	}
	store, err := dynamo.New(db, opts)
	if err != nil {
		t.Fatal(err)
	}
	creating, err := dynamo.New(dynamodb.New(db.Options(), dynamodb.WithAPIOptions(withoutStream)), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := creating.CreateTable(context.Background()); err != nil {
		t.Fatal(err)
	}
	return store
}

// withoutStream makes CreateTable create tables without a stream.
func withoutStream(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Unstreamed", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if table, ok := in.Parameters.(*dynamodb.CreateTableInput); ok {
			plain := *table
			plain.StreamSpecification = nil
			in.Parameters = &plain
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// Load writes a dataset to the store's table and starts the order counts. If the dataset is empty,
// the table does not count orders, like a table of other software.
func Load(t testing.TB, store *dynamo.Store, dataset commerce.Dataset) {
	t.Helper()
	if len(dataset.Customers)+len(dataset.Products) > 0 {
		if err := store.StartOrderCounts(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Load(context.Background(), dataset); err != nil {
		t.Fatal(err)
	}
}

// SampleStore returns a Store that contains the sample dataset, in a new table.
func SampleStore(t testing.TB, db *dynamodb.Client) *dynamo.Store {
	t.Helper()
	store, _, _ := loadSample(t, db)
	return store
}

// SampleDataset returns the sample dataset and its number of records.
func SampleDataset(t testing.TB) (commerce.Dataset, int) {
	t.Helper()
	_, dataset, records := loadSample(t, embedded.New().Client())
	return dataset, records
}

func loadSample(t testing.TB, db *dynamodb.Client) (*dynamo.Store, commerce.Dataset, int) {
	t.Helper()
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	store := NewTable(t, db, dynamo.Options{})
	records, err := store.Load(context.Background(), dataset)
	if err != nil {
		t.Fatal(err)
	}
	return store, dataset, records
}
