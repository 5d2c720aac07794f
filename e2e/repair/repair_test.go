// Package repair_test runs checks with repairs during ordinary traffic. The table is always
// consistent, so a check must report nothing and repair nothing.
//
// By default the test takes some seconds. For a thorough run:
//
//	go test ./e2e/repair -v -run /dynamodb-local -for 5m -timeout 10m
package repair_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

var duration = flag.Duration("for", longtest.Size(2*time.Second, 6*time.Second), "how long checks run during traffic")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(dynamolocal.Main(m))
}

const (
	products = 20
	stock    = 20
	// longestPause is the maximum pause of a client between two mutations. It is shorter than a
	// recount of the stock. So during a recount, the stock can change and then return to the same
	// numbers.
	longestPause = 400 * time.Millisecond
	// attempts is the maximum number of attempts per request.
	attempts = 20
)

// newFixture returns a fixture with a customer for each product, so that clients do not conflict.
func newFixture() workload.Fixture {
	return workload.Fixture{Customers: products, Products: products, Warehouses: 1, Employees: 1, Stock: stock}
}

// client repeatedly buys one product and then restores the stock. The product's counters have only
// few different values, so they are often equal before and after a recount.
type client struct {
	*workload.Client
	url     string
	n       int
	random  *rand.Rand
	pause   time.Duration
	changes *atomic.Int64
}

// send sends a mutation after a pause and returns the ID of the changed record.
func (c *client) send(ctx context.Context, field string, input map[string]any) (string, error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(time.Duration(c.random.Int64N(int64(c.pause)))):
	}
	m := workload.Mutation{Field: field, Input: input}
	if keyed := !slices.Contains([]string{"setOrderItem", "removeOrderItem", "setInventoryLevel"}, field); keyed {
		m.Input["idempotencyKey"] = fmt.Sprintf("client-%d-%d", c.n, c.random.Uint64())
	}
	// No request is cancelled, even if the busy machine responds late.
	a, times, err := c.SendWithRetries(context.WithoutCancel(ctx), func() string { return c.url }, m, attempts)
	if err != nil {
		return "", fmt.Errorf("%s %v: %w", field, input, err)
	}
	if removed := field == "removeOrderItem" && times > 1; !a.Succeeded() && !removed {
		return "", fmt.Errorf("%s %v returned user errors: %v", field, input, a)
	}
	c.changes.Add(1)
	return a.Record().ID, nil
}

// step is a mutation of the client's order or product.
type step struct {
	field string
	input map[string]any
}

// completeOrder places one order and completes it in one of several ways. It returns the first
// error of a mutation, including user errors, or the context's error.
func (c *client) completeOrder(ctx context.Context) error {
	sku, other := fmt.Sprintf("p%d", c.n), fmt.Sprintf("p%d", (c.n+1)%products)
	id, err := c.send(ctx, "placeOrder", map[string]any{"customerId": fmt.Sprintf("c%d", c.n), "items": []map[string]any{{"sku": sku, "quantity": 1}}})
	if err != nil {
		return err
	}
	order := func(field string, more ...any) step {
		in := map[string]any{"orderId": id}
		for i := 0; i < len(more); i += 2 {
			in[more[i].(string)] = more[i+1]
		}
		return step{field, in}
	}
	adjust := func(delta int) step {
		return step{"adjustInventory", map[string]any{"sku": sku, "warehouseId": "w0", "delta": delta}}
	}
	if c.random.IntN(2) == 0 {
		_, err := c.send(ctx, "cancelOrder", map[string]any{"orderId": id})
		return err
	}
	ways := [][]step{
		{order("confirmOrder"), order("cancelOrder")},
		{order("confirmOrder"), order("shipOrder", "warehouseId", "w0", "withoutAddress", true), adjust(1)},
		{order("setOrderItem", "sku", sku, "quantity", 2), order("setOrderItem", "sku", sku, "quantity", 1), order("cancelOrder")},
		{adjust(-1), order("confirmOrder"), adjust(1), order("cancelOrder")},
		{order("setOrderItem", "sku", sku, "quantity", 3), order("confirmOrder"), order("shipOrder", "warehouseId", "w0", "withoutAddress", true),
			{"setInventoryLevel", map[string]any{"sku": sku, "warehouseId": "w0", "quantity": stock}}},
		{order("setOrderItem", "sku", other, "quantity", 1), order("removeOrderItem", "sku", other), order("cancelOrder")},
	}
	for _, s := range ways[c.random.IntN(len(ways))] {
		if _, err := c.send(ctx, s.field, s.input); err != nil {
			return err
		}
	}
	return nil
}

// Checks with repairs find nothing in a consistent table while its stock changes, and leave the
// table consistent.
func TestRepairsDuringTraffic(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		table := storetest.TableName()
		store := storetest.NewTable(t, db, dynamo.Options{Table: table})
		storetest.LoadDataset(t, store, newFixture().Dataset(t))
		url := workload.Serve(t, store, io.Discard)
		shared := workload.NewClient()
		t.Cleanup(shared.HTTP.CloseIdleConnections)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var changes atomic.Int64
		var clients sync.WaitGroup
		for n := range products {
			c := &client{Client: shared, url: url, n: n, random: rand.New(rand.NewPCG(1, uint64(n))), pause: longestPause, changes: &changes}
			clients.Go(func() {
				for ctx.Err() == nil {
					if err := c.completeOrder(ctx); err != nil && ctx.Err() == nil {
						t.Errorf("client %d: %v", n, err)
						stop()
					}
				}
			})
		}
		// The recounts have different durations: the default, and shorter durations for an index with
		// little or no lag. With lower parallelism, more time passes between computing the sums and
		// comparing the last sum.
		lags := []time.Duration{100 * time.Millisecond, check.NoIndexLag, longtest.Size(20*time.Millisecond, 0)}
		parallel := []int{8, 1, 2, 1}
		checks, found, unsettled := 0, 0, 0
		for began := time.Now(); ctx.Err() == nil && (checks < 2 || time.Since(began) < *duration); checks++ {
			summary, err := store.CheckRecords(context.WithoutCancel(ctx), check.Options{
				Repair: true, Segments: 4, Parallel: parallel[checks%len(parallel)], IndexLag: lags[checks%len(lags)],
				OnInconsistency: func(d check.Inconsistency) { t.Errorf("check %d reports %+v", checks, d); found++ },
			})
			if err != nil {
				t.Fatalf("check: %v", err)
			}
			unsettled += summary.Unverified
		}
		stop()
		clients.Wait()
		a := storetest.AssertConsistent(t, db, table, 1)
		t.Logf("%d checks during %d mutations in %v: %d findings, %d unsettled; %d orders, %d records",
			checks, changes.Load(), *duration, found, unsettled, len(a.Orders), len(a.Records))
		if changes.Load() < products {
			t.Errorf("%d checks during only %d mutations: the test covers too little", checks, changes.Load())
		}
	})
}
