package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// liveShop is a shop whose servers work while its table changes.
type liveShop struct {
	*testing.T
	db    *dynamodb.Client
	table string
	// elapsed is added to the system's time. Operations hold running for reading, so that no time elapses
	// during an operation.
	elapsed atomic.Int64
	running sync.RWMutex
	// cut reports whether the last server cannot reach the table. killed counts interrupted commands.
	cut    atomic.Bool
	killed atomic.Int64

	mu     sync.Mutex
	placed []commerce.OrderID
	// times are the durations of the operations, by phase.
	times map[string][]time.Duration
	phase string
}

const liveCustomers, liveProducts = 40, 10

func (s *liveShop) now() time.Time { return time.Now().Add(time.Duration(s.elapsed.Load())) }

// wait lets more time elapse than the servers need to follow a change of the layout.
func (s *liveShop) wait() {
	s.running.Lock()
	defer s.running.Unlock()
	s.elapsed.Add(int64(2 * time.Minute))
}

// client returns a client whose requests fail with an error of before. The error of after loses the
// response to an executed request.
func (s *liveShop) client(before, after func() error) *dynamodb.Client {
	return dynamodb.New(s.db.Options(), func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
			if err := before(); err != nil {
				return nil, err
			}
			response, err := next.Do(r)
			if err == nil {
				if lost := after(); lost != nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					return nil, lost
				}
			}
			return response, err
		})
	})
}

// open returns a server or command that uses the table.
func (s *liveShop) open(db *dynamodb.Client) *dynamo.Store {
	store, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: s.table, Clock: s.now})
	if err != nil {
		s.Fatal(err)
	}
	return store
}

// serve returns a server that has checked the table.
func (s *liveShop) serve(db *dynamodb.Client) *dynamo.Store {
	server := s.open(db)
	if err := server.CheckTable(s.Context()); err != nil {
		s.Fatal(err)
	}
	return server
}

// work executes random operations on a server until ctx ends. No operation may fail, unless the server
// is cut off from the table.
func (s *liveShop) work(ctx context.Context, seed uint64, server *dynamo.Store, canBeCut bool) {
	random := rand.New(rand.NewPCG(seed, 1))
	caller := change.Caller{Name: "tester"}
	var own []commerce.OrderID
	for n := 0; ctx.Err() == nil; n++ {
		customer := commerce.CustomerID(fmt.Sprintf("c%d", random.IntN(liveCustomers)))
		product := commerce.SKU(fmt.Sprintf("p%d", random.IntN(liveProducts)))
		var err error
		s.running.RLock()
		began, cut := time.Now(), canBeCut && s.cut.Load()
		switch n % 8 {
		case 0, 1:
			var order *commerce.Order
			if order, err = server.PlaceOrder(context.Background(), caller, commerce.OrderRequest{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: product, Quantity: 1}}}); err == nil {
				own = append(own, order.ID)
				s.mu.Lock()
				s.placed = append(s.placed, order.ID)
				s.mu.Unlock()
			}
		case 2:
			if len(own) > 0 {
				_, err = server.ChangeOrderStatus(context.Background(), caller, commerce.OrderStatusChange{OrderID: own[random.IntN(len(own))], To: []commerce.Status{commerce.Confirmed, commerce.Cancelled}[random.IntN(2)]})
			}
		case 3:
			name := fmt.Sprintf("Name %d of %d", n, seed)
			email := fmt.Sprintf("c%d.%d@example.com", n, seed)
			_, err = server.UpdateCustomer(context.Background(), caller, commerce.CustomerChange{ID: customer, Name: &name, Email: &email})
		case 4:
			_, err = server.CreateCustomer(context.Background(), caller, commerce.Customer{Name: fmt.Sprintf("New %d of %d", n, seed), Email: fmt.Sprintf("new%d.%d@example.com", n, seed)})
		case 5:
			var warehouse *commerce.Warehouse
			if warehouse, err = server.CreateWarehouse(context.Background(), caller, commerce.Warehouse{Name: "W"}); err == nil {
				_, err = server.SetInventoryLevel(context.Background(), caller, commerce.InventoryLevelChange{SKU: product, WarehouseID: warehouse.ID, Quantity: new(5)})
			}
		case 6:
			_, err = dynamo.ReadPage(context.Background(), server, model.OrdersByStatus, dynamo.ListRequest{PartitionValue: "pending", Page: dynamo.PageRequest{Limit: 5, DetectMore: true}})
		case 7:
			_, err = dynamo.ReadPage(context.Background(), server, model.CustomersByName, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 5}})
			if _, missing := errors.AsType[*model.DerivationUnavailable](err); missing {
				err = nil // while the list is dropped
			}
		}
		took := time.Since(began)
		cut = cut || canBeCut && s.cut.Load()
		s.running.RUnlock()
		if err != nil && !commerce.IsUserError(err) && !cut && !errors.Is(err, table.ErrLayoutUnknown) {
			s.Errorf("operation %d on server %d: %v", n%8, seed, err)
		}
		s.mu.Lock()
		s.times[s.phase] = append(s.times[s.phase], took)
		s.mu.Unlock()
	}
}

