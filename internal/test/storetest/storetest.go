// Package storetest runs tests of dynamo.Store on two DynamoDB engines: the embedded store and
// Amazon's DynamoDB Local. It also contains fixtures, clients and assertions for these tests.
package storetest

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// Engine is a DynamoDB implementation that tests run on.
type Engine struct {
	Name string
	// Client returns a client of the engine. If the engine is not available, Client skips the test and
	// logs the reason.
	Client func(t testing.TB) *dynamodb.Client
}

// Engines returns both engines.
func Engines() []Engine {
	return []Engine{
		{"embedded", func(testing.TB) *dynamodb.Client { return embedded.New().Client() }},
		{"dynamodb-local", func(t testing.TB) *dynamodb.Client { return dynamolocal.Shared(t).Client() }},
	}
}

// ForEachEngine runs a test on both engines. Use it for golden files. Also use it for behavior in
// which the engines could differ, such as transactions, conditions, pages and streams.
func ForEachEngine(t *testing.T, test func(t *testing.T, db *dynamodb.Client)) {
	runOnEngines(t, Engines(), test)
}

// ForEachEngineIfLong runs a test on the embedded store. If longtest.Enabled returns true, it also
// runs the test on DynamoDB Local. Use it for tests that are slow on DynamoDB Local.
func ForEachEngineIfLong(t *testing.T, test func(t *testing.T, db *dynamodb.Client)) {
	runOnEngines(t, Engines()[:longtest.Size(1, 2)], test)
}

func runOnEngines(t *testing.T, engines []Engine, test func(t *testing.T, db *dynamodb.Client)) {
	for _, engine := range engines {
		t.Run(engine.Name, func(t *testing.T) { test(t, engine.Client(t)) })
	}
}

// IsEmbedded reports whether t runs on the embedded store. It may be called only in tests that
// ForEachEngine or ForEachEngineIfLong has started.
func IsEmbedded(t testing.TB) bool { return !strings.Contains(t.Name(), "/dynamodb-local") }

// RunsCase reports whether t should run test case i. DynamoDB Local is slow, and package enginetest
// compares it with the embedded store. So it runs only every n-th case.
func RunsCase(t testing.TB, n, i int) bool { return IsEmbedded(t) || i%n == 0 }

// CheckProperty calls rapid.Check. On DynamoDB Local, for the same reason, it tests only a tenth of
// the random inputs. It must not run concurrently with another property test.
func CheckProperty(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if checks := flag.Lookup("rapid.checks").Value; !IsEmbedded(t) {
		all := checks.String()
		defer func() { _ = checks.Set(all) }()
		n, _ := strconv.Atoi(all)
		_ = checks.Set(strconv.Itoa((n + 9) / 10))
	}
	rapid.Check(t, property)
}

// tableCount is the number of names that TableName has returned. It makes the names unique.
var tableCount atomic.Int64

// TableName returns a table name that this process has not used before.
func TableName() string { return fmt.Sprintf("test-%d", tableCount.Add(1)) }

// NewTable creates a table and returns its Store. The table has no DynamoDB stream until OpenFeed
// enables it, because streams slow down writes on DynamoDB Local.
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

// withoutStream is an SDK option. It makes CreateTable create tables without a DynamoDB stream.
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

// LoadDataset writes a dataset to the store's table.
func LoadDataset(t testing.TB, store *dynamo.Store, dataset commerce.Dataset) {
	t.Helper()
	if len(dataset.Customers)+len(dataset.Products) > 0 {
		// Without initial order counts, the Store would assume that other software created the table,
		// and would not count orders.
		if err := store.InitOrderCounts(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Load(context.Background(), dataset); err != nil {
		t.Fatal(err)
	}
}

// DeleteLayout deletes the record with the table's layout, as if other software had created the table.
func DeleteLayout(t testing.TB, db *dynamodb.Client, table string) {
	t.Helper()
	key := model.Keys{PK: string(model.EntityLayout.PK), SK: string(model.EntityLayout.SK)}
	if _, err := db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: key.Attributes()}); err != nil {
		t.Fatal(err)
	}
}

// MakeReadable stores that a derivation is readable, although its records may be missing. A check adds them.
func MakeReadable(t testing.TB, r RawTable, derivation string) {
	t.Helper()
	at := r.Get(string(model.EntityLayout.PK), string(model.EntityLayout.SK))
	layout, err := model.DecodeLayout(model.Reader{Record: model.Record(at)})
	if err != nil {
		t.Fatal(err)
	}
	layout.Derivations[derivation] = model.DerivationStatus{State: model.Readable, Since: time.Now().UTC()}
	r.Put(Item(model.LayoutRecord(&model.KeyBuilder{}, *layout)))
	if err := r.Store.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// SampleStore creates a table, loads the sample dataset into it, and returns its Store.
func SampleStore(t testing.TB, db *dynamodb.Client) *dynamo.Store {
	t.Helper()
	store, _, _ := loadSample(t, db)
	return store
}

// SampleDataset returns the sample dataset, and the number of records that a table stores for it.
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
