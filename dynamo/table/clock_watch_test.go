package table_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// clocks has the clocks of DynamoDB and of a store. The test sets their difference.
type clocks struct {
	mu    sync.Mutex
	now   time.Time
	ahead time.Duration
}

func (c *clocks) dynamoDB() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clocks) server() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.ahead)
}

// setAhead sets how far the server's clock is ahead. It also advances both clocks, so that the next
// request compares them.
func (c *clocks) setAhead(ahead time.Duration) {
	c.advance(2 * time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = ahead
}

func (c *clocks) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newClockFixture returns a store in a new table with a customer and a product, its clocks and its
// log.
func newClockFixture(t *testing.T, db *dynamodb.Client) (*clocks, *dynamo.Store, *storetest.Log) {
	t.Helper()
	c, log := &clocks{now: time.Now()}, &storetest.Log{}
	store := storetest.NewTable(t, storetest.WithResponseDate(db, c.dynamoDB), dynamo.Options{Clock: c.server, Log: slog.New(slog.NewTextHandler(log, nil))})
	storetest.LoadDataset(t, store, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 100}.Dataset(t))
	return c, store, log
}

func TestWritesAreRejectedWhileClocksDiffer(t *testing.T) {
	ctx := context.Background()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		c, store, log := newClockFixture(t, db)
		writes := map[string]func() error{
			"a mutation": func() error {
				_, err := store.PlaceOrder(ctx, change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}})
				return err
			},
			"loading": func() error {
				_, err := store.Load(ctx, commerce.Dataset{Warehouses: []commerce.Warehouse{{ID: "w7", Name: "Seven"}}})
				return err
			},
			"an import": func() error {
				_, err := store.Import(ctx, strings.NewReader(`{"Item":{"pk":{"S":"NOTE#1"},"sk":{"S":"NOTE"}}}`+"\n"), bulk.ImportOptions{})
				return err
			},
			"a repair": func() error {
				_, err := store.CheckRecords(ctx, check.Options{Repair: true, IndexLag: check.NoIndexLag})
				return err
			},
		}
		for _, step := range []struct {
			ahead   time.Duration
			message string
		}{
			{0, ""}, {25 * time.Hour, "25h0m0s ahead of DynamoDB's"}, {-25 * time.Hour, "25h0m0s behind DynamoDB's"}, {4 * time.Second, ""}, {-4 * time.Second, ""},
			{8 * time.Second, "ahead of"}, {-8 * time.Second, "behind"}, {0, ""},
		} {
			c.setAhead(step.ahead)
			for name, write := range writes {
				// The read makes the client compare the clocks, as the reads of a mutation would.
				if _, err := dynamo.ReadRecords(ctx, store, model.CustomerByID, []commerce.CustomerID{"c0"}); err != nil {
					t.Fatalf("with a clock %s ahead, a read failed: %v", step.ahead, err)
				}
				err := write()
				clock := (*table.ClockError)(nil)
				switch {
				case step.message == "" && err != nil:
					t.Errorf("%s ahead: %s: %v", step.ahead, name, err)
				case step.message != "" && (!errors.As(err, &clock) || !errors.Is(err, table.ErrUnavailable) || !strings.Contains(err.Error(), step.message)):
					t.Errorf("with a clock %s ahead, %s returns the error %v", step.ahead, name, err)
				}
			}
			// A check without repair writes nothing.
			if summary, err := store.CheckRecords(ctx, check.Options{IndexLag: check.NoIndexLag}); err != nil || summary.UnrepairedCount() > 0 {
				t.Errorf("with a clock %s ahead, check found %v, error %v", step.ahead, summary.Found, err)
			}
		}
		if differ, agree := log.Count("writes are rejected"), log.Count("agree again"); differ != 2 || agree != 2 {
			t.Errorf("the log has %d and %d messages, want 2 of each:\n%s", differ, agree, log.String())
		}
	})
}

// A server whose clock is wrong lists no changes of all orders. With a clock that is ahead, it would
// pass changes that the index does not show yet, and clients that continue after them would miss them.
func TestChangesAreNotListedWhileClocksDiffer(t *testing.T) {
	ctx := context.Background()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		c, store, _ := newClockFixture(t, db)
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: store.TableName(), Store: store}, model.Changes)
		since, err := store.ChangesSince(ctx)
		if err != nil {
			t.Fatal(err)
		}
		first := commerce.MinEventIDAt(since)
		c.advance(time.Minute)
		if _, err := store.PlaceOrder(ctx, change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}}); err != nil {
			t.Fatal(err)
		}
		lists := map[string]func() (int, error){
			"a page": func() (int, error) {
				page, err := dynamo.ReadPage(ctx, store, model.AllChanges, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 10, After: string(first)}})
				return len(page.Items), err
			},
			"the changes for webhooks": func() (int, error) {
				events, _, err := store.Changes(ctx, first, commerce.MinEventIDAt(c.server()), 10)
				return len(events), err
			},
		}
		for _, step := range []struct {
			ahead  time.Duration
			listed bool
		}{{time.Hour, false}, {-time.Hour, false}, {4 * time.Second, true}} {
			c.advance(time.Hour)
			c.setAhead(step.ahead)
			for name, list := range lists {
				n, err := list()
				if _, wrong := errors.AsType[*table.ClockError](err); step.listed && (err != nil || n != 1) || !step.listed && (!wrong || n > 0) {
					t.Errorf("with a clock %s ahead, %s has %d changes, error %v", step.ahead, name, n, err)
				}
			}
		}
	})
}

