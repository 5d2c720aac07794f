package dynamo_test

import (
	"bytes"
	cryptorand "crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// throttledShop is a shop on a table that throttles requests. Its clock moves only while a throttled
// request waits, so it shows the time that the busiest partition needs.
type throttledShop struct {
	*testing.T
	*dynamo.Store
	engine *embedded.Store
	now    time.Time
	// throttled contains the number of throttled actions for each partition key. The key of all index
	// entries is "index".
	throttled map[string]int
	orders    int
}

const shopCustomers, shopProducts, shopEmployees = 200, 50, 20

// newThrottledShop returns a shop with the given number of shards. entropy returns the source of random
// bytes for IDs.
func newThrottledShop(t *testing.T, shards int, entropy func(*throttledShop) io.Reader) *throttledShop {
	t.Helper()
	s := &throttledShop{T: t, throttled: map[string]int{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	engine, err := embedded.Open("", embedded.Options{Now: clock, Throttle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	s.engine = engine
	db := engine.Client(func(o *dynamodb.Options) { o.HTTPClient = s })
	s.Store = storetest.NewTable(t, db, dynamo.Options{Shards: shards, Clock: clock, Entropy: entropy(s)})
	storetest.LoadDataset(t, s.Store, workload.Fixture{Customers: shopCustomers, Products: shopProducts, Warehouses: 1, Employees: shopEmployees, Stock: 1_000_000}.Dataset(t))
	return s
}

func cryptoEntropy(*throttledShop) io.Reader { return cryptorand.Reader }

// firstShardEntropy is the entropy of orders that are all in the first of several shards.
func firstShardEntropy(shards int) func(*throttledShop) io.Reader {
	return func(s *throttledShop) io.Reader {
		return readerFunc(func(p []byte) (int, error) {
			for {
				_, _ = cryptorand.Read(p)
				var id ulid.ULID
				if err := id.SetTime(uint64(s.now.UnixMilli())); err != nil {
					return 0, err
				}
				if copy(id[6:], p); model.ShardOf(id.String(), shards) == 0 {
					return len(p), nil
				}
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Do sends a request to the engine until it is not throttled.
func (s *throttledShop) Do(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	for {
		r.Body = io.NopCloser(bytes.NewReader(request))
		response, err := s.engine.Do(r)
		if err != nil || response.StatusCode == http.StatusOK {
			return response, err
		}
		answer, err := io.ReadAll(response.Body)
		if err != nil || !s.addThrottled(request, answer) {
			response.Body = io.NopCloser(bytes.NewReader(answer))
			return response, err
		}
		s.now = s.now.Add(10 * time.Millisecond)
	}
}

// addThrottled reports whether the engine has throttled a transaction, and counts its throttled
// actions.
func (s *throttledShop) addThrottled(request, answer []byte) bool {
	type keys struct{ PK struct{ S string } }
	var transaction struct {
		TransactItems []struct {
			Put            struct{ Item keys }
			Update, Delete struct{ Key keys }
		}
	}
	var failure struct {
		CancellationReasons []struct{ Code, Message string }
	}
	if json.Unmarshal(request, &transaction) != nil || json.Unmarshal(answer, &failure) != nil {
		return false
	}
	throttled := false
	for i, reason := range failure.CancellationReasons {
		if reason.Code != "ThrottlingError" {
			continue
		}
		throttled = true
		a := transaction.TransactItems[i]
		key := a.Put.Item.PK.S + a.Update.Key.PK.S + a.Delete.Key.PK.S
		if strings.Contains(reason.Message, "global secondary indexes") {
			key = "index"
		}
		s.throttled[key]++
	}
	return throttled
}

// rate calls mutate n times, and returns how many calls the table accepted each second.
func (s *throttledShop) rate(n int, mutate func() error) float64 {
	s.Helper()
	began := s.now
	for range n {
		if err := mutate(); err != nil {
			s.Fatal(err)
		}
	}
	return float64(n) / s.now.Sub(began).Seconds()
}

// deliver places an order, and then confirms, ships and delivers it.
func (s *throttledShop) deliver() error {
	i := s.orders
	s.orders++
	caller := change.Caller{Name: "test"}
	order, err := s.PlaceOrder(s.Context(), caller, commerce.OrderRequest{
		CustomerID: commerce.CustomerID(fmt.Sprint("c", i%shopCustomers)), Lines: []commerce.OrderLine{{SKU: commerce.SKU(fmt.Sprint("p", i%shopProducts)), Quantity: 1}}})
	for _, m := range []commerce.OrderStatusChange{{To: commerce.Confirmed}, {To: commerce.Shipped, WarehouseID: "w0", WithoutAddress: true}, {To: commerce.Delivered}} {
		if err != nil {
			return err
		}
		m.OrderID = order.ID
		_, err = s.ChangeOrderStatus(s.Context(), caller, m)
	}
	return err
}

// With one shard, all orders change counters with one partition key, which limits the whole shop to
// 125 orders a second.
func TestOrdersPerSecond(t *testing.T) {
	t.Parallel()
	s := newThrottledShop(t, 1, cryptoEntropy)
	s.rate(200, s.deliver) // uses up the capacity of the first second
	if rate := s.rate(250, s.deliver); rate < 120 || rate > 130 {
		t.Errorf("%v orders a second, want 125", rate)
	}
	if len(s.throttled) != 1 || s.throttled["ORDER_COUNTS"] == 0 {
		t.Errorf("these partition keys were throttled: %v, want ORDER_COUNTS", s.throttled)
	}
}

// docs/scale.md contains the orders a second that sharded keys accept. The test places only the orders
// of one shard, because each shard has keys of its own. One of n shards gets 1/n of the orders.
func TestGoldenOrdersPerSecondOfOneShard(t *testing.T) {
	t.Parallel()
	cells := [][]string{{"shards", "orders a second", "throttled key"}}
	for _, shards := range []int{1, 16, 128} {
		s := newThrottledShop(t, shards, firstShardEntropy(shards))
		order := func() error {
			s.now = s.now.Add(time.Millisecond) // the next order must not get the time of an earlier event
			return s.deliver()
		}
		s.rate(180, order) // uses up the capacity of the first second
		clear(s.throttled)
		rate := s.rate(150, order)
		keys := slices.Sorted(maps.Keys(s.throttled))
		for i, key := range keys {
			keys[i] = markdown.CodeCell(key)
		}
		cells = append(cells, []string{fmt.Sprint(shards), fmt.Sprint(int(math.Round(rate/5)*5) * shards), strings.Join(keys, ", ")})
	}
	golden.CheckSection(t, "../docs/scale.md", "limits", markdown.Table(cells))
}

// Clients place and deliver 400 orders a second. A table with one shard throttles them, and a table
// with 16 shards does not.
func TestShardsRaiseOrdersPerSecond(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 16} {
		s := newThrottledShop(t, shards, cryptoEntropy)
		rate := s.rate(350, func() error {
			s.now = s.now.Add(time.Second / 400)
			return s.deliver()
		})
		switch {
		case shards == 1 && (rate > 250 || len(s.throttled) != 1 || s.throttled["ORDER_COUNTS"] == 0):
			t.Errorf("%v orders a second with one shard, and these partition keys were throttled: %v; want at most 250 orders, and ORDER_COUNTS", rate, s.throttled)
		case shards == 16 && len(s.throttled) != 0:
			t.Errorf("%v orders a second with 16 shards, and these partition keys were throttled: %v", rate, s.throttled)
		}
	}
}

// Lists with one shard accept 1,000 new customers a second. Lists with 16 shards accept more.
func TestShardsRaiseThroughput(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 16} {
		s := newThrottledShop(t, shards, cryptoEntropy)
		i := 0
		create := func() error {
			i++
			_, err := s.CreateCustomer(t.Context(), change.Caller{Name: "test"}, commerce.Customer{Name: fmt.Sprint("Customer ", i), Email: fmt.Sprintf("new%d@example.com", i)})
			return err
		}
		s.rate(1000, create) // uses up the capacity of the first second, if there is one shard
		rate := s.rate(1000, create)
		switch {
		case shards == 1 && (rate < 950 || rate > 1050 || len(s.throttled) != 1 || s.throttled["index"] == 0):
			t.Errorf("%v customers a second with one shard, and these partition keys were throttled: %v; want 1,000 customers, and the index", rate, s.throttled)
		case shards == 16 && len(s.throttled) != 0:
			t.Errorf("with 16 shards, these partition keys were throttled: %v", s.throttled)
		}
	}
}

// docs/scale.md contains the orders of one product that the table accepts each second. With later
// shards, the test places only the orders of the first of 16 buckets and 16 shards.
func TestGoldenOrdersPerSecondOfOneProduct(t *testing.T) {
	t.Parallel()
	cells := [][]string{{"stock buckets", "shards added later", "orders placed a second", "throttled"}}
	for _, c := range []struct {
		buckets, shards, burst, part int
		entropy                      func(*throttledShop) io.Reader
	}{{1, 0, 500, 1, cryptoEntropy}, {16, 0, 1000, 1, cryptoEntropy}, {16, 16, 800, 16, firstShardEntropy(16)}} {
		s := newThrottledShop(t, 8, c.entropy)
		caller := change.Caller{Name: "test"}
		if _, err := s.UpdateProduct(t.Context(), caller, commerce.ProductChange{SKU: "p0", StockBuckets: &c.buckets}); err != nil {
			t.Fatal(err)
		}
		if c.shards > 0 {
			if _, err := s.SetShards(t.Context(), c.shards); err != nil {
				t.Fatal(err)
			}
			s.now = s.now.Add(2 * time.Minute)
		}
		place := func() error {
			if s.orders++; c.part > 1 {
				s.now = s.now.Add(time.Millisecond) // the next order must not get the time of an earlier event
			}
			_, err := s.PlaceOrder(t.Context(), caller, commerce.OrderRequest{
				CustomerID: commerce.CustomerID(fmt.Sprint("c", s.orders%shopCustomers)), Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}})
			return err
		}
		s.rate(c.burst*3/2, place) // uses up the capacity of the first second
		clear(s.throttled)
		rate := s.rate(300, place)
		keys := slices.Sorted(maps.Keys(s.throttled))
		for i, key := range keys {
			keys[i] = markdown.CodeCell(key)
		}
		cells = append(cells, []string{fmt.Sprint(c.buckets), fmt.Sprint(c.shards), fmt.Sprint(int(math.Round(rate/50)*50) * c.part), strings.Join(keys, ", ")})
	}
	golden.CheckSection(t, "../docs/scale.md", "product", markdown.Table(cells))
}
