// Package storetest runs tests of whatever reads the order book on both engines: the embedded
// store, and Amazon's DynamoDB Local where it can be had.
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

// Engine is one of the engines.
type Engine struct {
	Name string
	// Client returns a client of the engine; where the engine cannot be had, it skips t with the
	// reason.
	Client func(t testing.TB) *dynamodb.Client
}

// Engines returns both engines.
func Engines() []Engine {
	return []Engine{
		{"embedded", func(testing.TB) *dynamodb.Client { return embedded.New().Client() }},
		{"dynamodb-local", func(t testing.TB) *dynamodb.Client { return dynamolocal.Shared(t).Client() }},
	}
}

// Each runs test on both engines. It is for tests of what the engines could do in different ways:
// transactions, conditions, pages, streams, and all golden files.
func Each(t *testing.T, test func(t *testing.T, db *dynamodb.Client)) { on(t, Engines(), test) }

// EachLong runs test on the embedded store, and in the long run on both engines. It is for tests of
// what stands above the engine, and for those that write more records than DynamoDB Local takes in
// a second.
func EachLong(t *testing.T, test func(t *testing.T, db *dynamodb.Client)) {
	on(t, Engines()[:longtest.Size(1, 2)], test)
}

func on(t *testing.T, engines []Engine, test func(t *testing.T, db *dynamodb.Client)) {
	for _, engine := range engines {
		t.Run(engine.Name, func(t *testing.T) { test(t, engine.Client(t)) })
	}
}

// Embedded reports whether a test that Each runs is on the embedded store.
func Embedded(t testing.TB) bool { return !strings.Contains(t.Name(), "/dynamodb-local") }

// Every reports whether a test that Each runs takes its i-th case. It takes all cases on the
// embedded store and in the long run. Otherwise DynamoDB Local, which is slow, gets every n-th.
func Every(t testing.TB, n, i int) bool { return Embedded(t) || i%longtest.Size(n, 1) == 0 }

// tables counts the tables of this process, so that each has a name of its own on the shared
// engine.
var tables atomic.Int64

// TableName returns a name that no other table of this process has.
func TableName() string { return fmt.Sprintf("test-%d", tables.Add(1)) }

// NewTable returns an order book in a new table; where opts.Table is empty, a name is chosen here.
// The table has no stream until Feed is asked for it: DynamoDB Local looks through the streams of
// all tables it ever had at each write.
func NewTable(t testing.TB, db *dynamodb.Client, opts dynamo.Options) *dynamo.Store {
	t.Helper()
	if opts.Table == "" {
		opts.Table = TableName()
	}
	store, err := dynamo.New(db, opts)
	if err != nil {
		t.Fatal(err)
	}
	creating, err := dynamo.New(dynamodb.New(db.Options(), dynamodb.WithAPIOptions(unstreamed)), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := creating.CreateTable(context.Background()); err != nil {
		t.Fatal(err)
	}
	return store
}

// unstreamed has tables made without a stream.
func unstreamed(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Unstreamed", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if table, ok := in.Parameters.(*dynamodb.CreateTableInput); ok {
			plain := *table
			plain.StreamSpecification = nil
			in.Parameters = &plain
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// Load writes a book into the store's table, and counts orders from then on. A table with an empty
// book counts none, like one of other software.
func Load(t testing.TB, store *dynamo.Store, book commerce.Book) {
	t.Helper()
	if len(book.Customers)+len(book.Products) > 0 {
		if err := store.BeginCounts(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Load(context.Background(), book); err != nil {
		t.Fatal(err)
	}
}

// Sample returns the sample order book in a new table.
func Sample(t testing.TB, db *dynamodb.Client) *dynamo.Store {
	t.Helper()
	store, _, _ := loadSample(t, db)
	return store
}

// SampleBook returns the sample order book and the number of its records.
func SampleBook(t testing.TB) (commerce.Book, int) {
	t.Helper()
	_, book, records := loadSample(t, embedded.New().Client())
	return book, records
}

func loadSample(t testing.TB, db *dynamodb.Client) (*dynamo.Store, commerce.Book, int) {
	t.Helper()
	book, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	store := NewTable(t, db, dynamo.Options{})
	records, err := store.Load(context.Background(), book)
	if err != nil {
		t.Fatal(err)
	}
	return store, book, records
}