// Requests on the fast path, requests through the SDK, and writes compare the clocks.
func TestEveryRequestComparesTheClocks(t *testing.T) {
	ctx := context.Background()
	dataset := commerce.Dataset{Warehouses: []commerce.Warehouse{{ID: "w7", Name: "Seven"}}}
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		c, fixture, _ := newClockFixture(t, db)
		for name, request := range map[string]func(*dynamo.Store) error{
			"on the fast path": func(store *dynamo.Store) error {
				_, err := dynamo.ReadRecords(ctx, store, model.CustomerByID, []commerce.CustomerID{"c0"})
				return err
			},
			"through the SDK": func(store *dynamo.Store) error { _, err := store.DescribeTable(ctx); return err },
			"a write": func(store *dynamo.Store) error {
				_, err := store.CreateWarehouse(ctx, change.Caller{Name: "test"}, commerce.Warehouse{Name: "Eight"})
				return err
			},
		} {
			// A new store does not follow the layout, so only the request compares the clocks.
			store, err := dynamo.New(storetest.WithResponseDate(db, c.dynamoDB), dynamo.Options{Table: fixture.TableName(), Clock: c.server})
			if err != nil {
				t.Fatal(err)
			}
			c.setAhead(-time.Hour)
			if err := request(store); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			clock := (*table.ClockError)(nil)
			if _, err := store.Load(ctx, dataset); !errors.As(err, &clock) { // Load does not read, so it does not compare
				t.Errorf("%s: got %v", name, err)
			}
			c.setAhead(0)
			if err := store.Ping(ctx); err != nil {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// Slow requests, and the fraction of a second that a Date omits, do not count as a difference.
func TestSlowRequestsDoNotMakeClocksDiffer(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		c := &clocks{now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
		dated := storetest.WithResponseDate(db, c.dynamoDB)
		var before, after time.Duration
		slow := dynamodb.New(dated.Options(), func(o *dynamodb.Options) {
			next := o.HTTPClient
			o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				c.advance(before)
				defer c.advance(after)
				return next.Do(r)
			})
		})
		store := storetest.NewTable(t, slow, dynamo.Options{Clock: c.server})
		for _, ahead := range []time.Duration{0, 4 * time.Second, -4 * time.Second} {
			for _, before = range []time.Duration{0, time.Minute} {
				for _, after = range []time.Duration{0, time.Minute} {
					for _, fraction := range []time.Duration{0, 999 * time.Millisecond} {
						c.setAhead(ahead)
						c.advance(fraction)
						if err := store.Ping(context.Background()); err != nil {
							t.Errorf("clock %s ahead, %s before the response, %s after the response: %v", ahead, before, after, err)
						}
					}
				}
			}
		}
	})
}

// A clock that jumps during a request is found by the next one, also in the same second. The first one
// cannot show it, because DynamoDB may have sent its Date before or after the jump.
func TestClockThatJumpsDuringARequest(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		c, jump := &clocks{now: time.Now()}, time.Duration(0)
		dated := storetest.WithResponseDate(db, c.dynamoDB)
		jumping := dynamodb.New(dated.Options(), func(o *dynamodb.Options) {
			next := o.HTTPClient
			o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				response, err := next.Do(r)
				c.mu.Lock()
				defer c.mu.Unlock()
				c.ahead, jump = c.ahead+jump, 0
				return response, err
			})
		})
		store := storetest.NewTable(t, jumping, dynamo.Options{Clock: c.server})
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			c.setAhead(0)
			jump = ahead
			_ = store.Ping(t.Context())
			if err := store.Ping(t.Context()); !errors.As(err, new(*table.ClockError)) {
				t.Errorf("after a jump by %s, got %v", ahead, err)
			}
		}
	})
}

// Responses without a Date are not compared.
func TestResponsesWithoutDate(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, storetest.WithoutResponseDate(db), dynamo.Options{Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		if err := store.Ping(context.Background()); err != nil {
			t.Error(err)
		}
		storetest.LoadDataset(t, store, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 100}.Dataset(t))
	})
}
