package customfields_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// withoutQueries returns the extension of the tests without lists and look-ups.
func withoutQueries(t testing.TB) extension.Extension {
	t.Helper()
	plain, err := graph.ParseExtension("shop.graphqls", regexp.MustCompile(`@(list|unique)\(.*?\)`).ReplaceAllString(file, ""))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// A shop gets lists and look-ups while servers place and change orders. Until they are readable, clients
// get an error that names the command. Then the lists contain what a scan finds. The cost is as quoted.
// After the lists have been dropped, the table has no more records than before.
func TestQueriesOnLiveTable(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		shape := sampledata.DefaultShape()
		shape.Customers, shape.Products, shape.Orders = 50, 20, *liveOrders
		if !storetest.IsEmbedded(t) {
			shape.Orders = 100
		}
		generator, err := sampledata.NewGenerator(t.Context(), shape)
		if err != nil {
			t.Fatal(err)
		}
		testQueriesOnLiveTable(t, db, generator)
	})
}

var liveOrders = flag.Int("live-orders", 300, "number of orders in the table that gets lists")

func testQueriesOnLiveTable(t *testing.T, db *dynamodb.Client, dataset *sampledata.Generator) {
	var elapsed atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(elapsed.Load())) }
	name := storetest.TableName()
	open := func() *dynamo.Store {
		store, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: name, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	restore := withoutQueries(t).Declare()
	first := storetest.NewTable(t, storetest.WithoutResponseDate(db), dynamo.Options{Table: name, Clock: clock})
	for _, part := range []iter.Seq[commerce.Dataset]{dataset.MasterData(), dataset.Orders(0)} {
		if _, err := first.LoadAll(t.Context(), part, nil); err != nil {
			t.Fatal(err)
		}
	}
	restore()

	// These servers have the file with lists.
	raw := storetest.RawTable{T: t, DB: db, Name: name, Store: open()}
	var servers []*shop
	for range 3 {
		store := open()
		if err := store.CheckTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, &shop{raw, newExecutor(t, store, declared), access.AnonymousAdmin()})
	}
	s := servers[0]
	const lists = `{ ordersByChannel(channel: APP) { nodes { id } } }`
	if _, problems := s.try(lists, nil); len(problems) != 1 || !strings.HasPrefix(problems[0], "UNAVAILABLE") || !strings.Contains(problems[0], "ordergraph table apply orderList.channel") {
		t.Errorf("before the list exists: %q", problems)
	}
	s.run(`mutation {
		createWarehouse(input: {id: "w", name: "W"}) { userErrors { message } }
		createProduct(input: {sku: "mug", name: "Mug", category: "C", unitPrice: {amount: "1", currencyCode: "USD"}}) { userErrors { message } }
		setInventoryLevel(input: {sku: "mug", warehouseId: "w", quantity: 1000000}) { userErrors { message } }
	}`, nil)
	before := raw.All()

	// running is held by operations, and exclusively while the clock jumps, so that no operation takes long.
	var running sync.RWMutex
	opts := dynamo.DerivationOptions{Parallel: 4, Segments: 4, IndexLag: check.NoIndexLag, OnStatus: func(status model.DerivationStatus) {
		if status.Done == 0 {
			running.Lock()
			defer running.Unlock()
			elapsed.Add(int64(2 * time.Minute))
		}
	}}
	find := func(name string) model.Derivation {
		d, err := model.FindDerivation(name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// Without writers, the cost is as quoted.
	for _, name := range []string{"orderList.channel", "orderClaim.erpNumber"} {
		d := find(name)
		quoted, err := raw.Store.PlanDerivation(t.Context(), d, opts)
		if err != nil {
			t.Fatal(err)
		}
		if want := float64(quoted.Records) * model.BackfillUnits(d.Entity); quoted.WriteUnits != want {
			t.Errorf("%s was quoted %v write units for records of up to 1 KB, want %v", name, quoted.WriteUnits, want)
		}
		cost, err := raw.Store.ApplyDerivation(t.Context(), d, opts)
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(quoted.ReadUnits+quoted.WriteUnits-cost.ReadUnits-cost.WriteUnits) / (cost.ReadUnits + cost.WriteUnits); off > 0.05 || quoted.Records != cost.Records {
			t.Errorf("%s was quoted %+v and has cost %+v", name, quoted, cost)
		}
		if quoted, err = raw.Store.PlanDrop(t.Context(), d, opts); err != nil {
			t.Fatal(err)
		}
		if cost, err = raw.Store.DropDerivation(t.Context(), d, opts); err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(quoted.ReadUnits+quoted.WriteUnits-cost.ReadUnits-cost.WriteUnits) / (cost.ReadUnits + cost.WriteUnits); off > 0.05 || quoted.Records != cost.Records {
			t.Errorf("the removal of %s was quoted %+v and has cost %+v", name, quoted, cost)
		}
	}
	if after := raw.All(); !slices.Equal(storetest.DifferingKeys(before, after), nil) {
		t.Errorf("after the lists were dropped, these records differ: %v", storetest.DifferingKeys(before, after))
	}

	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	var placed atomic.Int64
	for i, server := range servers {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		workers.Go(func() {
			for ctx.Err() == nil {
				running.RLock()
				channel := []string{"WEB", "APP", "STORE"}[random.IntN(3)]
				n := placed.Add(1)
				id := server.placeFor(dataset.CustomerID(random.IntN(50)), channel)
				if random.IntN(2) == 0 {
					server.run(fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, channel: %s, erpNumber: "E%d"}) { userErrors { message } } }`, id, []string{"WEB", "APP", "STORE"}[random.IntN(3)], n), nil)
				}
				if random.IntN(2) == 0 {
					server.run(fmt.Sprintf(`mutation { confirmOrder(input: {orderId: %q}) { userErrors { message } } }`, id), nil)
				}
				running.RUnlock()
			}
		})
	}
	names := []string{"orderList.channel", "orderClaim.erpNumber", "productList.brand", "customerList.marketingConsent"}
	for _, name := range names {
		if _, err := raw.Store.ApplyDerivation(t.Context(), find(name), opts); err != nil {
			t.Error(err)
		}
	}
	stop()
	workers.Wait()
	for _, server := range servers {
		server.requireLists()
	}
	raw.CheckClean()
	for _, name := range names {
		if _, err := raw.Store.DropDerivation(t.Context(), find(name), opts); err != nil {
			t.Error(err)
		}
	}
	for key := range raw.All() {
		if strings.Contains(key, model.CustomEdgePrefix) || strings.HasPrefix(key, "UNIQUE#") {
			t.Errorf("after the lists were dropped, the table contains %s", key)
		}
	}
	raw.CheckClean()
	t.Logf("%d orders placed meanwhile", placed.Load())
}

// placeFor places an order of a customer and returns its ID.
func (s *shop) placeFor(customer commerce.CustomerID, channel string) string {
	s.T.Helper()
	data, problems := s.try(fmt.Sprintf(`mutation { placeOrder(input: {customerId: %q, channel: %s, items: [{sku: "mug", quantity: 1}]}) { order { id } userErrors { message } } }`, customer, channel), nil)
	if len(problems) > 0 {
		s.T.Error(problems)
		return ""
	}
	return data["placeOrder"].(map[string]any)["order"].(map[string]any)["id"].(string)
}

// requireLists requires that the lists and look-ups of orders contain what the records contain.
func (s *shop) requireLists() {
	s.T.Helper()
	want := map[string][]string{}
	for key, item := range s.All() {
		record := storetest.Record(item)
		if !strings.HasPrefix(key, "ORDER#") || record.Text("sk") != "#METADATA" {
			continue
		}
		channel := record.Text("channel")
		if channel == "" {
			channel = "WEB"
		}
		want[channel] = append(want[channel], record.Text("orderId"))
		if number := record.Text("erpNumber"); number != "" {
			s.expect(fmt.Sprintf(`{ orderByErpNumber(erpNumber: %q) { id } }`, number), fmt.Sprintf(`{"orderByErpNumber":{"id":%q}}`, record.Text("orderId")))
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(want)) {
		slices.Sort(want[channel])
		slices.Reverse(want[channel])
		var got []string
		for after, more := "null", true; more; {
			data, problems := s.try(fmt.Sprintf(`{ list: ordersByChannel(channel: %s, first: 100, after: %s) { nodes { id channel } pageInfo { hasNextPage endCursor } } }`, channel, after), nil)
			if len(problems) > 0 {
				s.T.Fatal(problems)
			}
			list := data["list"].(map[string]any)
			for _, node := range list["nodes"].([]any) {
				if node := node.(map[string]any); node["channel"] != channel {
					s.T.Errorf("the list of %s contains %v", channel, node)
				} else {
					got = append(got, node["id"].(string))
				}
			}
			page := list["pageInfo"].(map[string]any)
			after, more = fmt.Sprintf("%q", page["endCursor"]), page["hasNextPage"].(bool)
		}
		if !slices.Equal(got, want[channel]) {
			s.T.Errorf("the list of %s contains %d orders, want %d", channel, len(got), len(want[channel]))
		}
	}
}