// walk reads all orders in pages until ctx ends, and requires each order placed before the walk once.
func (s *liveShop) walk(ctx context.Context, server *dynamo.Store) {
	for ctx.Err() == nil {
		s.mu.Lock()
		before := slices.Clone(s.placed)
		s.mu.Unlock()
		seen := map[commerce.OrderID]int{}
		page := dynamo.PageRequest{Limit: 20, DetectMore: true}
		for {
			found, err := dynamo.ReadPage(context.Background(), server, model.Orders, dynamo.ListRequest{Page: page})
			if err != nil {
				s.Error(err)
				return
			}
			for _, o := range found.Items {
				seen[o.ID]++
			}
			if !found.HasNext {
				break
			}
			page.After = found.Positions[len(found.Positions)-1]
		}
		for _, id := range before {
			if seen[id] == 0 {
				s.Errorf("a walk does not contain %s", id)
			}
		}
		for id, n := range seen {
			if n > 1 {
				s.Errorf("a walk contains %s %d times", id, n)
			}
		}
	}
}

// killing repeats a command that is killed at random points, until it is done.
func (s *liveShop) killing(random *rand.Rand, kills int, command func(context.Context, *dynamo.Store) error) {
	for {
		ctx, kill := context.WithCancel(context.Background())
		left := atomic.Int64{}
		left.Store(1 << 40)
		if kills > 0 {
			left.Store(1 + random.Int64N(40))
		}
		lost := random.IntN(2) == 0
		end := func(when bool) func() error {
			return func() error {
				if when && left.Add(-1) <= 0 {
					kill()
				}
				if when {
					return ctx.Err()
				}
				return nil
			}
		}
		store := s.open(s.client(end(!lost), end(lost)))
		err := store.CheckTable(ctx)
		if err == nil {
			err = command(ctx, store)
		}
		killed := ctx.Err() != nil
		kill()
		switch {
		case killed:
			kills--
			s.killed.Add(1)
		case err != nil:
			s.Error(err)
			return
		default:
			return
		}
	}
}

