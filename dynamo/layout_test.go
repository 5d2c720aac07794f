package dynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/loaders"
)

// movingClock is a clock that tests set forward.
type movingClock struct{ now atomic.Pointer[time.Time] }

func newMovingClock(at time.Time) *movingClock {
	c := &movingClock{}
	c.now.Store(&at)
	return c
}

func (c *movingClock) Now() time.Time { return *c.now.Load() }

func (c *movingClock) advance(d time.Duration) {
	at := c.Now().Add(d)
	c.now.Store(&at)
}

// fleet returns two servers of one table. The second one has another setting for the number of shards,
// and must follow the table.
func fleet(t testing.TB, fatal func(...any), db *dynamodb.Client, clock *movingClock) (fleet [2]*dynamo.Store, name string) {
	name, db = storetest.TableName(), storetest.WithoutResponseDate(db)
	fleet[0] = storetest.NewTable(t, db, dynamo.Options{Table: name, Clock: clock.Now})
	second, err := dynamo.New(db, dynamo.Options{Table: name, Clock: clock.Now, Shards: 3})
	fleet[1] = second
	for i, s := range fleet {
		if err == nil {
			err = s.CheckTable(t.Context())
		}
		if err == nil && i == 0 {
			_, err = s.SetShards(t.Context(), 1)
		}
	}
	if err != nil {
		fatal(err)
	}
	return fleet, name
}

// While the number of shards changes, up or down, lists contain each order once and in order, on
// every server. Orders keep their place when they change their status, and are counted where they were
// placed.
func TestShardsChangeWhileServersRun(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		storetest.CheckProperty(t, func(rt *rapid.T) {
			clock := newMovingClock(start)
			servers, name := fleet(t, rt.Fatal, db, clock)
			server := func() *dynamo.Store { return servers[rapid.IntRange(0, 1).Draw(rt, "server")] }
			dataset := datasetOf(rt)
			dataset.Warehouses = []commerce.Warehouse{{ID: "w", Name: "W"}}
			dataset.Levels = []commerce.InventoryLevel{{SKU: "sku", WarehouseID: "w", Quantity: 1000}}
			if err := derive.Complete(&dataset); err != nil {
				rt.Fatal(err)
			}
			if _, err := servers[0].Load(t.Context(), dataset); err != nil {
				rt.Fatal(err)
			}
			if err := servers[0].InitOrderCounts(t.Context()); err != nil {
				rt.Fatal(err)
			}
			confirmed := map[commerce.OrderID]bool{}
			var placed []commerce.OrderID
			caller := change.Caller{Name: "tester"}
			for range rapid.IntRange(1, 25).Draw(rt, "steps") {
				switch rapid.IntRange(0, 5).Draw(rt, "step") {
				case 0:
					clock.advance(time.Millisecond)
					shards := rapid.IntRange(1, 4).Draw(rt, "shards")
					if _, err := server().SetShards(t.Context(), shards); err != nil && !errors.Is(err, table.ErrLayoutChanged) {
						rt.Fatal(err)
					}
				case 1:
					clock.advance(time.Duration(rapid.IntRange(1, 90).Draw(rt, "seconds")) * time.Second)
				case 2:
					if len(placed) > 0 {
						id := rapid.SampledFrom(placed).Draw(rt, "order")
						_, err := server().ChangeOrderStatus(t.Context(), caller, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed})
						confirmed[id] = true
						if err != nil && !commerce.IsUserError(err) {
							rt.Fatal(err)
						}
					}
				default:
					clock.advance(time.Millisecond)
					order, err := server().PlaceOrder(t.Context(), caller, commerce.OrderRequest{CustomerID: "c", Lines: []commerce.OrderLine{{SKU: "sku", Quantity: 1}}})
					if err != nil {
						rt.Fatal(err)
					}
					placed = append(placed, order.ID)
				}
			}
			slices.Sort(placed) // an order can be placed in the same millisecond as an event before it
			for i, s := range servers {
				if got, want := statusCounts(t, rt, s), [2]int{len(placed) - len(confirmed), len(confirmed)}; got != want {
					rt.Errorf("server %d counts %v pending and confirmed orders, want %v", i, got, want)
				}
				for _, fromEnd := range []bool{false, true} {
					got := walk(t, rt, s, fromEnd)
					if !fromEnd {
						slices.Reverse(got)
					}
					if !slices.Equal(got, placed) {
						rt.Errorf("server %d, from the end %t: walked %v, want %v", i, fromEnd, got, placed)
					}
				}
				if got := ordersOfProduct(t, rt, s); !slices.Equal(got, placed) {
					rt.Errorf("server %d: the orders of the product are %v, want %v", i, got, placed)
				}
			}
			storetest.AssertConsistent(rt, db, name, 1)
		})
	})
}

