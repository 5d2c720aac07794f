package races_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// namedMutation is a mutation that a caller makes with an idempotency key.
type namedMutation struct {
	name string
	run  func(ctx context.Context, s *dynamo.Store, caller change.Caller) (any, error)
}

// newMutation returns a mutation that calls a method of the Store.
func newMutation[C, V any](name string, method func(*dynamo.Store, context.Context, change.Caller, C) (V, error), command C) namedMutation {
	return namedMutation{name, func(ctx context.Context, s *dynamo.Store, caller change.Caller) (any, error) {
		return method(s, ctx, caller, command)
	}}
}

// initialOrders has the IDs of the orders that the fixture contains: pending, confirmed and
// shipped.
type initialOrders struct{ pending, confirmed, shipped commerce.OrderID }

// namedMutations returns mutations of every kind. Most of them use the same few records.
func namedMutations(t *testing.T, o initialOrders) []namedMutation {
	price, err := commerce.ParsePrice("7.77", "USD")
	if err != nil {
		t.Fatal(err)
	}
	customer, employee, order := (*dynamo.Store).UpdateCustomer, (*dynamo.Store).UpdateEmployee, (*dynamo.Store).PlaceOrder
	lines := func(c commerce.CustomerID, lines ...commerce.OrderLine) commerce.OrderRequest {
		return commerce.OrderRequest{CustomerID: c, Lines: lines}
	}
	move := func(name string, id commerce.OrderID, to commerce.Status, from commerce.WarehouseID) namedMutation {
		return newMutation(name, (*dynamo.Store).ChangeOrderStatus, commerce.OrderStatusChange{OrderID: id, To: to, WarehouseID: from, WithoutAddress: true})
	}
	item := func(name string, sku commerce.SKU, n int) namedMutation {
		return newMutation(name, (*dynamo.Store).SetOrderItem, commerce.OrderItemChange{OrderID: o.pending, SKU: sku, Quantity: n})
	}
	address := func(name string, id commerce.OrderID) namedMutation {
		return newMutation(name, (*dynamo.Store).UpdateShippingAddress, commerce.ShippingAddressChange{OrderID: id, ShippingAddress: commerce.Address{Recipient: name, Line1: "1", City: "C", CountryCode: "US"}})
	}
	set := func(name string, sku commerce.SKU, at commerce.WarehouseID, n int) namedMutation {
		return newMutation(name, (*dynamo.Store).SetInventoryLevel, commerce.InventoryLevelChange{SKU: sku, WarehouseID: at, Quantity: new(n)})
	}
	adjust := func(name string, sku commerce.SKU, at commerce.WarehouseID, by int) namedMutation {
		return newMutation(name, (*dynamo.Store).AdjustInventory, commerce.InventoryAdjustment{SKU: sku, WarehouseID: at, Delta: by})
	}
	hire := func(name string, at commerce.WarehouseID) namedMutation {
		return newMutation(name, (*dynamo.Store).HireEmployee, commerce.Employee{ID: "e9", Name: name, JobTitle: "Clerk", HireDate: "2025-01-02", WarehouseID: at})
	}
	product := (*dynamo.Store).UpdateProduct
	nowhere := commerce.WarehouseID("")
	there := commerce.WarehouseID("w1")
	return []namedMutation{
		newMutation("createCustomer c9", (*dynamo.Store).CreateCustomer, commerce.Customer{ID: "c9", Name: "Nine", Email: "wanted@example.com", AccountRepID: "e0"}),
		newMutation("createCustomer", (*dynamo.Store).CreateCustomer, commerce.Customer{Name: "New", Email: "Wanted@example.com"}),
		newMutation("updateCustomer c1 name", customer, commerce.CustomerChange{ID: "c1", Name: new("One")}),
		newMutation("updateCustomer c1 email", customer, commerce.CustomerChange{ID: "c1", Email: new("wanted@example.com")}),
		newMutation("updateCustomer c1 other email", customer, commerce.CustomerChange{ID: "c1", Email: new("other@example.com")}),
		newMutation("updateCustomer c0 email", customer, commerce.CustomerChange{ID: "c0", Email: new("wanted@example.com")}),
		newMutation("updateCustomer c0 phones", customer, commerce.CustomerChange{ID: "c0", PhoneNumbers: &[]string{"1"}}),
		newMutation("assignAccountRep c1", (*dynamo.Store).AssignAccountRep, commerce.AccountRepChange{CustomerID: "c1", EmployeeID: "e0"}),
		newMutation("assignAccountRep c1 nobody", (*dynamo.Store).AssignAccountRep, commerce.AccountRepChange{CustomerID: "c1"}),
		newMutation("assignAccountRep c0", (*dynamo.Store).AssignAccountRep, commerce.AccountRepChange{CustomerID: "c0", EmployeeID: "e0"}),
		newMutation("placeOrder", order, lines("c1", commerce.OrderLine{SKU: "p0", Quantity: 2}, commerce.OrderLine{SKU: "p1", Quantity: 1})),
		newMutation("placeOrder all", order, lines("c0", commerce.OrderLine{SKU: "p0", Quantity: 14})),
		newMutation("placeOrder some", order, lines("c1", commerce.OrderLine{SKU: "p0", Quantity: 9}, commerce.OrderLine{SKU: "p2", Quantity: 1})),
		move("confirmOrder", o.pending, commerce.Confirmed, ""),
		move("cancelOrder pending", o.pending, commerce.Cancelled, ""),
		move("cancelOrder confirmed", o.confirmed, commerce.Cancelled, ""),
		move("shipOrder w0", o.confirmed, commerce.Shipped, "w0"),
		move("shipOrder w1", o.confirmed, commerce.Shipped, "w1"),
		move("deliverOrder", o.shipped, commerce.Delivered, ""),
		item("setOrderItem p0 3", "p0", 3), item("setOrderItem p0 1", "p0", 1), item("setOrderItem p1 17", "p1", 17), item("setOrderItem p2 1", "p2", 1),
		item("removeOrderItem p0", "p0", 0), item("removeOrderItem p1", "p1", 0),
		address("updateShippingAddress pending", o.pending), address("updateShippingAddress confirmed", o.confirmed),
		newMutation("createProduct", (*dynamo.Store).CreateProduct, commerce.Product{SKU: "p9", Name: "Nine", Category: "Things", UnitPrice: price}),
		newMutation("updateProduct p0 price", product, commerce.ProductChange{SKU: "p0", UnitPrice: &commerce.Price{Amount: price.Decimal()}}),
		newMutation("updateProduct p0 name", product, commerce.ProductChange{SKU: "p0", Name: new("Other")}),
		newMutation("updateProduct p2 price", product, commerce.ProductChange{SKU: "p2", UnitPrice: &commerce.Price{Amount: price.Decimal()}}),
		newMutation("createWarehouse", (*dynamo.Store).CreateWarehouse, commerce.Warehouse{ID: "w9", Name: "Nine"}),
		set("setInventoryLevel p0 12", "p0", "w0", 12), set("setInventoryLevel p0 4", "p0", "w0", 4), set("setInventoryLevel p3", "p3", "w1", 3),
		adjust("adjustInventory p0 -3", "p0", "w0", -3), adjust("adjustInventory p0 -8", "p0", "w0", -8), adjust("adjustInventory p0 +5", "p0", "w0", 5), adjust("adjustInventory p3", "p3", "w1", 2),
		hire("hireEmployee w0", "w0"), hire("hireEmployee", ""),
		newMutation("updateEmployee name", employee, commerce.EmployeeChange{ID: "e1", Name: new("One")}),
		newMutation("updateEmployee no warehouse", employee, commerce.EmployeeChange{ID: "e1", WarehouseID: &nowhere}),
		newMutation("updateEmployee title", employee, commerce.EmployeeChange{ID: "e1", JobTitle: new("Driver")}),
		newMutation("updateEmployee w1", employee, commerce.EmployeeChange{ID: "e0", WarehouseID: &there}),
	}
}

