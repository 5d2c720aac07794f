// Package repair_test lets checks with repairs run beside ordinary traffic. The table is sound all
// the time, so nothing may be found, and nothing repaired.
//
// By default it takes some seconds. The real thing is
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
	"github.com/ordergraph/ordergraph/internal/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

var duration = flag.Duration("for", longtest.Size(2*time.Second, 6*time.Second), "how long checks run beside traffic")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(dynamolocal.Main(m))
}

const (
	products = 20
	stock    = 20
	// longestPause is how long a client waits at most between two mutations: shorter than a recount
	// takes, so that stock changes and changes back while it is counted.
	longestPause = 400 * time.Millisecond
	// attempts is how often a request is made that gets no answer.
	attempts = 20
)

// world has a customer for each product, so that clients do not wait for each other.
func world() shoptest.World {
	return shoptest.World{Customers: products, Products: products, Warehouses: 1, Employees: 1, Stock: stock}
}

// client buys one product again and again, and leaves the stock as it was each time. Its counters
// take few values, so they are often the same before and after a recount.
type client struct {
	*shoptest.Client
	url     string
	n       int
	random  *rand.Rand
	pause   time.Duration
	changes *atomic.Int64
}

// send makes a mutation after a pause, and returns the ID of the record that it changed.
func (c *client) send(ctx context.Context, field string, input map[string]any) (string, error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(time.Duration(c.random.Int64N(int64(c.pause)))):
	}
	m := shoptest.Mutation{Field: field, Input: input}
	if keyed := !slices.Contains([]string{"setOrderItem", "removeOrderItem", "setInventoryLevel"}, field); keyed {
		m.Input["idempotencyKey"] = fmt.Sprintf("client-%d-%d", c.n, c.random.Uint64())
	}
	// A request that has begun is made to its end, also on a machine that is too busy to answer in
	// time.
	a, times, err := c.Insist(context.WithoutCancel(ctx), func() string { return c.url }, m, attempts)
	if err != nil {
		return "", fmt.Errorf("%s %v: %w", field, input, err)
	}
	if removed := field == "removeOrderItem" && times > 1; !a.Done() && !removed {
		return "", fmt.Errorf("%s %v is refused: %v", field, input, a)
	}
	c.changes.Add(1)
	return a.Record().ID, nil
}

// step is a mutation of the client's order or product.
type step struct {
	field string
	input map[string]any
}

// trade makes one order, and brings it to its end in one of several ways.
//
// Errors: the first one of a mutation, a refusal included; the context's.
func (c *client) trade(ctx context.Context) error {
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

// Checks with repairs find nothing in a sound table, however its stock moves meanwhile, and leave
// it sound.
func TestRepairsBesideTraffic(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		table := storetest.TableName()
		store := storetest.NewTable(t, db, dynamo.Options{Table: table})
		storetest.Load(t, store, world().Book(t))
		url := shoptest.Serve(t, store, io.Discard)
		shared := shoptest.NewClient()
		t.Cleanup(shared.HTTP.CloseIdleConnections)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var changes atomic.Int64
		var clients sync.WaitGroup
		for n := range products {
			c := &client{Client: shared, url: url, n: n, random: rand.New(rand.NewPCG(1, uint64(n))), pause: longestPause, changes: &changes}
			clients.Go(func() {
				for ctx.Err() == nil {
					if err := c.trade(ctx); err != nil && ctx.Err() == nil {
						t.Errorf("client %d: %v", n, err)
						stop()
					}
				}
			})
		}
		// Recounts of several lengths: the default one, and those of an index that lags little or
		// not at all. The fewer products are verified at once, the longer ago were the sums made
		// that the last ones are compared with.
		lags := []time.Duration{0, 100 * time.Millisecond, check.NoIndexLag}
		parallel := []int{8, 1, 2, 1}
		checks, found, unsettled := 0, 0, 0
		for began := time.Now(); ctx.Err() == nil && (checks < 2 || time.Since(began) < *duration); checks++ {
			summary, err := store.CheckRecords(context.WithoutCancel(ctx), check.Options{
				Repair: true, Segments: 4, Parallel: parallel[checks%len(parallel)], IndexLag: lags[checks%len(lags)],
				Found: func(d check.Drift) { t.Errorf("check %d found %+v", checks, d); found++ },
			})
			if err != nil {
				t.Fatalf("check: %v", err)
			}
			unsettled += summary.Unsettled
		}
		stop()
		clients.Wait()
		a := storetest.Clean(t, db, table, 1)
		t.Logf("%d checks beside %d mutations in %v: %d findings, %d times something was unsettled; %d orders, %d records",
			checks, changes.Load(), *duration, found, unsettled, len(a.Orders), len(a.Records))
		if changes.Load() < products {
			t.Errorf("%d checks beside %d mutations: the test is weaker than it says", checks, changes.Load())
		}
	})
}