// statusCounts returns the numbers of pending and confirmed orders.
func statusCounts(t *testing.T, rt *rapid.T, s *dynamo.Store) (found [2]int) {
	l := loaders.New(t.Context(), s, access.Viewer{}, func(panicked any) { rt.Fatal(panicked) }, nil)
	counts, err := loaders.Sum(t.Context(), l, model.OrderCounts, "", loaders.StatusCounts)
	if err != nil {
		rt.Fatal(err)
	}
	for _, c := range counts[:len(found)] {
		found[c.Status-commerce.Pending] = c.Count
	}
	return found
}

// ordersOfProduct reads the orders of the product in pages of two, and returns them in ascending order.
func ordersOfProduct(t *testing.T, rt *rapid.T, s *dynamo.Store) (ids []commerce.OrderID) {
	for page := (dynamo.PageRequest{Limit: 2, DetectMore: true}); ; {
		found, err := dynamo.ReadPage(t.Context(), s, model.ProductOrderItems, dynamo.ListRequest{PartitionValue: "sku", Page: page})
		if err != nil {
			rt.Fatal(err)
		}
		for _, item := range found.Items {
			ids = append(ids, item.OrderID)
		}
		if !found.HasNext {
			slices.Reverse(ids)
			return ids
		}
		page.After = found.Positions[len(found.Positions)-1]
	}
}

// walk reads all orders in pages of two.
func walk(t *testing.T, rt *rapid.T, s *dynamo.Store, fromEnd bool) (ids []commerce.OrderID) {
	page := dynamo.PageRequest{Limit: 2, DetectMore: true, FromEnd: fromEnd}
	for {
		found, err := dynamo.ReadPage(t.Context(), s, model.Orders, dynamo.ListRequest{Page: page})
		if err != nil {
			rt.Fatal(err)
		}
		read := orderIDs(found.Items)
		more := found.HasNext
		if fromEnd {
			slices.Reverse(read)
			more = found.HasPrevious
		}
		ids = append(ids, read...)
		if !more {
			return ids
		}
		if fromEnd {
			page.Before = found.Positions[0]
		} else {
			page.After = found.Positions[len(found.Positions)-1]
		}
	}
}

// A server that cannot read the layout for 15 seconds rejects lists and writes, and is not ready. So it
// writes no key of an old layout. It does so at once if its clock is set back, because it does not know then how
// old the layout is. It recovers when it can read the layout again.
func TestAServerWithoutTheLayoutStopsWriting(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), datasetOf(t), dynamo.Options{})
	if err := r.Store.CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	var cut atomic.Bool
	clock := newMovingClock(time.Now())
	client := dynamodb.New(r.DB.Options(), func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.Retryer = aws.NopRetryer{}
		o.HTTPClient = storetest.HTTPFunc(func(request *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(request.Body)
			if err == nil && cut.Load() && strings.HasSuffix(request.Header.Get("X-Amz-Target"), ".GetItem") && strings.Contains(string(body), "LAYOUT") {
				err = errors.New("cut off")
			}
			if err != nil {
				return nil, err
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			return next.Do(request)
		})
	})
	s, err := dynamo.New(client, dynamo.Options{Table: r.Name, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempts := map[string]func() error{
		"a list": func() error {
			_, err := dynamo.ReadPage(t.Context(), s, model.Orders, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 1}})
			return err
		},
		"a mutation": func() error {
			_, err := s.CreateWarehouse(t.Context(), change.Caller{Name: "tester"}, commerce.Warehouse{ID: commerce.WarehouseID(fmt.Sprint(clock.Now().UnixNano())), Name: "W"})
			return err
		},
		"a load": func() error {
			_, err := s.Load(t.Context(), commerce.Dataset{Warehouses: []commerce.Warehouse{{ID: "loaded", Name: "W"}}})
			return err
		},
		"readiness": func() error { return s.Ping(t.Context()) },
	}
	for _, step := range []struct {
		cut     bool
		seconds int
		fails   bool
	}{{false, 30, false}, {true, 4, false}, {true, 17, true}, {false, 0, false}, {true, -3600, true}, {true, 30, true}} {
		clock.advance(time.Duration(step.seconds) * time.Second)
		cut.Store(step.cut)
		for what, try := range attempts {
			err := try()
			fails := step.fails || step.cut && what == "readiness"
			if fails != (err != nil) || step.fails && what != "readiness" && !errors.Is(err, table.ErrLayoutUnknown) {
				t.Errorf("cut off %t, %d s later: %s has the error %v", step.cut, step.seconds, what, err)
			}
		}
	}
}