// fixtureCopier creates tables with equal records, including all IDs.
type fixtureCopier struct {
	db       *dynamodb.Client
	records  []types.WriteRequest
	orders   initialOrders
	knownIDs map[string]bool
	now      time.Time
}

// newFixtureCopier returns a fixtureCopier. The fixture's pending order has 2 line items plus the
// number in more.
func newFixtureCopier(t *testing.T, db *dynamodb.Client, more int) *fixtureCopier {
	t.Helper()
	db = storetest.WithoutResponseDate(db)
	w := &fixtureCopier{db: db, knownIDs: map[string]bool{}, now: time.Now()}
	table := storetest.TableName()
	entropy := rand.NewChaCha8([32]byte{1})
	store := storetest.NewTable(t, db, dynamo.Options{Table: table, Clock: func() time.Time { return w.now }, Entropy: entropy})
	dataset := workload.Fixture{Customers: 2, Products: 3, Warehouses: 2, Employees: 2, Stock: 10}.Dataset(t)
	dataset.Products = append(dataset.Products, commerce.Product{SKU: "p3", Name: "Product 3", Category: "Things", UnitPrice: dataset.Products[0].UnitPrice, Version: 1})
	lines := []commerce.OrderLine{{SKU: "p0", Quantity: 2}, {SKU: "p1", Quantity: 1}}
	large := slices.Clone(lines)
	for i := range more {
		p := dataset.Products[0]
		p.SKU, p.TotalInventory, p.Available = commerce.SKU(fmt.Sprintf("x%02d", i)), 5, 5
		dataset.Products = append(dataset.Products, p)
		dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "w0", Quantity: 5, Version: 1})
		large = append(large, commerce.OrderLine{SKU: p.SKU, Quantity: 1 + i%2})
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, dataset)
	for i, id := range []*commerce.OrderID{&w.orders.pending, &w.orders.confirmed, &w.orders.shipped} {
		o, err := store.PlaceOrder(t.Context(), change.Caller{Name: "before"}, commerce.OrderRequest{CustomerID: "c1", Lines: [][]commerce.OrderLine{large, lines, lines}[i]})
		if err != nil {
			t.Fatal(err)
		}
		*id = o.ID
		for _, to := range []commerce.Status{commerce.Confirmed, commerce.Shipped}[:i] {
			if _, err := store.ChangeOrderStatus(t.Context(), change.Caller{Name: "before"}, commerce.OrderStatusChange{OrderID: o.ID, To: to, WarehouseID: "w0", WithoutAddress: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for k, r := range storetest.AssertConsistent(t, db, table, 1).Records {
		w.records = append(w.records, types.WriteRequest{PutRequest: &types.PutRequest{Item: r}})
		for _, id := range ulidPattern.FindAllString(k.PK+k.SK, -1) {
			w.knownIDs[id] = true
		}
	}
	return w
}

// newCopy creates a table and two Stores for it. In the requests of failing, choose injects faults.
// The requests of clean have no faults.
func (w *fixtureCopier) newCopy(t *testing.T, choose faults.Chooser) (failing, clean *dynamo.Store, table string) {
	t.Helper()
	table = storetest.TableName()
	clean = storetest.NewTable(t, w.db, w.options(table, 2))
	for batch := range slices.Chunk(w.records, 25) {
		if _, err := w.db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: batch}}); err != nil {
			t.Fatal(err)
		}
	}
	faulty, _ := faults.WrapClient(w.db, choose)
	failing, err := dynamo.New(faulty, w.options(table, 3))
	if err != nil {
		t.Fatal(err)
	}
	return failing, clean, table
}