// The table changes while servers work: shards up and down, lists, a number and a claim dropped and
// added, with commands that are killed at random points, and a server that is cut off from the table. No
// operation fails, walks contain each order once, and the table ends as if it had always been like that.
func TestTableChangesWhileServersWork(t *testing.T) {
	claim := &model.Entity{Name: "nameClaim", Description: "claim of a customer's name", PK: "CUSTOMER_NAMED#{name}", SK: "#METADATA", Kind: model.Claim, Of: &model.EntityCustomer, Added: true}
	t.Cleanup(model.DeclareEntities(claim))
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := &liveShop{T: t, db: db, table: storetest.TableName(), times: map[string][]time.Duration{}, phase: "before"}
		first := storetest.NewTable(t, storetest.WithoutResponseDate(db), dynamo.Options{Table: s.table, Clock: s.now})
		storetest.LoadDataset(t, first, workload.Fixture{Customers: liveCustomers, Products: liveProducts, Warehouses: 2, Stock: 1_000_000}.Dataset(t))
		storetest.DeleteLayout(t, db, s.table) // as if an older version had created the table

		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var workers sync.WaitGroup
		cutOff := s.client(func() error {
			if s.cut.Load() {
				return errors.New("cut off")
			}
			return nil
		}, func() error { return nil })
		cutOff = dynamodb.New(cutOff.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
		for i, server := range []*dynamo.Store{s.serve(db), s.serve(db), s.serve(cutOff)} {
			workers.Go(func() { s.work(ctx, uint64(i), server, i == 2) })
		}
		walker := s.serve(db)
		workers.Go(func() { s.walk(ctx, walker) })
		s.until(longtest.Size(100, 1000))

		s.enter("during")
		random := rand.New(rand.NewPCG(7, 7))
		opts := dynamo.DerivationOptions{Parallel: 4, Segments: 5, IndexLag: check.NoIndexLag, OnStatus: func(status model.DerivationStatus) {
			if status.Done == 0 {
				s.wait()
			}
		}}
		kills := longtest.Size(2, 4)
		if strings.Contains(t.Name(), "dynamodb-local") {
			kills = 2 // a minute instead of several
		}
		steps := []struct {
			shards      int
			drop, apply string
		}{{16, "customerName", "customerEmail"}, {4, "productName", "warehouse.productCount"}, {4, "customerEmail", "customerEmail"}, {4, "customerRep", claim.Name}, {4, claim.Name, claim.Name}}
		for _, step := range steps {
			s.killing(random, kills/4, func(ctx context.Context, store *dynamo.Store) error {
				_, err := store.SetShards(ctx, step.shards)
				return err
			})
			s.cut.Store(true)
			s.killing(random, kills, func(ctx context.Context, store *dynamo.Store) error {
				_, err := store.DropDerivation(ctx, derivation(t, step.drop), opts)
				return err
			})
			s.cut.Store(false)
			for _, name := range []string{step.apply, step.drop} {
				s.killing(random, kills, func(ctx context.Context, store *dynamo.Store) error {
					_, err := store.ApplyDerivation(ctx, derivation(t, name), opts)
					return err
				})
			}
		}
		s.enter("after")
		stop()
		workers.Wait()
		storetest.AssertConsistent(t, db, s.table, 1)
		s.assertLikeNew()
		for name, status := range s.serve(db).Derivations() {
			if status.State != model.Readable && name != model.StockBucketStock && name != model.OrderAdjustments && name != model.OrderFulfillments && name != model.OrderErased && name != model.EntityDailySales.Name && name != model.EntityLowStock.Name && name != model.StatusChanges && name != model.Changes && name != model.EntityPaymentDue.Name && name != model.EntityOrderExpiry.Name && name != model.EntityOrderTag.Name && name != model.EntityOrderWaiting.Name && name != model.OrderReturnsFeature && name != model.OrderGuests {
				t.Errorf("%s is %s", name, status)
			}
		}
		t.Logf("%d orders, %d killed commands, 99th percentile before %s, during %s", len(s.placed), s.killed.Load(), percentile(s.times["before"]), percentile(s.times["during"]))
	})
}

// assertLikeNew requires that the records are the same in a new table with the same layout.
func (s *liveShop) assertLikeNew() {
	again := storetest.NewTable(s, storetest.WithoutResponseDate(s.db), dynamo.Options{Clock: s.now})
	name := storetest.StoreTableName(s, again)
	layout, err := s.db.GetItem(s.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: model.Keys{PK: "LAYOUT", SK: "#METADATA"}.Attributes()})
	if err == nil {
		_, err = s.db.PutItem(s.Context(), &dynamodb.PutItemInput{TableName: &name, Item: layout.Item})
	}
	if err == nil {
		err = again.CheckTable(s.Context())
	}
	lines := storetest.Export(s, s.serve(s.db), 1)
	if err == nil {
		_, err = again.Import(s.Context(), strings.NewReader(strings.Join(lines, "")), bulk.ImportOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
	imported := storetest.Export(s, again, 1)
	zeros := regexp.MustCompile(`("N":"[0-9]+\.[0-9]*?)0+"`) // DynamoDB Local keeps the zeros of sums
	for _, all := range [][]string{lines, imported} {
		for i, line := range all {
			all[i] = strings.ReplaceAll(zeros.ReplaceAllString(line, `$1"`), `."}`, `"}`)
		}
	}
	slices.Sort(lines)
	slices.Sort(imported)
	for i, line := range imported {
		if i >= len(lines) || line != lines[i] {
			s.Fatalf("a new table with the same records contains %s, want %s", line, lines[min(i, len(lines)-1)])
		}
	}
}

// until waits until the servers have executed n operations in the current phase.
func (s *liveShop) until(n int) {
	for {
		s.running.Lock()
		s.mu.Lock()
		done := len(s.times[s.phase])
		s.mu.Unlock()
		s.running.Unlock()
		if done >= n || s.Failed() {
			return
		}
	}
}

func (s *liveShop) enter(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

// percentile returns the 99th percentile of durations.
func percentile(all []time.Duration) time.Duration {
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)*99/100]
}