// Orders are counted with the shard of their own era. The check repairs counters of every era, and an
// import into a table with another layout counts the orders by that layout.
func TestCountersOfEveryEra(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		expectCounts := func(db *dynamodb.Client, name string, shards int) {
			if problems, err := storetest.AuditCounters(t.Context(), db, name, shards); err != nil || len(problems) > 0 {
				t.Errorf("wrong counters: %q, %v", problems, err)
			}
		}
		orderCounts := func(found []check.Inconsistency, _ check.Summary) int {
			return storetest.CountByKind(found)["order-counts"]
		}
		clock := newMovingClock(start)
		dataset := datasetOf(t)
		dataset.Warehouses = []commerce.Warehouse{{ID: "w", Name: "W"}}
		dataset.Levels = []commerce.InventoryLevel{{SKU: "sku", WarehouseID: "w", Quantity: 1000}}
		dataset.Orders = []commerce.OrderWithItems{orderAt(start, 0, "c", commerce.Delivered)}
		dataset.Orders[0].ID = "not-a-ulid"
		if err := derive.Complete(&dataset); err != nil {
			t.Fatal(err)
		}
		opts := dynamo.Options{Clock: clock.Now}
		r := storetest.NewRawTable(t, storetest.WithoutResponseDate(db), dataset, opts)
		if err := r.Store.CheckTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		caller := change.Caller{Name: "tester"}
		byEra := map[int][]commerce.OrderID{}
		for _, shards := range []int{1, 16, 4} {
			if _, err := r.Store.SetShards(t.Context(), shards); err != nil {
				t.Fatal(err)
			}
			clock.advance(2 * time.Minute)
			for range 12 {
				order, err := r.Store.PlaceOrder(t.Context(), caller, commerce.OrderRequest{CustomerID: "c", Lines: []commerce.OrderLine{{SKU: "sku", Quantity: 1}}})
				if err != nil {
					t.Fatal(err)
				}
				byEra[shards] = append(byEra[shards], order.ID)
				clock.advance(time.Second)
			}
		}
		for _, shards := range []int{1, 16, 4} { // all in the last era
			for i, m := range []commerce.OrderStatusChange{{To: commerce.Cancelled}, {To: commerce.Confirmed}, {To: commerce.Confirmed}} {
				m.OrderID = byEra[shards][i]
				if _, err := r.Store.ChangeOrderStatus(t.Context(), caller, m); err != nil {
					t.Fatal(err)
				}
			}
		}
		healthy := r.All()
		counted := map[string]int{}
		for key, rec := range healthy {
			if pk, _, _ := strings.Cut(key, " "); strings.HasPrefix(pk, "ORDER_COUNTS") {
				n, ok := rec["pending"].(*types.AttributeValueMemberN)
				if ok && n.Value != "0" {
					counted[pk]++
				}
			}
		}
		if counted["ORDER_COUNTS"] == 0 || len(counted) < 3 {
			t.Errorf("these partition keys count orders: %v", counted)
		}
		expectCounts(r.DB, r.Name, 1)
		if n := orderCounts(r.Check(check.Options{})); n > 0 {
			t.Errorf("the check reports %d wrong counters", n)
		}

		first, wrong, missing := "", 0, 0
		for _, key := range slices.Sorted(maps.Keys(healthy)) {
			pk, sk, _ := strings.Cut(key, " ")
			if !strings.HasPrefix(pk, "ORDER_COUNTS") || counted[pk] == 0 || pk == first {
				continue
			}
			first = pk // damage one record of each partition key
			if wrong++; pk == "ORDER_COUNTS" || wrong%2 == 0 {
				r.Set(pk, sk, storetest.Item{"pending": storetest.Num("7")})
			} else {
				r.Delete(pk, sk)
				missing++
			}
		}
		r.Put(storetest.Item{"pk": storetest.Str("ORDER_COUNTS#20"), "sk": storetest.Str("PART#1"), "part": storetest.Str("1"), "shard": storetest.Str("20"), "pending": storetest.Num("1")})
		if n := orderCounts(r.Check(check.Options{Repair: true})); n != wrong+1 || missing == 0 {
			t.Errorf("the check found %d wrong counters, want %d", n, wrong+1)
		}
		expectCounts(r.DB, r.Name, 1)
		if n := orderCounts(r.Check(check.Options{})); n > 0 {
			t.Errorf("the check reports %d wrong counters", n)
		}

		text := strings.Join(storetest.ExportWithLayout(t, r.Store, 1), "")
		for _, shards := range []int{1, 8} {
			imported := storetest.NewTable(t, db, dynamo.Options{Shards: shards})
			storetest.Import(t, imported, text, bulk.ImportOptions{})
			expectCounts(db, storetest.StoreTableName(t, imported), shards)
		}

		// Load orders of the second and the third era.
		second, _ := byEra[16][0].Time()
		loaded := commerce.Dataset{Orders: []commerce.OrderWithItems{orderAt(second, 1, "c", commerce.Shipped), orderAt(clock.Now(), 2, "c", commerce.Delivered)}}
		if _, err := r.Store.Load(t.Context(), loaded); err != nil {
			t.Fatal(err)
		}
		if n := orderCounts(r.Check(check.Options{})); n > 0 {
			t.Errorf("after a load, the check reports %d wrong counters", n)
		}
	})
}