// options returns the options of a Store with a fixed time. Stores with different seeds generate
// different IDs.
func (w *fixtureCopier) options(table string, seed byte) dynamo.Options {
	return dynamo.Options{Table: table, Clock: func() time.Time { return w.now }, Entropy: rand.NewChaCha8([32]byte{seed})}
}

var ulidPattern = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)

// snapshot formats the responses and the records of a table. It replaces generated IDs. It omits
// the order counts, because the generated ID of an order determines which counter record counts the
// order. The audit has already compared the counts with the orders.
func (w *fixtureCopier) snapshot(a *storetest.AuditResult, answers ...string) string {
	lines := slices.Clone(answers)
	for k, r := range a.Records {
		if k.PK == string(model.OrderCounts.PK) || strings.HasPrefix(k.SK, string(model.EmployeeOrderCount.SK)) {
			continue
		}
		lines = append(lines, k.PK+" "+k.SK+": "+r.String())
	}
	for i, line := range lines {
		lines[i] = ulidPattern.ReplaceAllStringFunc(line, func(id string) string {
			if w.knownIDs[id] {
				return id
			}
			return "NEW"
		})
	}
	slices.Sort(lines[len(answers):])
	return strings.Join(lines, "\n")
}

// resultText formats the result that a caller receives.
func resultText(v any, err error) string {
	if err != nil && !commerce.IsUserError(err) {
		return "FAULT " + err.Error()
	}
	if err != nil {
		return "refused: " + err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "FAULT " + err.Error()
	}
	return string(text)
}

// everyPair makes TestConcurrentMutationCommitsFirst run all pairs on both engines.
var everyPair = flag.Bool("every-pair", false, "run every mutation between the reads and the writes of every other mutation")

// recordsOf returns the records that a mutation reads or writes.
func (w *fixtureCopier) recordsOf(t *testing.T, d namedMutation) map[storetest.Key]bool {
	t.Helper()
	touched := map[storetest.Key]bool{}
	store, _, _ := w.newCopy(t, func(r faults.Request) faults.Kind {
		var body any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Error(err)
		}
		collectKeys(body, touched)
		return faults.None
	})
	if _, err := d.run(t.Context(), store, change.Caller{Name: d.name}); err != nil {
		t.Errorf("%s: %v", d.name, err)
	}
	return touched
}

