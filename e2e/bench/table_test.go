package bench_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
	"github.com/ordergraph/ordergraph/internal/test/replay"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// tableRead is a read of the table without GraphQL.
type tableRead struct {
	name string
	// read executes the read and returns the number of records.
	read func(ctx context.Context, store *dynamo.Store) (int, error)
	// want is the number of records, and requests the number of requests to DynamoDB.
	want, requests int
	// allocations is the maximum number of allocations, as in operation.
	allocations float64
}

func tableReads() []tableRead {
	batch := make([]commerce.CustomerID, 50)
	for n := range batch {
		batch[n] = customerID(n)
	}
	return []tableRead{
		{name: "GetItem", want: 1, requests: 1, allocations: 94, read: func(ctx context.Context, store *dynamo.Store) (int, error) {
			found, err := dynamo.ReadRecords(ctx, store, model.OrderByID, []commerce.OrderID{orderID(0)})
			return len(found), err
		}},
		{name: "QueryOf50", want: 50, requests: 1, allocations: 250, read: func(ctx context.Context, store *dynamo.Store) (int, error) {
			page, err := dynamo.ReadPage(ctx, store, model.OrdersByStatus, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(commerce.Pending), Page: dynamo.PageRequest{Limit: 50}})
			return len(page.Items), err
		}},
		{name: "BatchOf50", want: 50, requests: 1, allocations: 454, read: func(ctx context.Context, store *dynamo.Store) (int, error) {
			found, err := dynamo.ReadRecords(ctx, store, model.CustomerByID, batch)
			return len(found), err
		}},
		// Five statuses with the same number of orders are merged into one list.
		{name: "MergeOf50", want: 50, requests: 5, allocations: 613, read: func(ctx context.Context, store *dynamo.Store) (int, error) {
			page, err := dynamo.ReadPage(ctx, store, model.Orders, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 50}})
			return len(page.Items), err
		}},
	}
}

// table returns a Store of a table that contains the dataset. Responses are replayed after the
// first read.
func table(t testing.TB) (*dynamo.Store, *replay.Client) {
	t.Helper()
	db, table := replay.WrapClient(embedded.New().Client())
	store := storetest.NewTable(t, db, dynamo.Options{})
	storetest.LoadDataset(t, store, newDataset(t))
	return store, table
}

// BenchmarkTable measures reads of the table from the call to the decoded records.
func BenchmarkTable(b *testing.B) {
	store, table := table(b)
	for _, r := range tableReads() {
		b.Run(r.name, func(b *testing.B) {
			if n, err := r.read(b.Context(), store); err != nil || n != r.want {
				b.Fatalf("%d records: %v", n, err)
			}
			before, n := table.RequestCount(), 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.read(b.Context(), store); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(table.RequestCount()-before)/float64(n), "dynamodb-requests/op")
		})
	}
}

func TestTableAllocations(t *testing.T) {
	if raceenabled.On || testing.CoverMode() != "" {
		t.Skip("skipped: the race detector and coverage allocate more")
	}
	store, table := table(t)
	for _, r := range tableReads() {
		t.Run(r.name, func(t *testing.T) {
			if n, err := r.read(t.Context(), store); err != nil || n != r.want {
				t.Fatalf("%d records: %v", n, err)
			}
			const runs = 100
			before := table.RequestCount()
			allocations := testing.AllocsPerRun(runs, func() { _, _ = r.read(t.Context(), store) })
			t.Logf("%.0f allocations, at most %.0f allowed", allocations, r.allocations)
			if allocations > r.allocations {
				t.Errorf("a read makes %.0f allocations, want at most %.0f", allocations, r.allocations)
			}
			if requests := table.RequestCount() - before; requests != (runs+1)*r.requests { // AllocsPerRun warms up with one more
				t.Errorf("%d reads made %d requests, want %d", runs+1, requests, (runs+1)*r.requests)
			}
		})
	}
}

// discardingEngine is an engine that accepts every batch and stores nothing.
type discardingEngine struct{}

func (discardingEngine) Do(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	r.Body.Close()
	const empty = `{"UnprocessedItems":{}}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(empty)), ContentLength: int64(len(empty)), Request: r}, err
}

// BenchmarkEncode measures the encoding of orders as records and requests. Each iteration encodes
// 600 orders with 3 items.
func BenchmarkEncode(b *testing.B) {
	db := embedded.New().Client(func(o *dynamodb.Options) { o.HTTPClient = discardingEngine{} })
	store, err := dynamo.New(db, dynamo.Options{Table: "none"})
	if err != nil {
		b.Fatal(err)
	}
	orders := commerce.Dataset{Orders: newDataset(b).Orders}
	b.ReportAllocs()
	for b.Loop() {
		if n, err := store.Load(b.Context(), orders); err != nil || n != len(orders.Orders)*(2+itemsPerOrder) {
			b.Fatal(fmt.Errorf("%d records: %w", n, err))
		}
	}
}