// collectKeys adds the keys in a request to into.
func collectKeys(v any, into map[storetest.Key]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collectKeys(e, into)
		}
	case map[string]any:
		text := func(name string) string {
			m, _ := v[name].(map[string]any)
			s, _ := m["S"].(string)
			return s
		}
		if k := (storetest.Key{PK: text("pk"), SK: text("sk")}); k.PK != "" {
			into[k] = true
		}
		for _, e := range v {
			collectKeys(e, into)
		}
	}
}

// Another mutation commits between the reads and the writes of a mutation. The response and every
// record are the same as if the other mutation had committed first.
func TestConcurrentMutationCommitsFirst(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		w := newFixtureCopier(t, db, 0)
		all := namedMutations(t, w.orders)
		touched := make([]map[storetest.Key]bool, len(all))
		for i, d := range all {
			touched[i] = w.recordsOf(t, d)
		}
		source := rand.New(rand.NewPCG(3, 3))
		pairs, oneOf := 0, longtest.Size(40, 20)
		for i, mine := range all {
			for j, other := range all {
				related := false
				for k := range touched[i] {
					related = related || touched[j][k]
				}
				if chosen := related && (storetest.IsEmbedded(t) && longtest.Enabled() || source.IntN(oneOf) == 0); !chosen && !*everyPair {
					continue
				}
				if w.interfere(t, mine, other) {
					pairs++
				}
			}
		}
		t.Logf("%d pairs of mutations", pairs)
		if pairs < 400/oneOf {
			t.Errorf("only %d pairs of mutations interfered: the test covers too little", pairs)
		}
	})
}

// The same as TestConcurrentMutationCommitsFirst, with an order that has MaxEmbeddedItems + 1 line
// items. If a line item is removed, the order's record contains the line items. If it is added
// again, the record does not contain them.
func TestConcurrentMutationCommitsFirstWithLargeOrder(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		w := newFixtureCopier(t, db, 24)
		var all []namedMutation
		for _, d := range namedMutations(t, w.orders) {
			if strings.Contains(d.name, "OrderItem") || strings.Contains(d.name, "pending") || d.name == "confirmOrder" || d.name == "placeOrder" {
				all = append(all, d)
			}
		}
		pairs := 0
		for i, mine := range all {
			for j, other := range all {
				if (!storetest.IsEmbedded(t) || !longtest.Enabled()) && (i+j)%len(all) > 0 {
					continue
				}
				if w.interfere(t, mine, other) {
					pairs++
				}
			}
		}
		t.Logf("%d pairs of mutations", pairs)
		if pairs < len(all)/2 {
			t.Errorf("only %d pairs of mutations interfered: the test covers too little", pairs)
		}
	})
}

// interfere executes mine, with other between the reads and writes of mine. It verifies that the
// result is the same as when other runs first. It returns false if mine writes nothing, because it
// was refused after its reads.
func (w *fixtureCopier) interfere(t *testing.T, mine, other namedMutation) bool {
	t.Helper()
	caller, otherCaller := change.Caller{ID: "me", Name: "me", IdempotencyKey: "mine"}, change.Caller{ID: "they", Name: "they", IdempotencyKey: "theirs"}
	var clean *dynamo.Store
	otherResult := ""
	failing, clean, racedTable := w.newCopy(t, func(r faults.Request) faults.Kind {
		if r.IsTransaction() && otherResult == "" {
			otherResult = resultText(other.run(t.Context(), clean, otherCaller))
		}
		return faults.None
	})
	got := resultText(mine.run(t.Context(), failing, caller))
	if otherResult == "" {
		return false
	}
	raced := w.snapshot(storetest.AssertConsistent(t, w.db, racedTable, 1), "they: "+otherResult, "I: "+got)

	_, sequential, sequentialTable := w.newCopy(t, func(faults.Request) faults.Kind { return faults.None })
	otherResult = resultText(other.run(t.Context(), sequential, otherCaller))
	got = resultText(mine.run(t.Context(), sequential, caller))
	if want := w.snapshot(storetest.AssertConsistent(t, w.db, sequentialTable, 1), "they: "+otherResult, "I: "+got); raced != want {
		t.Errorf("%s, interrupted by %s:\n%s", mine.name, other.name, diffLines(want, raced))
	}
	for _, name := range []string{racedTable, sequentialTable} {
		if _, err := w.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	}
	return true
}

// diffLines returns the lines in which two texts differ.
func diffLines(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "  want "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "  got  "+line)
		}
	}
	return strings.Join(out, "\n")
}
